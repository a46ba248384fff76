//! What a kubelet reports of the use of its pods, at `/stats/summary` and `/metrics/resource`. Pure.
//!
//! Only what is declared or measured is there: CPU and memory of containers, and their sums.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::Timestamp;
use kubewright_server::Usage;
use serde_json::{Value, json};

/// What one container uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) pod: PodName,
    pub(super) container: String,
    /// When its current run began.
    pub(super) started: Timestamp,
    pub(super) usage: Usage,
    /// The processor time of this run, in nanoseconds.
    pub(super) core_nanos: u64,
}

/// The pod of a sample.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodName {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// When its node took it up.
    pub(super) since: Timestamp,
}

/// Processor time of the containers of one node, added up from what they used whenever somebody asked.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<(String, String), Counter>);

#[derive(Debug)]
struct Counter {
    started: Timestamp,
    at: Timestamp,
    cpu: i64,
    nanos: u64,
}

impl Counters {
    /// Takes up what containers use now, and gives the time of each. Containers that are not named are forgotten.
    pub(super) fn advance(&mut self, samples: &mut [Sample], now: Timestamp) {
        let mut before = std::mem::take(&mut self.0);
        for sample in samples {
            let key = (sample.pod.uid.clone(), sample.container.clone());
            let known = before.remove(&key);
            // Nothing is known of the time before somebody asked: it is taken for what is used now.
            let known = known.filter(|known| known.started == sample.started);
            let mut counter = known.unwrap_or(Counter {
                started: sample.started,
                at: sample.started,
                cpu: sample.usage.cpu,
                nanos: 0,
            });
            counter.nanos = counter
                .nanos
                .saturating_add(used(counter.cpu, counter.at, now));
            (counter.at, counter.cpu) = (now, sample.usage.cpu);
            sample.core_nanos = counter.nanos;
            self.0.insert(key, counter);
        }
    }
}

/// The processor time in nanoseconds that so many thousandths of a core are from one moment to another.
fn used(cpu: i64, from: Timestamp, to: Timestamp) -> u64 {
    let elapsed = to.as_nanosecond().saturating_sub(from.as_nanosecond());
    u64::try_from(elapsed.saturating_mul(i128::from(cpu)) / 1000).unwrap_or(0)
}

/// A node as its summary shows it.
#[derive(Debug, Clone)]
pub(super) struct NodeFacts {
    pub(super) name: String,
    pub(super) since: Timestamp,
    /// The memory that it has for pods, in bytes.
    pub(super) memory: i64,
}

/// `/stats/summary`, after `k8s.io/kubelet/pkg/apis/stats/v1alpha1`.
pub(super) fn summary(node: &NodeFacts, samples: &[Sample], now: Timestamp) -> Value {
    let amounts = |samples: &[&Sample]| {
        let sum = total(samples);
        let time = format!("{now:.0}");
        let cpu = json!({"time": time, "usageNanoCores": sum.cpu.saturating_mul(1_000_000),
            "usageCoreNanoSeconds": sum.core_nanos});
        let memory = json!({"time": time, "usageBytes": sum.memory, "workingSetBytes": sum.memory});
        (cpu, memory)
    };
    let pods = by_pod(samples).into_iter().map(|(pod, samples)| {
        let containers = samples.iter().map(|sample| {
            let (cpu, memory) = amounts(&[sample]);
            let started = format!("{:.0}", sample.started);
            json!({"name": sample.container, "startTime": started, "cpu": cpu, "memory": memory})
        });
        let containers: Vec<Value> = containers.collect();
        let (cpu, memory) = amounts(&samples);
        json!({
            "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "startTime": format!("{:.0}", pod.since),
            "containers": containers, "cpu": cpu, "memory": memory,
        })
    });
    let pods: Vec<Value> = pods.collect();
    let (cpu, mut memory) = amounts(&samples.iter().collect::<Vec<_>>());
    let used = memory["workingSetBytes"].as_i64().unwrap_or(0);
    memory["availableBytes"] = json!(node.memory.saturating_sub(used).max(0));
    let since = format!("{:.0}", node.since);
    json!({
        "node": {"nodeName": node.name, "startTime": since, "cpu": cpu, "memory": memory},
        "pods": pods,
    })
}

/// `/metrics/resource`, after `collectors/resource_metrics.go`: the families in the order of their names.
pub(super) fn metrics(samples: &[Sample], now: Timestamp) -> String {
    let mut text = String::new();
    let containers: Vec<(String, Vec<&Sample>)> = samples
        .iter()
        .map(|sample| {
            let (pod, container) = (&sample.pod, &sample.container);
            let labels = format!(
                "{{container={container:?},namespace={:?},pod={:?}}}",
                pod.namespace, pod.name
            );
            (labels, vec![sample])
        })
        .collect();
    let pods: Vec<(String, Vec<&Sample>)> = by_pod(samples)
        .into_iter()
        .map(|(pod, samples)| {
            let labels = format!("{{namespace={:?},pod={:?}}}", pod.namespace, pod.name);
            (labels, samples)
        })
        .collect();
    let node = [(String::new(), samples.iter().collect::<Vec<_>>())];
    for (part, of) in [
        ("container", &containers[..]),
        ("node", &node),
        ("pod", &pods),
    ] {
        write_family(&mut text, part, of, now);
    }
    text += "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting container metrics, 0 otherwise\n\
        # TYPE resource_scrape_error gauge\nresource_scrape_error 0\n";
    text
}

/// The metrics of containers, of pods or of the node.
fn write_family(text: &mut String, part: &str, of: &[(String, Vec<&Sample>)], now: Timestamp) {
    if of.is_empty() {
        return;
    }
    let at = now.as_millisecond();
    // Text is written to a string, which does not fail.
    let _ = writeln!(
        text,
        "# HELP {part}_cpu_usage_seconds_total [STABLE] Cumulative cpu time consumed by the {part} in core-seconds\n\
         # TYPE {part}_cpu_usage_seconds_total counter"
    );
    for (labels, samples) in of {
        let seconds = total(samples).core_nanos as f64 / 1e9;
        let _ = writeln!(
            text,
            "{part}_cpu_usage_seconds_total{labels} {seconds} {at}"
        );
    }
    let _ = writeln!(
        text,
        "# HELP {part}_memory_working_set_bytes [STABLE] Current working set of the {part} in bytes\n\
         # TYPE {part}_memory_working_set_bytes gauge"
    );
    for (labels, samples) in of {
        let bytes = total(samples).memory;
        let _ = writeln!(text, "{part}_memory_working_set_bytes{labels} {bytes} {at}");
    }
    if part != "container" {
        return;
    }
    let _ = writeln!(
        text,
        "# HELP container_start_time_seconds [STABLE] Start time of the container since unix epoch in seconds\n\
         # TYPE container_start_time_seconds gauge"
    );
    for (labels, sample) in of
        .iter()
        .filter_map(|(labels, all)| Some((labels, all.first()?)))
    {
        let seconds = sample.started.as_millisecond() as f64 / 1e3;
        let _ = writeln!(text, "container_start_time_seconds{labels} {seconds}");
    }
}

/// A sum of samples.
#[derive(Debug, Default)]
struct Total {
    cpu: i64,
    memory: i64,
    core_nanos: u64,
}

fn total(samples: &[&Sample]) -> Total {
    let mut total = Total::default();
    for sample in samples {
        total.cpu = total.cpu.saturating_add(sample.usage.cpu);
        total.memory = total.memory.saturating_add(sample.usage.memory);
        total.core_nanos = total.core_nanos.saturating_add(sample.core_nanos);
    }
    total
}

fn by_pod(samples: &[Sample]) -> BTreeMap<&PodName, Vec<&Sample>> {
    let mut pods: BTreeMap<&PodName, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        pods.entry(&sample.pod).or_default().push(sample);
    }
    pods
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn sample(container: &str, started: u64, cpu: i64) -> Sample {
        let pod = PodName {
            namespace: "default".to_owned(),
            name: "p".to_owned(),
            uid: "u".to_owned(),
            since: at(1),
        };
        let usage = Usage { cpu, memory: 1024 };
        Sample {
            pod,
            container: container.to_owned(),
            started: at(started),
            usage,
            core_nanos: 0,
        }
    }

    #[test]
    fn processor_time_grows_by_what_was_used_and_begins_anew_with_each_run() {
        let mut counters = Counters::default();
        let mut time = |started: u64, cpu: i64, now: u64| {
            let mut samples = [sample("a", started, cpu)];
            counters.advance(&mut samples, at(now));
            samples[0].core_nanos
        };
        assert_eq!(time(10, 500, 20), 5_000_000_000);
        // It used half a core until now, and a whole one from now on.
        assert_eq!(time(10, 1_000, 24), 7_000_000_000);
        assert_eq!(time(10, 0, 25), 8_000_000_000);
        assert_eq!(time(10, 0, 99), 8_000_000_000);
        assert_eq!(time(100, 2_000, 101), 2_000_000_000);
    }

    #[test]
    fn summary_and_metrics_say_the_same_of_containers_pods_and_the_node() {
        let mut samples = [sample("a", 10, 500), sample("b", 10, 250)];
        Counters::default().advance(&mut samples, at(20));
        let node = NodeFacts {
            name: "n".to_owned(),
            since: at(0),
            memory: 4096,
        };
        let shown = summary(&node, &samples, at(20));
        assert_eq!(shown["node"]["cpu"]["usageNanoCores"], 750_000_000);
        assert_eq!(
            shown["node"]["cpu"]["usageCoreNanoSeconds"],
            7_500_000_000_u64
        );
        assert_eq!(shown["node"]["memory"]["availableBytes"], 2048);
        let pod = &shown["pods"][0];
        assert_eq!(
            pod["podRef"],
            json!({"name": "p", "namespace": "default", "uid": "u"})
        );
        assert_eq!(pod["memory"]["workingSetBytes"], 2048);
        assert_eq!(pod["containers"][1]["name"], "b");
        assert_eq!(pod["containers"][1]["startTime"], "1970-01-01T00:00:10Z");
        let text = metrics(&samples, at(20));
        for line in [
            "container_cpu_usage_seconds_total{container=\"a\",namespace=\"default\",pod=\"p\"} 5 20000",
            "container_start_time_seconds{container=\"b\",namespace=\"default\",pod=\"p\"} 10",
            "node_cpu_usage_seconds_total 7.5 20000",
            "pod_memory_working_set_bytes{namespace=\"default\",pod=\"p\"} 2048 20000",
            "# TYPE node_memory_working_set_bytes gauge",
            "resource_scrape_error 0",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nin\n{text}"
            );
        }
        let empty = metrics(&[], at(20));
        assert!(empty.contains("node_cpu_usage_seconds_total 0 20000") && !empty.contains("pod_"));
    }
}
