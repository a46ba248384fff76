//! `kubewright-bench`: measures what we build as its users see it, from another process.
//!
//! `cargo xtask bench` builds it in release and runs it. `server` measures API servers over TLS; where a kube-apiserver
//! and an etcd are on PATH, they are measured by the same client in the same run. `cache` measures informers and
//! work queues beside those of kube-rs and client-go, `runtime` controllers beside those of kube-rs and
//! controller-runtime; the other commands are their parts. Whole clusters are measured by `kubewright-bench-cluster`.

mod cache;
mod cost;
mod fan_out;
mod growth;
mod lists;
mod load;
mod objects;
mod process;
mod reconcile;
mod report;
mod row;
mod runtime;
mod single;
mod source;
mod target;
mod upstream;
mod verdict;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use kubewright_bench::{figure, machine, page, stopwatch};

use figure::Figure;
use target::Target;

/// Measure what we build.
#[derive(Parser)]
enum Command {
    Server(Server),
    Cache(cache::Arguments),
    Serve(source::Arguments),
    Client(cache::client::Arguments),
    Queue(cache::queue::Arguments),
    Runtime(runtime::Arguments),
    Reconcile(reconcile::Arguments),
}

/// Measure API servers over TLS.
#[derive(clap::Args)]
struct Server {
    /// The `kubewright` to measure
    #[arg(long)]
    kubewright: PathBuf,
    /// The `kubewright` of an earlier commit, measured by the same client in the same run
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// Write the figures into this page as well
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amount {
    /// 1, or 10 for a tenth of everything.
    divisor: usize,
}

impl Amount {
    /// This many, or a tenth of it.
    pub(crate) fn of(self, full: usize) -> usize {
        full.div_ceil(self.divisor)
    }
}

fn main() -> Result<()> {
    let command = Command::parse();
    let mut runtime = match command {
        // It is to take no more than one core from those it serves.
        Command::Serve(_) => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    match command {
        Command::Server(arguments) => runtime.block_on(server(arguments)),
        Command::Cache(arguments) => runtime.block_on(cache::run(arguments)),
        Command::Serve(arguments) => runtime.block_on(source::run(arguments)),
        Command::Client(arguments) => runtime.block_on(cache::client::run(arguments)),
        Command::Queue(arguments) => cache::queue::run(&runtime, &arguments),
        Command::Runtime(arguments) => runtime.block_on(runtime::run(arguments)),
        Command::Reconcile(arguments) => runtime.block_on(reconcile::run(arguments)),
    }
}

async fn server(arguments: Server) -> Result<()> {
    let amount = Amount {
        divisor: if arguments.quick { 10 } else { 1 },
    };
    let before = machine::load_average();
    let ours = Target::Kubewright(arguments.kubewright);
    let mut columns = vec![("kubewright".to_owned(), measure(&ours, amount).await?)];
    if let Some(before) = arguments.before {
        let target = Target::Kubewright(before);
        columns.push((
            "kubewright before".to_owned(),
            measure(&target, amount).await?,
        ));
    }
    if let Some(upstream) = upstream::on_path() {
        let name = upstream.name.clone();
        let target = Target::Upstream(upstream);
        columns.push((name, measure(&target, amount).await?));
    }
    let machine = machine::describe(&before);
    report::print(&columns, &machine);
    let costs = cost::measure(&ours, amount).await?;
    cost::print(&costs);
    if let Some(path) = arguments.write {
        let section = report::markdown(&columns, &machine) + &cost::markdown(&costs);
        page::replace(&path, "server", &section)?;
    }
    Ok(())
}

async fn measure(target: &Target, amount: Amount) -> Result<Vec<Figure>> {
    let mut figures = single::measure(target, amount).await?;
    figures.extend(fan_out::measure(target, amount).await?);
    figures.extend(lists::measure(target, amount).await?);
    figures.extend(growth::measure(target, amount).await?);
    Ok(figures)
}
