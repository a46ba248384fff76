//! `kubewright-bench cache`: informers and work queues of kubewright, kube-rs and client-go, in one run.
//!
//! Every client is a process of its own, so that its memory is its own, and takes its turn alone; those whose speed is
//! compared take several turns, one after the other, and the best counts.

pub(crate) mod client;
mod kube_rs;
mod ours;
mod outcome;
pub(crate) mod queue;
mod runner;
mod table;

use std::path::PathBuf;

use anyhow::Result;

use crate::process::Serving;
use crate::{machine, page};
use outcome::{Outcome, QueueOutcome};
use runner::{Runner, Steps};

/// Measure informers and work queues.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The program of `bench/peers/go`
    #[arg(long, value_name = "FILE")]
    client_go: Option<PathBuf>,
    /// Why that program is not there
    #[arg(long, value_name = "TEXT", default_value = "it was not asked for")]
    no_client_go: String,
    /// Write the figures into this page as well
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A hundredth of everything: to see that it runs, not for figures
    #[arg(long)]
    quick: bool,
}

/// Turns of those whose speed is compared.
const ROUNDS: usize = 2;
/// Turns of each queue; each takes the best of a few by itself.
const QUEUE_ROUNDS: usize = 2;
/// Free memory that the largest sync wants, in bytes.
const ROOM_FOR_A_MILLION: u64 = 8_000_000_000;

/// All that was found out.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) pods: usize,
    pub(crate) typed: Outcome,
    pub(crate) decoded: Outcome,
    pub(crate) dynamic: Outcome,
    pub(crate) metadata: Outcome,
    pub(crate) kube_rs: Outcome,
    /// Nothing where there is no Go.
    pub(crate) client_go: Option<ClientGo>,
    pub(crate) why_no_client_go: String,
    /// Kubewright with more and more pods.
    pub(crate) growth: Vec<(usize, Outcome)>,
    /// Keys; kubewright; client-go.
    pub(crate) queue: Vec<(usize, QueueOutcome, Option<QueueOutcome>)>,
}

/// The same of client-go.
#[derive(Default)]
pub(crate) struct ClientGo {
    pub(crate) typed: Outcome,
    pub(crate) json: Outcome,
    pub(crate) dynamic: Outcome,
    pub(crate) metadata: Outcome,
}

/// Measures, prints, and writes the page if that was asked for.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let before = machine::load_average();
    let divisor = if arguments.quick { 100 } else { 1 };
    let runner = Runner::new(arguments.client_go)?;
    let mut results = informers(&runner, 100_000 / divisor).await?;
    results.why_no_client_go = arguments.no_client_go;
    for pods in [1_000, 10_000, 1_000_000] {
        if pods == 1_000_000 && machine::available() < ROOM_FOR_A_MILLION {
            eprintln!("too little free memory for a million pods");
            continue;
        }
        let pods = pods / divisor;
        let source = Serving::pods(pods).await?;
        let outcome = runner.ours(&source, "typed", Steps::Sync).await?;
        results.growth.push((pods, outcome));
    }
    results.growth.insert(2, (results.pods, results.typed));
    for keys in [1_000, 10_000, 100_000, 1_000_000] {
        let keys = (keys / divisor).max(100);
        results.queue.push(queues(&runner, keys).await?);
    }
    let machine = machine::describe(&before);
    let text = table::markdown(&results, &machine);
    println!("{text}");
    if let Some(path) = arguments.write {
        page::replace(&path, "cache", &text)?;
    }
    Ok(())
}

async fn informers(runner: &Runner, pods: usize) -> Result<Results> {
    let source = Serving::pods(pods).await?;
    let mut results = Results {
        pods,
        ..Results::default()
    };
    let mut go = ClientGo::default();
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let first = round == 0;
        let best = |so_far: Outcome, next: Outcome| if first { next } else { so_far.best(next) };
        results.typed = best(
            results.typed,
            runner.ours(&source, "typed", Steps::All).await?,
        );
        results.kube_rs = best(results.kube_rs, runner.kube_rs(&source).await?);
        if let Some(outcome) = runner.go(&source, "typed", Steps::All).await? {
            go.typed = best(go.typed, outcome);
        }
    }
    results.decoded = runner.ours(&source, "decoded", Steps::Sync).await?;
    results.dynamic = runner.ours(&source, "dynamic", Steps::Sync).await?;
    results.metadata = runner.ours(&source, "metadata", Steps::Sync).await?;
    go_forms(runner, &source, &mut go).await?;
    results.client_go = runner.has_client_go().then_some(go);
    Ok(results)
}

async fn go_forms(runner: &Runner, source: &Serving, go: &mut ClientGo) -> Result<()> {
    for (form, place) in [
        ("json", &mut go.json),
        ("dynamic", &mut go.dynamic),
        ("metadata", &mut go.metadata),
    ] {
        if let Some(outcome) = runner.go(source, form, Steps::Sync).await? {
            *place = outcome;
        }
    }
    Ok(())
}

async fn queues(
    runner: &Runner,
    keys: usize,
) -> Result<(usize, QueueOutcome, Option<QueueOutcome>)> {
    let mut ours = QueueOutcome::default();
    let mut theirs = None;
    for _ in 0..QUEUE_ROUNDS {
        ours = ours.best(runner.our_queue(keys).await?);
        if let Some(outcome) = runner.go_queue(keys).await? {
            theirs = Some(outcome.best(theirs.unwrap_or_default()));
        }
    }
    Ok((keys, ours, theirs))
}
