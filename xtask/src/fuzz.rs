//! `cargo xtask fuzz`: builds the fuzzer with the checks of a debug build on, and runs it for a while.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::workspace::{self, Profile};

/// Throw mutated inputs at everything that reads bytes from outside
///
/// Decoders of JSON, YAML and protobuf, selectors, patches, server-side apply, CEL, definitions, and requests to a server
/// in the process. Each target runs in a process of its own for --seconds; a panic, a broken round trip, a stack overflow
/// and an input that takes too long are findings. They are written to target/fuzz-findings with the command that replays them, and
/// the command fails. The inputs that all others are made from are in fuzz/corpus.
#[derive(clap::Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    cargo xtask fuzz                                 every target for ten seconds\n  \
    cargo xtask fuzz --seconds 3600 --seed 7         an hour each, other inputs than yesterday\n  \
    cargo xtask fuzz --target cel --target yaml      two of them\n  \
    cargo xtask fuzz --target cel --replay FILE      one input again"
)]
pub(crate) struct Arguments {
    /// Only this target; can be repeated
    #[arg(long)]
    target: Vec<String>,
    /// How long, for each target
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Where the randomness starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run this input again instead; needs one --target
    #[arg(long, value_name = "FILE", requires = "target")]
    replay: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let fuzzer = workspace::build("kubewright-fuzz", "kubewright-fuzz", Profile::Fuzz)?;
    let mut command = Command::new(fuzzer);
    if let Some(file) = &arguments.replay {
        command.arg("replay").arg(file);
    } else {
        let (seconds, seed) = (arguments.seconds.to_string(), arguments.seed.to_string());
        command
            .args(["run", "--seconds", &seconds, "--seed", &seed, "--corpus"])
            .arg(workspace::root().join("fuzz/corpus"))
            .arg("--findings")
            .arg(workspace::target().join("fuzz-findings"));
    }
    for target in &arguments.target {
        command.args(["--target", target]);
    }
    let status = command.status().context("the fuzzer cannot be started")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
