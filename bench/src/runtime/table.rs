//! The figures as the section of docs/benchmarks.md.

use std::fmt::Write as _;

use super::{Best, Figures, Results};
use crate::figure::thousands;
use crate::row::{Row, Unit};
use crate::verdict::Aim;

const CONTROLLER_RUNTIME: &str = "controller-runtime's";

/// The section.
pub(super) fn markdown(results: &Results, machine: &str) -> String {
    let mut text = include_str!("introduction.md").trim_end().to_owned();
    let _ = write!(text, "\n\nMachine: {machine}.\n\n");
    if results.controller_runtime.is_none() {
        let why = &results.why_no_controller_runtime;
        let _ = write!(text, "controller-runtime was not measured: {why}.\n\n");
    }
    text.push_str(
        "| what | kubewright | kube-rs | controller-runtime | ratio (aim) |\n|---|---:|---:|---:|---|\n",
    );
    for row in rows(results) {
        let _ = writeln!(text, "{row}");
    }
    workers(results, &mut text);
    let _ = write!(text, "\n{}", include_str!("bounds.md"));
    text
}

fn rows(results: &Results) -> Vec<Row> {
    let mut rows = speed(results);
    rows.extend(flight(results));
    rows.extend(operator(results));
    rows
}

fn speed(results: &Results) -> Vec<Row> {
    let row = |what, unit, figure: fn(&Figures) -> f64| row(results, what, unit, figure);
    vec![
        row("no-op reconciles", Unit::PerSecond, |f| f.keys.per_second)
            .than_go(CONTROLLER_RUNTIME, Aim::AtLeast(2.0)),
        row(
            "no-op reconciles that have their object",
            Unit::PerSecond,
            |f| f.objects.per_second,
        )
        .than_go(CONTROLLER_RUNTIME, Aim::AtLeast(2.0)),
        row("event to reconcile, p50", Unit::Seconds, |f| {
            f.latency.latency_p50_seconds
        })
        .than_go(CONTROLLER_RUNTIME, Aim::AtMost(0.5)),
        row("event to reconcile, p99", Unit::Seconds, |f| {
            f.latency.latency_p99_seconds
        })
        .than_go(CONTROLLER_RUNTIME, Aim::AtMost(1.0)),
    ]
}

fn flight(results: &Results) -> Vec<Row> {
    let flights = thousands(results.amount.flights as u64);
    let row = |what: String, unit, figure: fn(&Figures) -> f64| row(results, what, unit, figure);
    vec![
        row(
            "key to reconcile, p50, alone".to_owned(),
            Unit::Seconds,
            |f| f.flight.alone_p50_seconds,
        ),
        row(
            format!("the same with {flights} in flight"),
            Unit::Seconds,
            |f| f.flight.crowded_p50_seconds,
        ),
        row(
            format!("p99 with {flights} in flight"),
            Unit::Seconds,
            |f| f.flight.crowded_p99_seconds,
        ),
        row("slowed by those in flight".to_owned(), Unit::Ratio, |f| {
            f.flight.slowed()
        })
        .than(1.0, "alone", Aim::AtMost(1.5)),
        row(
            format!("memory with {flights} in flight"),
            Unit::Megabytes,
            |f| f.flight.flight_bytes as f64,
        ),
    ]
}

fn operator(results: &Results) -> Vec<Row> {
    let row = |what, unit, figure: fn(&Figures) -> f64| row(results, what, unit, figure);
    vec![
        row("Foo operator, memory at rest", Unit::Megabytes, |f| {
            f.operator.memory as f64
        })
        .than_go(CONTROLLER_RUNTIME, Aim::AtMost(0.5)),
        row("Foo operator, size of the program", Unit::Megabytes, |f| {
            f.operator.program as f64
        })
        .than_go(CONTROLLER_RUNTIME, Aim::AtMost(0.5)),
    ]
}

fn row(results: &Results, what: impl Into<String>, unit: Unit, figure: fn(&Figures) -> f64) -> Row {
    let theirs = results.controller_runtime.as_ref().map_or(0.0, figure);
    let (ours, kube_rs) = (figure(&results.ours), figure(&results.kube_rs));
    Row::new(what, unit).figures(ours, kube_rs, theirs)
}

/// With how many workers each was best.
fn workers(results: &Results, text: &mut String) {
    let theirs = results.controller_runtime.unwrap_or_default();
    let said = |name: &str, keys: Best, objects: Best| {
        let said: Vec<String> = [(keys, "keys"), (objects, "objects")]
            .into_iter()
            .filter(|(best, _)| best.workers > 0)
            .map(|(best, of)| format!("{} for {of}", best.workers))
            .collect();
        (!said.is_empty()).then(|| format!("{name} {}", said.join(" and ")))
    };
    let all = [
        said("kubewright", results.ours.keys, results.ours.objects),
        said("kube-rs", results.kube_rs.keys, results.kube_rs.objects),
        said("controller-runtime", theirs.keys, theirs.objects),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    let _ = writeln!(
        text,
        "\nWorkers with which the rates were reached: {}.",
        all.join(", ")
    );
}
