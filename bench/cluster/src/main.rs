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
mod program;
mod ready;
mod table;
mod workload;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use kubewright_bench::{machine, page};

use outcome::{Earlier, Results};
use program::Program;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure a whole cluster in the process.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,
    /// The same program of an earlier commit, which measures the rows that all commits have
    #[arg(long, value_name = "PROGRAM")]
    before: Option<PathBuf>,
    /// What the earlier commit is called in the table
    #[arg(long, value_name = "NAME", default_value = "before")]
    before_name: String,
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
    let results = measure(&arguments)?;
    let text = table::markdown(&results, &machine::describe(&before));
    println!("{text}");
    // A page that shows two histories of one seed would be a page about a defect.
    results.check_determinism()?;
    if let Some(path) = &arguments.write {
        page::replace(path, "cluster", &text)?;
    }
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<Results> {
    let divisor = if arguments.quick { 10 } else { 1 };
    let days = 30 / divisor;
    let (ready, crowd) = ([100 / divisor], [1_000 / divisor, 50]);
    let month = [days, 3, 7, LONG_LEASE];
    let ours = Program::ourselves()?;
    let mut results = Results {
        ready: ours.part("ready", &ready)?,
        crowd: ours.part("crowd", &crowd)?,
        month: ours.part("month", &month)?,
        // Right after the same parts of ours, so that the machine is in the same state.
        earlier: match &arguments.before {
            Some(path) => {
                let program = Program::earlier(&arguments.before_name, path);
                Some(Earlier {
                    ready: program.part("ready", &ready)?,
                    crowd: program.part("crowd", &crowd)?,
                    month: program.part("month", &month)?,
                    name: program.name,
                })
            }
            None => None,
        },
        again: ours.part("month", &month)?,
        other: ours.part("month", &[days, 3, 8, LONG_LEASE])?,
        usual: ours.part("month", &[days.div_ceil(10), 3, 7, 40])?,
        fork: ours.part("fork", &[10_000 / divisor])?,
        growth: Vec::new(),
        large: ours.part("large", &[5_000 / divisor, 50_000 / divisor])?,
    };
    for pods in GROWTH {
        let pods = pods / divisor;
        results.growth.push(ours.part("growth", &[pods])?);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::outcome::Month;
    use super::*;

    /// Days take too long here; crates/cluster/tests/month lives through some hours.
    fn month() -> Month {
        Month {
            days: 30,
            nodes: 3,
            lease: 1_200,
            took: 9.0,
            writes: 800_000,
            leases: 700_000,
            jobs: 5_000,
            failures: 250,
            digest: "0123456789abcdef".to_owned(),
        }
    }

    /// Figures of a machine that is nobody's.
    fn results() -> Results {
        let ready =
            r#"{"times": 100, "best": 0.004, "median": 0.005, "worst": 0.01, "start": 0.04}"#;
        let crowd = r#"{"deployments": 1000, "nodes": 50, "settled": 3.0, "memory": 290000000,
            "peak": 300000000, "writes": 32000}"#;
        let fork = r#"{"objects": 10000, "best": 0.0003, "median": 0.0004, "worst": 0.001}"#;
        let growth = r#"{"pods": 1000, "median": 0.01, "processor": 0.02, "memory": 1000000}"#;
        let large = r#"{"nodes": 5000, "pods": 50000, "nodes_ready": 2.0, "pods_ready": 60.0,
            "memory": 2000000000, "peak": 3000000000, "idle": 0.25, "idle_writes": 30000}"#;
        Results {
            ready: serde_json::from_str(ready).expect("an outcome"),
            crowd: serde_json::from_str(crowd).expect("an outcome"),
            fork: serde_json::from_str(fork).expect("an outcome"),
            growth: vec![serde_json::from_str(growth).expect("an outcome")],
            large: serde_json::from_str(large).expect("an outcome"),
            earlier: None,
            again: month(),
            other: month(),
            usual: month(),
            month: month(),
        }
    }

    #[test]
    fn every_part_finds_something_out() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let ready = runtime.block_on(ready::measure(2)).expect("it gets ready");
        let crowd = runtime.block_on(crowd::measure(3, 2)).expect("they settle");
        let fork = runtime.block_on(fork::measure(10)).expect("it forks");
        assert!(ready.best > 0.0 && fork.best > 0.0 && crowd.writes > 30);
    }

    #[test]
    fn table_has_a_row_for_every_figure() {
        let text = table::markdown(&results(), "a machine");
        for row in [
            "| 1,000 | 10.0 ms | 20.0 ms | 1.0 MB |",
            "`0123456789abcdef`",
            "| 5,000 | 50,000 | 2.00 s | 60.00 s |",
            "| 25 % | 30,000 |",
        ] {
            assert!(text.contains(row), "{row} is not in {text}");
        }
        assert!(!text.contains("earlier commit"), "{text}");
    }

    #[test]
    fn rows_of_an_earlier_commit_stand_beside_ours_with_the_ratio() {
        let mut results = results();
        let (mut ready, mut crowd, mut slower) =
            (results.ready.clone(), results.crowd.clone(), month());
        (ready.start, crowd.settled, slower.took) = (0.08, 1.5, 13.5);
        results.earlier = Some(Earlier {
            name: "9d224f5a".to_owned(),
            ready,
            crowd,
            month: slower,
        });
        let text = table::markdown(&results, "a machine");
        for row in [
            "| what | kubewright | 9d224f5a | we are better by |",
            "| start of a cluster with 3 nodes | 40.0 ms | 80.0 ms | 2.00 x |",
            "| 1,000 Deployments of 3 on 50 nodes until all are ready | 3.00 s | 1.50 s | 0.50 x |",
            "| 30 simulated days | 9.00 s | 13.50 s | 1.50 x |",
        ] {
            assert!(text.contains(row), "{row} is not in {text}");
        }
    }

    #[test]
    fn two_histories_of_one_seed_fail_the_run() {
        let mut results = results();
        results.other.digest = "another seed".to_owned();
        results
            .check_determinism()
            .expect("seed 8 has a history of its own");
        results.again.digest = "fedcba9876543210".to_owned();
        let error = results
            .check_determinism()
            .expect_err("seed 7 has two histories");
        let expected = "seed 7 has two histories: 0123456789abcdef and fedcba9876543210";
        assert_eq!(error.to_string(), expected);
    }
}
