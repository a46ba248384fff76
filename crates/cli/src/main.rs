//! The `kubewright` command.

mod up;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Build, run and prove Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "kubewright", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::Up),
}

fn main() -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_from_env("KUBEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match Arguments::parse().command {
        Command::Up(up) => up.run(),
    }
}
