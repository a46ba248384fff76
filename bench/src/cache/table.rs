//! The figures as the section of docs/benchmarks.md.

use std::fmt::Write as _;
use std::time::Duration;

use super::Results;
use super::outcome::Outcome;
use super::verdict::{Aim, Verdict};
use crate::figure::{Value, thousands};

const KUBE_RS: &str = "kube-rs'";
const CLIENT_GO: &str = "client-go's";

/// A line of the table.
struct Row {
    what: &'static str,
    ours: f64,
    kube_rs: f64,
    client_go: f64,
    unit: Unit,
    aims: Vec<Option<Verdict>>,
}

/// How a figure is written.
#[derive(Clone, Copy)]
enum Unit {
    Seconds,
    PerSecond,
    /// Bytes for each pod.
    Kilobytes,
    Ratio,
}

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
            .than_client_go(Aim::AtMost(0.6)),
        Row::new("sync; client-go: JSON", Unit::Seconds).figures(
            ours.sync_seconds,
            kube.sync_seconds,
            json.sync_seconds,
        ),
        Row::new("memory a pod, typed", Unit::Kilobytes)
            .figures(ours.a_pod(pods), kube.a_pod(pods), typed.a_pod(pods))
            .than_client_go(Aim::AtMost(0.4)),
        Row::new("memory a pod, dynamic", Unit::Kilobytes)
            .figures(results.dynamic.a_pod(pods), 0.0, dynamic.a_pod(pods))
            .than_client_go(Aim::AtMost(0.17)),
        Row::new("memory a pod, metadata", Unit::Kilobytes)
            .figures(results.metadata.a_pod(pods), 0.0, metadata.a_pod(pods))
            .than_client_go(Aim::AtMost(0.3)),
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
            .than_client_go(Aim::AtMost(0.5)),
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
            .than_client_go(Aim::AtLeast(4.0)),
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
            .than_client_go(Aim::AtLeast(8.0)),
        Row::new(
            "by index, 20 objects, not asked for since they changed",
            Unit::PerSecond,
        )
        .figures(ours.new_few_per_second, 0.0, go.few_per_second),
        Row::new("by index, 1 in 100 objects", Unit::PerSecond)
            .figures(ours.many_per_second, 0.0, go.many_per_second)
            .than_client_go(Aim::AtLeast(8.0)),
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
            let verdict = Verdict::new(ours, theirs, CLIENT_GO, Aim::AtLeast(4.0));
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

impl Row {
    fn new(what: &'static str, unit: Unit) -> Self {
        Self {
            what,
            ours: 0.0,
            kube_rs: 0.0,
            client_go: 0.0,
            unit,
            aims: Vec::new(),
        }
    }

    fn figures(mut self, ours: f64, kube_rs: f64, client_go: f64) -> Self {
        (self.ours, self.kube_rs, self.client_go) = (ours, kube_rs, client_go);
        self
    }

    fn than_kube_rs(self, aim: Aim) -> Self {
        let other = self.kube_rs;
        self.than(other, KUBE_RS, aim)
    }

    fn than_client_go(self, aim: Aim) -> Self {
        let other = self.client_go;
        self.than(other, CLIENT_GO, aim)
    }

    fn than(mut self, other: f64, of: &'static str, aim: Aim) -> Self {
        self.aims.push(Verdict::new(self.ours, other, of, aim));
        self
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |figure| self.unit.show(figure);
        let aims: Vec<String> = self.aims.iter().flatten().map(Verdict::to_string).collect();
        write!(
            f,
            "| {} | {} | {} | {} | {} |",
            self.what,
            show(self.ours),
            show(self.kube_rs),
            show(self.client_go),
            aims.join(", ")
        )
    }
}

impl Unit {
    /// The figure; nothing when it was not measured.
    fn show(self, figure: f64) -> String {
        if figure <= 0.0 {
            return String::new();
        }
        match self {
            Self::Seconds => Value::Time(Duration::from_secs_f64(figure)).to_string(),
            Self::PerSecond => Value::PerSecond(figure).to_string(),
            Self::Kilobytes => format!("{:.2} KB", figure / 1e3),
            Self::Ratio => format!("{figure:.2}"),
        }
    }
}
