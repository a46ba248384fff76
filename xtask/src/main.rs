//! Development tasks of this repository, run as `cargo xtask <task>`.

mod schema;

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Schema(arguments) => schema::run(arguments),
    }
}
