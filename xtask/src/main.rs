//! Development tasks of this repository, run as `cargo xtask <task>`.

mod bench;
mod kubectl;
mod process;
mod schema;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Development tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate the table of built-in types from the published API definitions.
    Schema(schema::Arguments),
    /// Drive every kubectl of this machine against the server.
    Kubectl(kubectl::Arguments),
    /// Measure the server from outside, in release.
    Bench(bench::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Schema(arguments) => schema::run(arguments)?,
        Command::Kubectl(arguments) => return kubectl::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
