//! `cargo xtask console`: the console in a real Chromium, end to end, with screenshots for the book.

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use regex::Regex;

use crate::lanes::{self, Missing};
use crate::process::{self, End, Running};
use crate::workspace::{self, Profile};

/// How long nothing may come from the lane.
const PATIENCE: Duration = Duration::from_secs(300);

/// Drive the console in Chromium: sessions, live changes, tables, objects, edits, terminals, the past, keys, phones
///
/// Chromium comes from Debian's package, axe-core from npm; both are installed if they are missing. Screenshots go to
/// docs/images. What failed is the exit code.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask console\n  \
    cargo xtask console --pods 10000 --release     with the figures of a large cluster")]
pub(crate) struct Arguments {
    /// Pods to put into the cluster, with 200 kinds, for the figures of a large one
    #[arg(long, default_value_t = 0)]
    pods: usize,
    /// Build the program optimised
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Err(Missing(why)) = install_browser()? {
        bail!("Chromium is missing: {why}");
    }
    let modules = match install_modules()? {
        Ok(modules) => modules,
        Err(Missing(why)) => bail!("axe-core is missing: {why}"),
    };
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    };
    let program = workspace::build("kubewright-cli", "kubewright", profile)?;
    let folder = tempfile::tempdir().context("making a folder")?;
    let kubeconfig = folder.path().join("kubeconfig");
    let (up, link) = start(&program, &["up", "--nodes", "3"], &kubeconfig)?;
    let (demo, demo_link) = start(&program, &["demo"], &folder.path().join("demo"))?;
    let images = workspace::root().join("docs/images");
    fs::create_dir_all(&images).context("making docs/images")?;
    let mut driver = Command::new("node");
    driver.args(["--experimental-websocket", "--no-warnings"]);
    driver.arg(lanes::sources("console").join("main.js"));
    driver
        .arg("chromium")
        .arg(&link)
        .arg(&kubeconfig)
        .arg(&images);
    driver.arg(&demo_link).arg(&modules).arg(&program);
    driver.env("CONSOLE_PID", up.id().to_string());
    driver.env("CONSOLE_PODS", arguments.pods.to_string());
    let output = process::run(&mut driver, "", PATIENCE)?;
    print!("{}{}", output.stdout, output.stderr);
    up.end(PATIENCE)?;
    demo.end(PATIENCE)?;
    Ok(if output.end == End::Exited(0) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Starts a command of the program and reads the link that it prints.
fn start(program: &Path, arguments: &[&str], kubeconfig: &Path) -> Result<(Running, String)> {
    let mut command = Command::new(program);
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    let mut running = Running::start(&mut command, "")?;
    let link = Regex::new(r"http://127\.0\.0\.1:\d+/#ticket=[\w-]+").context("a pattern")?;
    let found = RefCell::new(None);
    running.read_until(PATIENCE, |output| {
        let link = link
            .find(&output.stdout)
            .map(|link| link.as_str().to_owned());
        *found.borrow_mut() = link;
        found.borrow().is_some()
    });
    match found.into_inner() {
        Some(link) => Ok((running, link)),
        None => {
            let output = running.end(PATIENCE)?;
            bail!("no link was printed: {}{}", output.stdout, output.stderr)
        }
    }
}

/// Installs Chromium and fonts if they are missing.
pub(crate) fn install_browser() -> Result<Result<(), Missing>> {
    if lanes::is_there("chromium") {
        return Ok(Ok(()));
    }
    lanes::install_packages(&["chromium", "fonts-inter", "fonts-dejavu-core"])
}

fn install_modules() -> Result<Result<std::path::PathBuf, Missing>> {
    let directory = lanes::installed("console")?;
    let wanted = fs::read_to_string(lanes::sources("console").join("package.json"))?;
    let done = lanes::once(&directory, &wanted, || {
        fs::write(directory.join("package.json"), &wanted)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"])
            .current_dir(&directory);
        Ok(lanes::tool(&mut npm, "npm install")?.map(drop))
    })?;
    Ok(done.map(|()| directory))
}
