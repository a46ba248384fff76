//! The section of docs/benchmarks.md about clusters.

use std::fmt::Write as _;
use std::time::Duration;

use kubewright_bench::figure::{Figure, Value, thousands};

use crate::outcome::{Crowd, Earlier, Fork, Growth, Large, Month, Ready, Results};

const INTRODUCTION: &str = "\
## A cluster in the process

Written by `cargo xtask bench cluster --write`; the figures are of one run. Server, all controllers, the scheduler and the
simulated nodes are one process, which is what is measured; each part is a process of its own. Times are real unless they
are said to be simulated. Memory is resident.
";

pub(crate) fn markdown(results: &Results, machine: &str) -> String {
    let mut text = format!(
        "{INTRODUCTION}\nMachine: {machine}.\n\n| what | kubewright | aim |\n|---|---:|---:|\n"
    );
    for Figure { what, value, aim } in figures(results) {
        let aim = aim.map(|aim| format!("≤ {aim}")).unwrap_or_default();
        let _ = writeln!(text, "| {what} | {value} | {aim} |");
    }
    if let Some(earlier) = &results.earlier {
        text += &comparison(results, earlier);
    }
    text + &growth(&results.growth) + &large(&results.large) + &month(results)
}

/// The rows that every commit has, beside those of an earlier one.
fn comparison(results: &Results, earlier: &Earlier) -> String {
    let days = |month: &Month| time(format!("{} simulated days", month.days), month.took);
    let rows = |ready: &Ready, crowd: &Crowd, month: &Month| -> Vec<Figure> {
        let mut many = many(crowd);
        // A commit that writes less is not a worse one.
        many.retain(|figure| !matches!(figure.value, Value::PerSecond(_)));
        let figures = deployments(ready).into_iter().chain(many);
        figures.chain([days(month)]).collect()
    };
    let ours = rows(&results.ready, &results.crowd, &results.month);
    let theirs = rows(&earlier.ready, &earlier.crowd, &earlier.month);
    let mut text = format!(
        "\n### Beside an earlier commit\n\nThe program of that commit measured itself in the same run, on the same machine.\n\n\
         | what | kubewright | {} | we are better by |\n|---|---:|---:|---:|\n",
        earlier.name
    );
    for (our, their) in ours.iter().zip(&theirs) {
        let ratio = our.value.better_than(their.value);
        let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.2} x"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {ratio} |",
            our.what, our.value, their.value
        );
    }
    text
}

fn figures(results: &Results) -> Vec<Figure> {
    let figures = deployments(&results.ready).into_iter();
    let figures = figures.chain(many(&results.crowd));
    figures.chain(forks(&results.fork)).collect()
}

fn deployments(ready: &Ready) -> Vec<Figure> {
    let times = ready.times;
    vec![
        time("start of a cluster with 3 nodes", ready.start),
        time(
            format!("Deployment of 3 until ready, best of {times}"),
            ready.best,
        ),
        time(
            format!("Deployment of 3 until ready, median of {times}"),
            ready.median,
        )
        .aim(Value::Time(Duration::from_millis(50))),
    ]
}

fn many(crowd: &Crowd) -> Vec<Figure> {
    let many = format!(
        "{} Deployments of 3 on {} nodes",
        thousands(crowd.deployments as u64),
        crowd.nodes
    );
    vec![
        time(format!("{many} until all are ready"), crowd.settled)
            .aim(Value::Time(Duration::from_secs(30))),
        Figure::new(format!("{many}, memory"), Value::Bytes(crowd.memory)),
        Figure::new(format!("{many}, most memory"), Value::Bytes(crowd.peak))
            .aim(Value::Bytes(600_000_000)),
        Figure::rate(
            format!("{many}, writes"),
            usize::try_from(crowd.writes).unwrap_or(usize::MAX),
            Duration::from_secs_f64(crowd.settled),
        ),
    ]
}

fn forks(fork: &Fork) -> Vec<Figure> {
    let objects = thousands(fork.objects as u64);
    vec![
        time(
            format!("fork of a cluster with {objects} objects, best of 20"),
            fork.best,
        ),
        time(
            format!("fork of a cluster with {objects} objects, median of 20"),
            fork.median,
        )
        .aim(Value::Time(Duration::from_millis(5))),
    ]
}

fn time(what: impl Into<String>, seconds: f64) -> Figure {
    Figure::time(what, Duration::from_secs_f64(seconds))
}

fn value(seconds: f64) -> Value {
    Value::Time(Duration::from_secs_f64(seconds))
}

fn growth(rows: &[Growth]) -> String {
    let mut text = "\n### One more Deployment of 3\n\nOn 500 nodes, in a namespace that has so many pods already. No controller \
        walks over the pods that are there; what is left of a difference is memory, of which more is cold. With the allocator of \
        glibc instead of `mimalloc` the difference between the first and the last row was 28 %, most of it within the allocator.\n\n\
        | pods present | until ready, median of 50 | processor time | memory |\n|---:|---:|---:|---:|\n"
        .to_owned();
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            thousands(row.pods as u64),
            value(row.median),
            value(row.processor),
            Value::Bytes(row.memory)
        );
    }
    text
}

fn large(large: &Large) -> String {
    format!(
        "\n### A large cluster\n\nAll nodes and pods of the largest cluster that Kubernetes promises to carry, a third of its pods. \
         Idle is the share of one processor that the cluster takes in a minute in which nobody asks for anything: nodes renew their \
         leases, which is nearly all of the writes.\n\n\
         | nodes | pods | until nodes are ready | until pods are ready | memory | most memory | idle | writes in that minute |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|\n| {} | {} | {} | {} | {} | {} | {:.0} % | {} |\n",
        thousands(large.nodes as u64),
        thousands(large.pods as u64),
        value(large.nodes_ready),
        value(large.pods_ready),
        Value::Bytes(large.memory),
        Value::Bytes(large.peak),
        large.idle * 100.0,
        thousands(large.idle_writes)
    )
}

fn month(results: &Results) -> String {
    let Month { days, nodes, .. } = results.month;
    let mut text = format!(
        "\n### {days} simulated days\n\n{nodes} nodes, of which one falls silent about once a day and comes back; a Deployment of 3 \
         with a Service; four CronJobs with about twelve jobs a day. Kubelets renew a lease when a quarter of its time has passed; by \
         default that is 40 s, they report every five minutes, and most of the real time goes into renewals. With long leases they \
         report by the hour. The digest depends on every byte of \
         every write and on their order. Aim: {days} days under 10 s, and the same digest from the same seed.\n\n\
         | days | lease | seed | real time | a day | writes | of leases | of jobs | node failures | digest |\n\
         |---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    );
    for (seed, month) in [
        ("7", &results.month),
        ("7", &results.again),
        ("8", &results.other),
        ("7", &results.usual),
    ] {
        let _ = writeln!(
            text,
            "| {} | {} s | {seed} | {} | {} | {} | {} | {} | {} | `{}` |",
            month.days,
            month.lease,
            value(month.took),
            value(month.took / month.days.max(1) as f64),
            thousands(month.writes),
            thousands(month.leases),
            thousands(month.jobs),
            month.failures,
            month.digest
        );
    }
    text
}
