//! `cargo xtask guestbook`: from an empty folder to a deployed operator, and how long each step takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{Output, Running};
use crate::workspace::{self, Profile};

/// How long nothing may come from a step.
const PATIENCE: Duration = Duration::from_secs(1800);
/// The field that `create api` writes, and what a newcomer makes of it.
const SCAFFOLDED: &str = "    pub size: Option<i32>,\n";
const EDITED: &str = "    pub size: Option<i32>,
    /// The name of the ConfigMap with the settings.
    #[schemars(length(min = 1, max = 15))]
    pub config_map_name: String,
    /// What is noted down.
    #[serde(rename = \"type\")]
    pub kind: Option<Entry>,
";
const ENTRY: &str = "
/// What a guest leaves.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, PartialEq)]
pub enum Entry {
    /// A phone number.
    Phone,
    /// An address.
    Address,
    /// A name.
    Name,
}
";

/// Walk from an empty folder to a deployed operator with nothing but our program, and print the time of each step
///
/// init, create api, edit the types, manifests, install, run, a sample, its status, tests, deploy, undeploy; on a cluster
/// of `kubewright up`. Then a change under `kubewright dev`, and the size of the optimised program. Nothing is on the path
/// but Rust and what it links with.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask guestbook            dependencies as they were built the last time\n  \
    cargo xtask guestbook --cold     everything built anew, as on a newcomer's machine")]
pub(crate) struct Arguments {
    /// Forget what was built before
    #[arg(long)]
    cold: bool,
    /// Leave out the optimised build
    #[arg(long)]
    no_release: bool,
}

/// All that is on the path: Rust, the linker it uses and what that consists of, and how one ends a process.
const TOOLS: [&str; 7] = ["cargo", "rustc", "cc", "ld", "as", "ar", "kill"];
/// What a newcomer changes in a controller.
const MESSAGE: &str = "all is as the spec says";

/// A walk: the program, the folder, and what was measured.
struct Walk {
    program: PathBuf,
    project: PathBuf,
    target: PathBuf,
    /// The folder that is the path.
    tools: PathBuf,
    kubeconfig: PathBuf,
    steps: Vec<(String, Duration)>,
    sizes: Vec<(&'static str, u64)>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Outside of the repository, or cargo takes it for a part of the workspace.
    let around = tempfile::tempdir().context("there is no place for temporary files")?;
    let program = workspace::build("kubewright-cli", "kubewright", Profile::Debug)?;
    let mut walk = Walk {
        program,
        project: around.path().join("guestbook"),
        target: workspace::target().join("guestbook"),
        tools: link_tools(&around.path().join("bin"))?,
        kubeconfig: around.path().join("kubeconfig"),
        steps: Vec::new(),
        sizes: Vec::new(),
    };
    if arguments.cold {
        remove(&walk.target)?;
    }
    fs::create_dir_all(&walk.project)?;
    walk.write()?;
    walk.try_out()?;
    walk.develop()?;
    if !arguments.no_release {
        walk.optimise()?;
    }
    walk.report();
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("{} is in the way", folder.display()))
        }
        _ => Ok(()),
    }
}

/// A folder with links to the tools and to nothing else.
fn link_tools(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    for tool in TOOLS {
        let mut places = std::env::split_paths(&path).map(|place| place.join(tool));
        if let Some(found) = places.find(|place| place.is_file()) {
            std::os::unix::fs::symlink(found, folder.join(tool))?;
        }
    }
    Ok(folder.to_owned())
}

impl Walk {
    /// The project, its types as a newcomer writes them, and what is generated from them.
    fn write(&mut self) -> Result<()> {
        self.call("init --domain my.domain")?;
        self.call("create api --group webapp --version v1 --kind Guestbook --make=false")?;
        let file = self.project.join("src/api/v1/guestbook.rs");
        let text = fs::read_to_string(&file)?;
        if !text.contains(SCAFFOLDED) {
            bail!("the scaffolded type is not what this script knows");
        }
        fs::write(&file, text.replace(SCAFFOLDED, EDITED) + ENTRY)?;
        self.call("manifests")?;
        self.size("unoptimised", "debug")?;
        self.call("manifests --check")?;
        self.call("lint")
    }

    /// The operator on a cluster: run from here, then deployed.
    fn try_out(&mut self) -> Result<()> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let mut up = self.start(&format!("up --port 0 --kubeconfig {kubeconfig}"))?;
        self.until("up", &mut up, |output| output.shows("Ctrl-C stops it"))?;
        let on = format!("--kubeconfig {kubeconfig}");
        self.call(&format!("install {on}"))?;
        let sample = self.project.join("config/samples/webapp_v1_guestbook.yaml");
        let sample = sample.display().to_string();
        let run = format!("run {on} -- --health-probe-bind-address=0");
        let mut running = self.start(&run)?;
        self.until(&run, &mut running, |output| output.shows("Ctrl-C stops it"))?;
        self.call(&format!(
            "deploy --manifests {sample} --wait-for Ready {on}"
        ))?;
        running.end(PATIENCE)?;
        self.cargo("cargo test", &["test", "--quiet"])?;
        self.call(&format!("deploy --image example.com/guestbook:0.1.0 {on}"))?;
        // The deployed manager is a simulated pod: nobody is there to finish the sample, so it is done from here.
        let mut running = self.start(&run)?;
        self.until(&run, &mut running, |output| output.shows("Ctrl-C stops it"))?;
        self.call(&format!("undeploy {on}"))?;
        running.end(PATIENCE)?;
        up.end(PATIENCE)?;
        Ok(())
    }

    /// A change of a controller while `kubewright dev` looks on.
    fn develop(&mut self) -> Result<()> {
        let mut dev = self.start("dev --samples")?;
        self.until("dev --samples", &mut dev, |output| {
            output.shows("Sources are watched")
        })?;
        let file = self.project.join("src/controller/guestbook.rs");
        let text = fs::read_to_string(&file)?;
        if !text.contains(MESSAGE) {
            bail!("the scaffolded controller is not what this script knows");
        }
        fs::write(&file, text.replace(MESSAGE, "every page is there"))?;
        let built = |output: &Output| output.stdout.matches("Built in").count() == 2;
        self.until("dev: a change until it runs", &mut dev, built)?;
        let output = dev.end(PATIENCE)?;
        if !output.shows("Stopping") || self.project.join(".kubewright").exists() {
            bail!("kubewright dev leaves something behind:\n{}", output.stderr);
        }
        Ok(())
    }

    /// Notes how large the program is.
    fn size(&mut self, name: &'static str, folder: &str) -> Result<()> {
        let file = self.target.join(folder).join("guestbook");
        self.sizes.push((name, fs::metadata(&file)?.len()));
        Ok(())
    }

    /// The optimised program, and how large it is.
    fn optimise(&mut self) -> Result<()> {
        self.cargo("cargo build --release", &["build", "--release", "--quiet"])?;
        self.size("optimised", "release")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.project)
            // As a newcomer has it: nothing of what called this script.
            .env_remove("CARGO")
            .env_remove("CARGO_MANIFEST_DIR")
            .env_remove("CARGO_PROFILE_DEV_DEBUG")
            .env("PATH", &self.tools)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }

    fn call(&mut self, line: &str) -> Result<()> {
        let mut command = self.command(&self.program);
        command.args(line.split(' '));
        self.measure(&format!("kubewright {line}"), command)
    }

    fn cargo(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(&self.tools.join("cargo"));
        command.args(arguments);
        self.measure(name, command)
    }

    fn measure(&mut self, name: &str, mut command: Command) -> Result<()> {
        println!("$ {name}");
        let began = now();
        let status = command.stdin(Stdio::null()).status();
        let status = status.with_context(|| format!("{name} cannot be run"))?;
        if !status.success() {
            bail!("{name} failed");
        }
        self.steps.push((name.to_owned(), began.elapsed()));
        Ok(())
    }

    fn start(&self, line: &str) -> Result<Running> {
        println!("$ kubewright {line} &");
        Running::start(self.command(&self.program).args(line.split(' ')), "")
    }

    fn until(
        &mut self,
        name: &str,
        running: &mut Running,
        enough: impl Fn(&Output) -> bool,
    ) -> Result<()> {
        let began = now();
        if !running.read_until(PATIENCE, enough) {
            bail!("{name} does not say that it runs");
        }
        self.steps
            .push((format!("kubewright {name}"), began.elapsed()));
        Ok(())
    }

    fn report(&self) {
        println!();
        let around = self
            .kubeconfig
            .parent()
            .map(|path| path.display().to_string());
        let around = around.unwrap_or_default() + "/";
        for (name, time) in &self.steps {
            println!(
                "{:>8.2} s  {}",
                time.as_secs_f64(),
                name.replace(&around, "")
            );
        }
        for (name, bytes) in &self.sizes {
            println!("{:>7.1} MB  the {name} program", *bytes as f64 / 1e6);
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "what a newcomer waits is wall time, which nothing may inject"
)]
fn now() -> Instant {
    Instant::now()
}
