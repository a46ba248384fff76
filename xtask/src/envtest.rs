//! `cargo xtask envtest`: tests written for controller-runtime's envtest, on our server in place of kube-apiserver.

mod events;
mod expected;
mod upstream;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Result, bail};

use crate::lanes::{self, AllowMissing, Missing};
use crate::process;
use crate::workspace::{self, Profile};
use events::Package;

/// How long `go test` may be silent: it compiles, and prints a package when it is done.
const PATIENCE: Duration = Duration::from_secs(900);

/// Run tests written for envtest on our server: our own, and controller-runtime's
///
/// `kubewright envtest` writes a kube-apiserver and an etcd, and both suites start them as any kubebuilder project does:
/// the tests of xtask/lanes/go/envtest, then those of controller-runtime itself, from a copy of its module. The table
/// shows packages with how many tests and specs passed and failed. Failures that are expected are listed with their
/// reasons in xtask/src/envtest/expected.rs; any other fails the command.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask envtest\n  \
    cargo xtask envtest --package ./pkg/client/... --verbose"
)]
pub(crate) struct Arguments {
    /// Packages of controller-runtime to test; can be repeated
    #[arg(long, value_name = "PACKAGE", default_value = "./pkg/...")]
    package: Vec<String>,
    /// Only our own tests
    #[arg(long)]
    own: bool,
    /// Build and use the server in release
    #[arg(long)]
    release: bool,
    /// Print what failing packages print
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    missing: AllowMissing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if !lanes::is_there("go") {
        let go = Missing("go is not installed".to_owned());
        return Ok(arguments.missing.end(&[go]));
    }
    let profile = if arguments.release {
        Profile::Release
    } else {
        Profile::Debug
    };
    let assets = assets(&workspace::build("kubewright-cli", "kubewright", profile)?)?;
    println!(
        "{:<52}{:>8}{:>8}{:>9}",
        "package", "passed", "failed", "seconds"
    );
    let own = test(
        &lanes::sources("go"),
        &["./envtest/...".to_owned()],
        &assets,
    )?;
    let mut unexpected = show(&own, arguments.verbose);
    let mut left_out = Vec::new();
    if !arguments.own {
        match upstream::copy()? {
            Err(missing) => left_out.push(missing),
            Ok(directory) => {
                let packages = test(&directory, &arguments.package, &assets)?;
                unexpected += show(&packages, arguments.verbose);
            }
        }
    }
    let end = arguments.missing.end(&left_out);
    if unexpected > 0 {
        println!("\n{unexpected} failures that are not expected");
        return Ok(ExitCode::FAILURE);
    }
    Ok(end)
}

/// Writes the programs that envtest starts.
fn assets(kubewright: &Path) -> Result<PathBuf> {
    let directory = lanes::installed("envtest")?;
    let mut command = Command::new(kubewright);
    command.args(["envtest", "--assets"]).arg(&directory);
    match lanes::tool(&mut command, "the programs cannot be written")? {
        Ok(_) => Ok(directory),
        Err(Missing(why)) => bail!("{why}"),
    }
}

/// Runs `go test` and reads what it tells.
fn test(directory: &Path, packages: &[String], assets: &Path) -> Result<Vec<Package>> {
    let mut command = Command::new("go");
    // One package after another: each starts control planes, and some measure time.
    command
        .current_dir(directory)
        .env("KUBEBUILDER_ASSETS", assets)
        .env_remove("USE_EXISTING_CLUSTER")
        .args(["test", "-json", "-p", "1", "-count", "1"])
        .args(packages);
    let output = process::run(&mut command, "", PATIENCE)?;
    let packages = events::packages(&output.stdout);
    if packages.is_empty() {
        bail!("go test printed nothing: {}", output.stderr);
    }
    Ok(packages)
}

/// Shows packages and tells how many failures were not expected.
fn show(packages: &[Package], verbose: bool) -> usize {
    let mut unexpected = 0;
    for package in packages.iter().filter(|package| package.is_tested()) {
        let seconds = format!("{:.1}", package.seconds);
        let failed = package.failed.len();
        println!(
            "{:<52}{:>8}{failed:>8}{seconds:>9}",
            package.short_name(),
            package.passed
        );
        for name in &package.failed {
            match expected::reason(package.short_name(), name) {
                Some(reason) => println!("    – {name}\n        expected: {reason}"),
                None => {
                    unexpected += 1;
                    println!("    ✗ {name}");
                }
            }
        }
        for gone in expected::outlived(package.short_name(), &package.failed) {
            println!("    ✓ no longer fails: {gone}");
        }
        if verbose && failed > 0 {
            println!("{}", package.output);
        }
    }
    unexpected
}
