//! Where the repository is, and building its programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use kubewright_ci::cargo::forget_package;

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
    /// Optimised, with the checks of a debug build.
    Fuzz,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the root of the repository")
        .to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, as it would be started at a terminal.
pub(crate) fn cargo() -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    forget_package(&mut cargo).current_dir(root());
    cargo
}

/// Builds the program of a package and tells where it is.
pub(crate) fn build(package: &str, program: &str, profile: Profile) -> Result<PathBuf> {
    build_with(package, program, profile, &[])
}

/// Builds programs and example targets, unoptimised, as parts of the whole workspace: what a test run has built is not built again
/// with other features.
pub(crate) fn build_lane(programs: &[&str], example: &str) -> Result<Lane> {
    let mut cargo = cargo();
    cargo.args(["build", "--quiet", "--workspace", "--example", example]);
    for program in programs {
        cargo.args(["--bin", program]);
    }
    let status = cargo.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("building {example} failed");
    }
    let folder = target().join("debug");
    Ok(Lane {
        programs: programs.iter().map(|it| folder.join(it)).collect(),
        example: folder.join("examples").join(example),
    })
}

/// What a lane is made of.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Where the programs are, in the order in which they were asked for.
    pub(crate) programs: Vec<PathBuf>,
    /// The program that drives them, which may use what tests use.
    pub(crate) example: PathBuf,
}

/// Builds the operator of an example, without the cluster that its demonstration runs on.
pub(crate) fn build_operator(package: &str) -> Result<PathBuf> {
    let arguments = ["--no-default-features"];
    build_with(package, package, Profile::Release, &arguments)
}

fn build_with(
    package: &str,
    program: &str,
    profile: Profile,
    arguments: &[&str],
) -> Result<PathBuf> {
    let mut cargo = cargo();
    cargo
        .args(["build", "--quiet", "--package", package, "--bin", program])
        .args(arguments);
    let folder = match profile {
        Profile::Debug => {
            // What a test run has built is not built again with fewer features.
            cargo.args(["--package", "workspace-features"]);
            "debug"
        }
        Profile::Release => {
            cargo.args(["--profile", "dist"]);
            "dist"
        }
        Profile::Fuzz => {
            cargo.args(["--profile", "fuzz"]);
            "fuzz"
        }
    };
    let status = cargo.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("building {program} failed");
    }
    Ok(target().join(folder).join(program))
}
