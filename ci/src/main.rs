//! The program behind `.ci/run`: the steps of `cargo xtask ci`, without building the lanes of `xtask` first.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = ".ci/run", args_conflicts_with_subcommands = true)]
struct Program {
    #[command(flatten)]
    arguments: kubewright_ci::Arguments,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    Package(kubewright_ci::package::Arguments),
    Book(kubewright_ci::book::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    let program = Program::parse();
    match program.task {
        None => kubewright_ci::run(&program.arguments),
        Some(Task::Package(arguments)) => kubewright_ci::package::run(&arguments),
        Some(Task::Book(arguments)) => kubewright_ci::book::run(&arguments),
    }
}
