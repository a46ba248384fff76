//! Kubewright's work queue, measured: keys are added, taken and done.

use std::sync::Arc;

use anyhow::Result;
use kubewright_workqueue::{Finish, Options, Queue};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::outcome::QueueOutcome;
use crate::stopwatch::Stopwatch;

/// Send keys through the work queue.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many
    #[arg(long)]
    keys: usize,
    /// How often; the best counts
    #[arg(long)]
    rounds: usize,
}

pub(crate) fn run(runtime: &Runtime, arguments: &Arguments) -> Result<()> {
    let keys: Arc<[Arc<str>]> = (0..arguments.keys)
        .map(|n| format!("namespace-{}/workload-{n:07}", n % 100).into())
        .collect();
    let mut best = QueueOutcome::default();
    for _ in 0..arguments.rounds {
        // On a thread of the runtime, where tasks are started without waking another one.
        let measured = |workers| runtime.block_on(runtime.spawn(through(keys.clone(), workers)));
        best = best.best(QueueOutcome {
            one_worker: measured(1)?,
            eight_workers: measured(8)?,
        });
    }
    println!("{}", serde_json::to_string(&best)?);
    Ok(())
}

/// Adds all keys, then has them taken and done. Few keys go round often, so that there is something to time.
async fn through(keys: Arc<[Arc<str>]>, workers: usize) -> f64 {
    let queue = Queue::new(Options::new());
    let turns = (200_000 / keys.len()).max(1);
    let stopwatch = Stopwatch::start();
    for _ in 0..turns {
        for key in keys.iter() {
            queue.add(key.clone());
        }
        let mut tasks = JoinSet::new();
        for worker in 0..workers {
            let extra = if worker == 0 { keys.len() % workers } else { 0 };
            let share = keys.len() / workers + extra;
            tasks.spawn(take(queue.clone(), share));
        }
        while tasks.join_next().await.is_some() {}
    }
    (keys.len() * turns) as f64 / stopwatch.elapsed().as_secs_f64()
}

/// Takes its share as a worker of a controller does: whoever has the next key at hand hands one back and takes the other at
/// once.
async fn take(queue: Queue<Arc<str>>, share: usize) {
    let mut left = share;
    while left > 0 {
        let Some(mut item) = queue.get().await else {
            return;
        };
        left -= 1;
        loop {
            if left == 0 {
                item.done();
                break;
            }
            match item.finish_then_next(Finish::Succeeded) {
                Some(next) => item = next,
                None => break,
            }
            left -= 1;
        }
    }
}
