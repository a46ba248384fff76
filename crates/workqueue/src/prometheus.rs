//! Statistics in the Prometheus text format, under the names of client-go's `workqueue` metrics.
//!
//! | series | type | labels |
//! |---|---|---|
//! | `workqueue_depth` | gauge | `name`, and `priority` unless priorities are ignored |
//! | `workqueue_adds_total` | counter | `name` |
//! | `workqueue_queue_duration_seconds` | histogram | `name` |
//! | `workqueue_work_duration_seconds` | histogram | `name` |
//! | `workqueue_unfinished_work_seconds` | gauge | `name` |
//! | `workqueue_longest_running_processor_seconds` | gauge | `name` |
//! | `workqueue_retries_total` | counter | `name` |
//!
//! Histogram bounds are [`Histogram::BOUNDS`]: ten nanoseconds, growing tenfold to a thousand seconds. As in client-go, a
//! queue without a name is not reported.

use std::fmt::{self, Display, Write};

use crate::stats::{Histogram, Stats};

/// More priorities than this share one series, as in controller-runtime.
const PRIORITIES_REPORTED: usize = 25;

/// Writes all series of these queues.
///
/// ```
/// use kubewright_workqueue::{Options, Queue, prometheus};
///
/// let queue = Queue::<&str>::new(Options::new().name("pods"));
/// let mut text = String::new();
/// prometheus::write(&[queue.stats()], &mut text).unwrap();
/// assert!(text.contains("workqueue_adds_total{name=\"pods\"} 0"));
/// ```
///
/// # Errors
/// Only those of `out`.
pub fn write(queues: &[Stats], out: &mut impl Write) -> fmt::Result {
    let named: Vec<&Stats> = queues.iter().filter(|s| !s.name.is_empty()).collect();
    header(out, "depth", "gauge", "Keys that have yet to run.")?;
    for stats in &named {
        depth(out, stats)?;
    }
    for series in &SERIES {
        header(out, series.name, series.kind, series.help)?;
        for stats in &named {
            let labels = Labels::of(stats);
            match series.value {
                Value::Number(read) => line(out, series.name, &labels, read(stats))?,
                Value::Durations(read) => histogram(out, series.name, &labels, read(stats))?,
            }
        }
    }
    Ok(())
}

struct Series {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: Value,
}

enum Value {
    Number(fn(&Stats) -> f64),
    Durations(fn(&Stats) -> &Histogram),
}

/// All but the depth, which has labels of its own.
static SERIES: [Series; 6] = [
    Series {
        name: "adds_total",
        kind: "counter",
        help: "Adds that asked for a run.",
        value: Value::Number(|stats| stats.adds as f64),
    },
    Series {
        name: "queue_duration_seconds",
        kind: "histogram",
        help: "Seconds from the add of a key to the start of its run.",
        value: Value::Durations(|stats| &stats.queue_duration),
    },
    Series {
        name: "work_duration_seconds",
        kind: "histogram",
        help: "Seconds from the start of a run to its end.",
        value: Value::Durations(|stats| &stats.work_duration),
    },
    Series {
        name: "unfinished_work_seconds",
        kind: "gauge",
        help: "Seconds spent so far in runs that have not ended, summed.",
        value: Value::Number(|stats| stats.unfinished_work.as_secs_f64()),
    },
    Series {
        name: "longest_running_processor_seconds",
        kind: "gauge",
        help: "Seconds spent so far in the longest run that has not ended.",
        value: Value::Number(|stats| stats.longest_running.as_secs_f64()),
    },
    Series {
        name: "retries_total",
        kind: "counter",
        help: "Delayed and rate-limited adds.",
        value: Value::Number(|stats| stats.retries as f64),
    },
];

/// Label pairs, already escaped, without the braces.
struct Labels(String);

impl Labels {
    fn of(stats: &Stats) -> Self {
        let name = stats
            .name
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        Self(format!("name=\"{name}\""))
    }

    fn and(&self, name: &str, value: impl Display) -> Self {
        Self(format!("{},{name}=\"{value}\"", self.0))
    }
}

fn depth(out: &mut impl Write, stats: &Stats) -> fmt::Result {
    let labels = Labels::of(stats);
    if stats.depth_by_priority.is_empty() {
        return line(out, "depth", &labels, stats.depth as f64);
    }
    let reported = stats.depth_by_priority.len().min(PRIORITIES_REPORTED);
    let (reported, rest) = stats.depth_by_priority.split_at(reported);
    for (priority, depth) in reported {
        let labels = labels.and("priority", priority.0);
        line(out, "depth", &labels, *depth as f64)?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    let labels = labels.and("priority", "exceeded_cardinality_limit");
    let depth: usize = rest.iter().map(|(_, depth)| depth).sum();
    line(out, "depth", &labels, depth as f64)
}

fn histogram(
    out: &mut impl Write,
    name: &str,
    labels: &Labels,
    histogram: &Histogram,
) -> fmt::Result {
    let bucket = format!("{name}_bucket");
    for (bound, count) in histogram.cumulative() {
        line(out, &bucket, &labels.and("le", bound), count as f64)?;
    }
    let count = histogram.count() as f64;
    line(out, &bucket, &labels.and("le", "+Inf"), count)?;
    let sum = histogram.sum().as_secs_f64();
    line(out, &format!("{name}_sum"), labels, sum)?;
    line(out, &format!("{name}_count"), labels, count)
}

fn header(out: &mut impl Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP workqueue_{name} {help}")?;
    writeln!(out, "# TYPE workqueue_{name} {kind}")
}

fn line(out: &mut impl Write, name: &str, labels: &Labels, value: f64) -> fmt::Result {
    writeln!(out, "workqueue_{name}{{{}}} {value}", labels.0)
}

#[cfg(test)]
mod tests;
