//! What the metrics of an operator say about its queues. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

/// The state of a queue, as its metrics have it.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub(crate) struct Queue {
    /// Keys that wait.
    pub(crate) depth: f64,
    pub(crate) adds: f64,
    pub(crate) retries: f64,
    /// How long the longest reconcile under way has run, in seconds.
    pub(crate) longest: f64,
}

/// Reads the queues from metrics in the Prometheus text format, under the names of client-go.
pub(crate) fn queues(text: &str) -> BTreeMap<String, Queue> {
    let mut queues: BTreeMap<String, Queue> = BTreeMap::new();
    for line in text.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let Some((metric, labels)) = series.split_once('{') else {
            continue;
        };
        let (Some(metric), Ok(value)) = (metric.strip_prefix("workqueue_"), value.parse::<f64>())
        else {
            continue;
        };
        let Some(name) = label(labels, "name") else {
            continue;
        };
        let queue = queues.entry(name.to_owned()).or_default();
        match metric {
            // A series for each priority.
            "depth" => queue.depth += value,
            "adds_total" => queue.adds = value,
            "retries_total" => queue.retries = value,
            "longest_running_processor_seconds" => queue.longest = value,
            _ => {}
        }
    }
    queues
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = labels.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_and_priorities_added_up() {
        let text = "# TYPE workqueue_depth gauge\n\
            workqueue_depth{name=\"web\",priority=\"0\"} 3\nworkqueue_depth{name=\"web\",priority=\"-100\"} 4\n\
            workqueue_retries_total{name=\"web\"} 2\nworkqueue_adds_total{name=\"web\"} 1e2\nother{name=\"web\"} 9\nbroken";
        let queues = queues(text);
        let expected = Queue {
            depth: 7.0,
            adds: 100.0,
            retries: 2.0,
            longest: 0.0,
        };
        assert_eq!(queues.get("web"), Some(&expected));
        assert_eq!(queues.len(), 1);
    }
}
