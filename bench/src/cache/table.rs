//! The figures as the section of docs/benchmarks.md.

use std::fmt::Write as _;

use super::Results;
use super::outcome::Outcome;
use crate::figure::thousands;
use crate::row::{Row, Unit};
use crate::verdict::{Aim, Verdict};

const CLIENT_GO: &str = "client-go's";

/// The section.
pub(crate) fn markdown(results: &Results, machine: &str) -> String {
    let mut text = include_str!("introduction.md").trim_end().to_owned();
    let _ = write!(text, "\n\nMachine: {machine}.\n\n");
    if results.client_go.is_none() {
        let why = &results.why_no_client_go;
        let _ = write!(text, "client-go was not measured: {why}.\n\n");
    }
    let pods = thousands(results.pods as u64);
    let _ = writeln!(
        text,
        "| with {pods} pods | kubewright | kube-rs | client-go | ratio (aim) |\n|---|---:|---:|---:|---|"
    );
    for row in rows(results) {
        let _ = writeln!(text, "{row}");
    }
    growth(results, &mut text);
    queue(results, &mut text);
    let _ = write!(text, "\n{}", include_str!("bounds.md"));
    text
}

fn rows(results: &Results) -> Vec<Row> {
    let mut rows = sync_and_memory(results);
    rows.extend(events(results));
    rows.extend(reads(results));
    rows.extend(peaks(results));
    rows
}

fn sync_and_memory(results: &Results) -> Vec<Row> {
    let pods = results.pods;
    let go = results.client_go.as_ref();
    let (ours, kube) = (&results.typed, &results.kube_rs);
    let go_of = |pick: fn(&super::ClientGo) -> &Outcome| go.map(pick).copied().unwrap_or_default();
    let (typed, json) = (go_of(|go| &go.typed), go_of(|go| &go.json));
    let (dynamic, metadata) = (go_of(|go| &go.dynamic), go_of(|go| &go.metadata));
    vec![
        Row::new("sync; client-go: protobuf", Unit::Seconds)
            .figures(ours.sync_seconds, kube.sync_seconds, typed.sync_seconds)
            .than_kube_rs(Aim::AtMost(0.25))
            .than_go(CLIENT_GO, Aim::AtMost(0.6)),
        Row::new("sync; client-go: JSON", Unit::Seconds).figures(
            ours.sync_seconds,
            kube.sync_seconds,
            json.sync_seconds,
        ),
        Row::new("memory a pod, typed", Unit::Kilobytes)
            .figures(ours.a_pod(pods), kube.a_pod(pods), typed.a_pod(pods))
            .than_go(CLIENT_GO, Aim::AtMost(0.4)),
        Row::new("memory a pod, dynamic", Unit::Kilobytes)
            .figures(results.dynamic.a_pod(pods), 0.0, dynamic.a_pod(pods))
            .than_go(CLIENT_GO, Aim::AtMost(0.17)),
        Row::new("memory a pod, metadata", Unit::Kilobytes)
            .figures(results.metadata.a_pod(pods), 0.0, metadata.a_pod(pods))
            .than_go(CLIENT_GO, Aim::AtMost(0.3)),
        Row::new("memory a pod, decoded on arrival", Unit::Kilobytes).figures(
            results.decoded.a_pod(pods),
            kube.a_pod(pods),
            typed.a_pod(pods),
        ),
    ]
}

fn events(results: &Results) -> Vec<Row> {
    let (ours, kube) = (&results.typed, &results.kube_rs);
    let go = results.client_go.as_ref();
    let go = go.map(|go| go.typed).unwrap_or_default();
    vec![
        Row::new("watch events", Unit::PerSecond)
            .figures(
                ours.events_per_second,
                kube.events_per_second,
                go.events_per_second,
            )
            .than_kube_rs(Aim::AtLeast(5.0)),
        Row::new("watch events, handler decodes", Unit::PerSecond).figures(
            ours.decoded_events_per_second,
            kube.events_per_second,
            go.events_per_second,
        ),
        Row::new("event to handler, p50", Unit::Seconds)
            .figures(
                ours.latency_p50_seconds,
                kube.latency_p50_seconds,
                go.latency_p50_seconds,
            )
            .than_go(CLIENT_GO, Aim::AtMost(0.5)),
        Row::new("event to handler, p99", Unit::Seconds).figures(
            ours.latency_p99_seconds,
            kube.latency_p99_seconds,
            go.latency_p99_seconds,
        ),
        Row::new("event to handler that decodes, p50", Unit::Seconds).figures(
            ours.decoded_latency_p50_seconds,
            kube.latency_p50_seconds,
            go.latency_p50_seconds,
        ),
    ]
}

fn reads(results: &Results) -> Vec<Row> {
    let ours = &results.typed;
    let go = results.client_go.as_ref();
    let go = go.map(|go| go.typed).unwrap_or_default();
    vec![
        Row::new("get", Unit::PerSecond)
            .figures(ours.gets_per_second, 0.0, go.gets_per_second)
            .than_go(CLIENT_GO, Aim::AtLeast(4.0)),
        Row::new("get, decoded on arrival", Unit::PerSecond).figures(
            results.decoded.gets_per_second,
            0.0,
            go.gets_per_second,
        ),
        Row::new("get and decode; client-go: and copy", Unit::PerSecond).figures(
            ours.copies_per_second,
            0.0,
            go.copies_per_second,
        ),
        Row::new("by index, 20 objects", Unit::PerSecond)
            .figures(ours.few_per_second, 0.0, go.few_per_second)
            .than_go(CLIENT_GO, Aim::AtLeast(8.0)),
        Row::new(
            "by index, 20 objects, not asked for since they changed",
            Unit::PerSecond,
        )
        .figures(ours.new_few_per_second, 0.0, go.few_per_second),
        Row::new("by index, 1 in 100 objects", Unit::PerSecond)
            .figures(ours.many_per_second, 0.0, go.many_per_second)
            .than_go(CLIENT_GO, Aim::AtLeast(8.0)),
    ]
}

fn peaks(results: &Results) -> Vec<Row> {
    let ratio = |peak: u64, steady: u64| peak as f64 / steady.max(1) as f64;
    let (ours, kube) = (&results.typed, &results.kube_rs);
    let go = results.client_go.as_ref();
    let go = go.map(|go| go.typed).unwrap_or_default();
    let row = |what, peak: fn(&Outcome) -> (u64, u64)| {
        let of = |outcome: &Outcome| {
            let (peak, steady) = peak(outcome);
            ratio(peak, steady)
        };
        Row::new(what, Unit::Ratio)
            .figures(of(ours), of(kube), of(&go))
            .than(1.0, "steady", Aim::AtMost(1.1))
    };
    vec![
        row("peak to steady, sync", |o| (o.peak, o.steady)),
        row("peak to steady, relist", |o| {
            (o.relist_peak, o.relist_steady)
        }),
    ]
}

fn growth(results: &Results, text: &mut String) {
    text.push_str(
        "\n| pods | sync | memory a pod | get | by index, 20 objects |\n|---:|---:|---:|---:|---:|\n",
    );
    for (pods, outcome) in &results.growth {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            thousands(*pods as u64),
            Unit::Seconds.show(outcome.sync_seconds),
            Unit::Kilobytes.show(outcome.a_pod(*pods)),
            Unit::PerSecond.show(outcome.gets_per_second),
            Unit::PerSecond.show(outcome.few_per_second),
        );
    }
}

fn queue(results: &Results, text: &mut String) {
    text.push_str("\n| keys through the queue, workers | kubewright | client-go | ratio (aim) |\n|---:|---:|---:|---|\n");
    for (keys, ours, theirs) in &results.queue {
        let theirs = theirs.unwrap_or_default();
        for (workers, ours, theirs) in [
            (1, ours.one_worker, theirs.one_worker),
            (8, ours.eight_workers, theirs.eight_workers),
        ] {
            let verdict = Verdict::new(ours, theirs, CLIENT_GO, Aim::AtLeast(1.0));
            let _ = writeln!(
                text,
                "| {}, {workers} | {} | {} | {} |",
                thousands(*keys as u64),
                Unit::PerSecond.show(ours),
                Unit::PerSecond.show(theirs),
                verdict.map_or(String::new(), |verdict| verdict.to_string()),
            );
        }
    }
    if let Some((_, ours, _)) = results.queue.last() {
        let aim = Aim::AtLeast(1.0);
        let verdict = Verdict::new(ours.eight_workers, ours.one_worker, "one worker's", aim);
        if let Some(verdict) = verdict {
            let _ = writeln!(text, "\nEight workers with the most keys: {verdict}.");
        }
    }
}
