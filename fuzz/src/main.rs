//! Throws mutated inputs at everything that reads bytes from outside, and keeps those that break something.
//!
//! `cargo xtask fuzz` builds and runs it. Each target works in a process of its own, which the parent watches: a panic,
//! a broken round trip, a stack overflow and an input that takes too long are findings. A finding is written to a file,
//! and `replay` runs it again.

mod corpus;
mod finding;
mod mutate;
mod novelty;
mod progress;
mod supervise;
mod targets;
mod tree;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use targets::Target;

/// Fuzz what reads bytes from outside.
#[derive(Parser)]
#[command(name = "kubewright-fuzz")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(supervise::Run),
    /// The process that tries inputs; `run` starts it
    #[command(hide = true)]
    Work(work::Work),
    Replay(Replay),
}

/// Run one input again, in this process
#[derive(clap::Args)]
struct Replay {
    /// What reads it
    #[arg(long)]
    target: String,
    /// The input
    file: PathBuf,
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Run(run) => supervise::run(&run),
        Command::Work(work) => work::run(&work).map(|()| ExitCode::SUCCESS),
        Command::Replay(replay) => {
            let target = Target::named(&replay.target)?;
            let input = std::fs::read(&replay.file)?;
            let outcome = work::on_a_small_stack(move || target.reader()(&input))?;
            println!("{}: {}", target.name, outcome.0);
            Ok(ExitCode::SUCCESS)
        }
    }
}
