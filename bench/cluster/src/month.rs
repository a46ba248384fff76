//! Simulated days with cron jobs, leases and node failures, in real time.

#[path = "../../../crates/cluster/tests/month/world.rs"]
mod world;

use std::time::Duration;

use anyhow::{Result, anyhow};
use kubewright_bench::stopwatch::Stopwatch;

use crate::outcome::Month;
use world::{Span, live};

/// About once a day a node falls silent, for up to an hour.
pub(crate) fn measure(days: u64, nodes: u64, seed: u64, lease: u64) -> Result<Month> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let stopwatch = Stopwatch::start();
    let span = Span {
        hours: days * 24,
        nodes,
        seed,
        lease: Duration::from_secs(lease),
        report: Duration::from_secs(if lease > 40 { 3_600 } else { 300 }),
        calm: 720..2_160,
        outage: 1..60,
    };
    let history = runtime
        .block_on(live(span))
        .map_err(|error| anyhow!(error))?;
    let took = stopwatch.elapsed();
    let of = |collection: &str| history.writes.get(collection).copied().unwrap_or(0);
    Ok(Month {
        days,
        nodes,
        lease,
        took: took.as_secs_f64(),
        writes: history.writes.values().sum(),
        leases: of("coordination.k8s.io/leases"),
        jobs: of("batch/jobs"),
        failures: history.failures,
        digest: format!("{:016x}", history.digest),
    })
}
