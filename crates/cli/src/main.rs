//! The `kubewright` command.

mod demo;
mod envtest;
mod etcd;
mod flags;
mod kube_apiserver;
mod masquerade;
mod up;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use masquerade::Role;
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
    Demo(demo::Demo),
    Up(up::Up),
    Envtest(envtest::Envtest),
}

fn main() -> anyhow::Result<()> {
    let filter =
        EnvFilter::try_from_env("KUBEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let called = std::env::args_os().next().map(PathBuf::from);
    if let Some(role) = called.as_deref().and_then(Role::of) {
        let arguments = std::env::args_os().skip(1);
        return role.play(arguments.map(|argument| argument.to_string_lossy().into_owned()));
    }
    match Arguments::parse().command {
        Command::Demo(demo) => demo.run(),
        Command::Up(up) => up.run(),
        Command::Envtest(envtest) => envtest.run(),
    }
}
