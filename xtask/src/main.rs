//! Development tasks of this repository, run as `cargo xtask <task>`.

mod bench;
mod chart;
mod clients;
mod console;
mod deploy;
mod envtest;
mod etcd;
mod fuzz;
mod golden;
mod guestbook;
mod image;
mod kubectl;
mod lanes;
mod objects;
mod podtato_head;
mod postgres;
mod process;
mod processes;
mod protobuf;
mod schema;
mod simulate_go;
mod tidy;
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
    Kubectl(kubectl::Arguments),
    Clients(clients::Arguments),
    Console(console::Arguments),
    Deploy(deploy::Arguments),
    Envtest(envtest::Arguments),
    Etcd(etcd::Arguments),
    Protobuf(protobuf::Arguments),
    Fuzz(fuzz::Arguments),
    Golden(golden::Arguments),
    Guestbook(guestbook::Arguments),
    Chart(chart::Arguments),
    Ci(kubewright_ci::Arguments),
    Package(kubewright_ci::package::Arguments),
    Book(kubewright_ci::book::Arguments),
    Image(image::Arguments),
    SimulateGo(simulate_go::Arguments),
    PodtatoHead(podtato_head::Arguments),
    Postgres(postgres::Arguments),
    Processes(processes::Arguments),
    Tidy(tidy::Arguments),
    /// Measure the server from outside, in release.
    Bench(bench::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Schema(arguments) => schema::run(arguments)?,
        Command::Kubectl(arguments) => return kubectl::run(&arguments),
        Command::Clients(arguments) => return clients::run(&arguments),
        Command::Console(arguments) => return console::run(&arguments),
        Command::Deploy(arguments) => return deploy::run(&arguments),
        Command::Envtest(arguments) => return envtest::run(&arguments),
        Command::Etcd(arguments) => return etcd::run(&arguments),
        Command::Protobuf(arguments) => return protobuf::run(&arguments),
        Command::Fuzz(arguments) => return fuzz::run(&arguments),
        Command::Chart(arguments) => return chart::run(&arguments),
        Command::Ci(arguments) => return kubewright_ci::run(&arguments),
        Command::Package(arguments) => return kubewright_ci::package::run(&arguments),
        Command::Book(arguments) => return kubewright_ci::book::run(&arguments),
        Command::Image(arguments) => return image::run(&arguments),
        Command::SimulateGo(arguments) => return simulate_go::run(&arguments),
        Command::PodtatoHead(arguments) => return podtato_head::run(&arguments),
        Command::Postgres(arguments) => return postgres::run(&arguments),
        Command::Processes(arguments) => return processes::run(&arguments),
        Command::Golden(arguments) => golden::run(&arguments)?,
        Command::Guestbook(arguments) => guestbook::run(&arguments)?,
        Command::Tidy(arguments) => return Ok(tidy::run(&arguments)),
        Command::Bench(arguments) => bench::run(&arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}
