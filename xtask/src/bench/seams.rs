//! `cargo xtask bench seams`: what the gates of a simulation cost an operator that has none set.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::lanes::{self, Missing};
use crate::workspace;

/// The events of the shorter and of the longer run: their difference leaves out what starting costs.
const EVENTS: [u64; 2] = [1_000, 11_000];
/// How much dearer an event may be with the gates compiled in.
const ALLOWED: f64 = 1.02;

/// Measure what the gates of a simulation cost where none is set: instructions from an event to the end of its reconcile
///
/// The same program is built with and without gates and run under valgrind's callgrind, which counts the same in every run
/// whatever else the machine does. It fails above 2 %.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Seams {}

pub(super) fn run() -> Result<()> {
    if !lanes::is_there("valgrind")
        && let Err(Missing(why)) = lanes::install_packages(&["valgrind"])?
    {
        bail!("valgrind is missing: {why}");
    }
    let folder = workspace::target().join("seams");
    let wrapper = wrapper(&folder)?;
    let without = instructions(&folder, &build(Some(&wrapper))?)?;
    let with = instructions(&folder, &build(None)?)?;
    let ratio = with / without;
    println!(
        "instructions from event to end of reconcile: {with:.0} with gates, {without:.0} without; ratio {ratio:.4}"
    );
    if ratio > ALLOWED {
        bail!("gates that nobody uses cost more than {ALLOWED}");
    }
    Ok(())
}

/// The instructions that one event costs in a program.
fn instructions(folder: &Path, program: &Path) -> Result<f64> {
    let [short, long] = EVENTS;
    let counted = count(program, folder, long)? - count(program, folder, short)?;
    #[expect(clippy::cast_precision_loss, reason = "it is a ratio that is wanted")]
    Ok(counted as f64 / (long - short) as f64)
}

/// Writes a compiler that leaves gates out. As a wrapper it compiles the crates of this workspace alone, so that both programs share
/// their dependencies; flags for all crates would compile every dependency twice.
fn wrapper(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).context("making a folder")?;
    let wrapper = folder.join("rustc-without-gates");
    let script = "#!/bin/sh\nexec \"$@\" --cfg kubewright_without_gates\n";
    fs::write(&wrapper, script).context("writing the compiler's wrapper")?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&wrapper, executable).context("making the wrapper executable")?;
    Ok(wrapper)
}

/// Builds the benchmark, and returns where it is.
fn build(wrapper: Option<&Path>) -> Result<PathBuf> {
    let mut cargo = workspace::cargo();
    if let Some(wrapper) = wrapper {
        cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    }
    cargo.args(["build", "--release", "--package", "kubewright-runtime"]);
    cargo.args([
        "--bench",
        "seams",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let output = cargo.stderr(std::process::Stdio::inherit()).output();
    let output = output.context("cargo could not be started")?;
    if !output.status.success() {
        bail!("building the benchmark failed");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut programs = messages.filter_map(|message: Value| {
        let is_it = message["target"]["name"] == "seams";
        let path = message["executable"].as_str()?;
        is_it.then(|| PathBuf::from(path))
    });
    programs
        .next_back()
        .context("cargo does not say where the benchmark is")
}

/// Counts the instructions of a run.
fn count(program: &Path, folder: &Path, events: u64) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--tool=callgrind");
    let profile = folder.join("callgrind.out");
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    let output = valgrind.arg(program).arg(events.to_string()).output();
    let output = output.context("valgrind could not be started")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("valgrind failed: {text}");
    }
    let collected = text.split("Collected :").nth(1);
    let number = collected.and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|number| number.parse().ok());
    number.with_context(|| format!("valgrind does not say what it counted: {text}"))
}
