//! `kubewright-bench-cluster`: measures a whole cluster in the process, with all controllers and simulated nodes.
//!
//! `cargo xtask bench cluster` builds it in release and runs it. Everything is measured in a process of its own, so that its
//! memory and its processor time are its own; `alive` is such a process. It is a program apart from the other benchmarks
//! because it has the allocator that `kubewright` has, and those who bring their own programs may have another.

mod alive;
mod crowd;
mod fork;
mod growth;
mod large;
mod month;
mod outcome;
mod ready;
mod table;
mod workload;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use kubewright_bench::stopwatch::Stopwatch;
use kubewright_bench::{machine, page};
use serde::de::DeserializeOwned;

use outcome::Results;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure a whole cluster in the process.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// Write the figures into this page as well
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// A tenth of everything: to see that it runs, not for figures
    #[arg(long)]
    quick: bool,
}

#[derive(Subcommand)]
enum Part {
    Alive(alive::Arguments),
}

/// How long leases are good for in the simulated month, in seconds: kubelets have 40 s by default, and then nearly all of
/// the time is spent on renewing them.
const LONG_LEASE: usize = 600;
/// How many pods are there when one more Deployment is measured.
const GROWTH: [usize; 3] = [1_000, 10_000, 50_000];

/// Measures, prints, and writes the page if that was asked for.
fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(Part::Alive(part)) = &arguments.part {
        return alive::run(part);
    }
    let before = machine::load_average();
    let divisor = if arguments.quick { 10 } else { 1 };
    let days = 30 / divisor;
    let mut results = Results {
        ready: part("ready", &[100 / divisor])?,
        crowd: part("crowd", &[1_000 / divisor, 50])?,
        fork: part("fork", &[10_000 / divisor])?,
        month: part("month", &[days, 3, 7, LONG_LEASE])?,
        again: part("month", &[days, 3, 7, LONG_LEASE])?,
        other: part("month", &[days, 3, 8, LONG_LEASE])?,
        usual: part("month", &[days.div_ceil(10), 3, 7, 40])?,
        growth: Vec::new(),
        large: part("large", &[5_000 / divisor, 50_000 / divisor])?,
    };
    for pods in GROWTH {
        let pods = pods / divisor;
        results.growth.push(part("growth", &[pods])?);
    }
    let text = table::markdown(&results, &machine::describe(&before));
    println!("{text}");
    if let Some(path) = &arguments.write {
        page::replace(path, "cluster", &text)?;
    }
    Ok(())
}

/// Runs one part in a process of its own and reads its line.
fn part<T: DeserializeOwned>(what: &str, numbers: &[usize]) -> Result<T> {
    let ourselves = std::env::current_exe().context("finding the program itself")?;
    let mut command = Command::new(ourselves);
    command.args(["alive", what]).stdin(Stdio::null());
    command.args(numbers.iter().map(usize::to_string));
    let stopwatch = Stopwatch::start();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("starting {what}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("{what} {numbers:?}: it ended with {}", output.status);
    }
    let seconds = stopwatch.elapsed().as_secs_f64();
    eprintln!("{what} {numbers:?}: {seconds:.1} s: {}", text.trim());
    serde_json::from_str(&text).with_context(|| format!("{what}: what it printed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::outcome::{Growth, Large, Month};
    use super::*;

    #[test]
    fn every_part_finds_something_out_and_the_table_tells_it() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        // Days take too long here; crates/cluster/tests/month lives through some hours.
        let month = Month {
            days: 30,
            nodes: 3,
            lease: 1_200,
            took: 9.0,
            writes: 800_000,
            leases: 700_000,
            jobs: 5_000,
            failures: 250,
            digest: "0123456789abcdef".to_owned(),
        };
        let results = Results {
            ready: runtime.block_on(ready::measure(2)).expect("it gets ready"),
            crowd: runtime.block_on(crowd::measure(3, 2)).expect("they settle"),
            fork: runtime.block_on(fork::measure(10)).expect("it forks"),
            growth: vec![Growth {
                pods: 1_000,
                median: 0.01,
                processor: 0.02,
                memory: 1_000_000,
            }],
            large: Large {
                nodes: 5_000,
                pods: 50_000,
                nodes_ready: 2.0,
                pods_ready: 60.0,
                memory: 2_000_000_000,
                peak: 3_000_000_000,
                idle: 0.25,
                idle_writes: 30_000,
            },
            again: month.clone(),
            other: month.clone(),
            usual: month.clone(),
            month,
        };
        assert!(results.ready.best > 0.0 && results.crowd.writes > 30);
        let text = table::markdown(&results, "a machine");
        assert!(
            text.contains("| 1,000 | 10.0 ms | 20.0 ms | 1.0 MB |"),
            "{text}"
        );
        assert!(text.contains("`0123456789abcdef`"), "{text}");
        assert!(
            text.contains("| 5,000 | 50,000 | 2.00 s | 60.00 s |"),
            "{text}"
        );
        assert!(text.contains("| 25 % | 30,000 |"), "{text}");
    }
}
