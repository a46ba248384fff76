//! Simulated days with cron jobs, leases and node failures, in real time.

#[path = "../../../crates/cluster/tests/month/world.rs"]
mod world;

use anyhow::{Result, anyhow};

use super::outcome::Month;
use crate::stopwatch::Stopwatch;
use world::{Span, live};

pub(crate) fn measure(days: u64, nodes: u64, seed: u64) -> Result<Month> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let stopwatch = Stopwatch::start();
    let hours = days * 24;
    let span = Span { hours, nodes, seed };
    let history = runtime
        .block_on(live(span))
        .map_err(|error| anyhow!(error))?;
    let took = stopwatch.elapsed();
    let of = |collection: &str| history.writes.get(collection).copied().unwrap_or(0);
    Ok(Month {
        days,
        nodes,
        took: took.as_secs_f64(),
        writes: history.writes.values().sum(),
        leases: of("coordination.k8s.io/leases"),
        jobs: of("batch/jobs"),
        failures: history.failures,
        digest: format!("{:016x}", history.digest),
    })
}
