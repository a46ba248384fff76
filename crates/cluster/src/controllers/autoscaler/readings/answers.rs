//! What metrics APIs answer. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_schema::quantity::Quantity;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{MetricsApi, ReadingError};
use crate::controllers::autoscaler::calculate::Measurements;

/// The window of a custom metric that names none.
const WINDOW: Duration = Duration::from_secs(60);

/// A PodMetricsList of `metrics.k8s.io`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodMetricsList {
    items: Vec<PodMetrics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodMetrics {
    metadata: Name,
    timestamp: Option<Time>,
    window: Window,
    containers: Vec<ContainerMetrics>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerMetrics {
    name: String,
    usage: BTreeMap<String, Milli>,
}

/// A MetricValueList of `custom.metrics.k8s.io`, of either version.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetricValueList {
    items: Vec<MetricValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricValue {
    described_object: Name,
    timestamp: Option<Time>,
    /// `window` in the older version.
    #[serde(alias = "window")]
    window_seconds: Option<u64>,
    value: Milli,
}

/// An ExternalMetricValueList of `external.metrics.k8s.io`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExternalMetricValueList {
    items: Vec<ExternalMetricValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExternalMetricValue {
    value: Milli,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Name {
    namespace: String,
    name: String,
}

/// A quantity in thousandths, written as text or as a number.
#[derive(Debug, Default, Clone, Copy)]
struct Milli(i64);

impl<'de> Deserialize<'de> for Milli {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let quantity = Quantity::parse(&text).map_err(D::Error::custom)?;
        let milli = quantity.milli_value();
        milli
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{text} is out of range")))
    }
}

/// A length of time as Go writes it: `10s`, `1m0s`, `15.036s`.
#[derive(Debug, Default, Clone, Copy)]
struct Window(Duration);

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let window = window(&text);
        window
            .map(Self)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a duration")))
    }
}

fn window(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let end = after.find(|c: char| c.is_ascii_digit());
        let (unit, next) = after.split_at(end.unwrap_or(after.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = next;
    }
    Some(total)
}

/// When a window began that ended then.
fn begin(end: Option<&Time>, window: Duration) -> Option<Timestamp> {
    end?.0.checked_sub(window).ok()
}

impl PodMetricsList {
    /// What each pod uses of a resource, or one container of each.
    pub(super) fn measurements(
        &self,
        resource: &str,
        container: Option<&str>,
    ) -> Result<Measurements, ReadingError> {
        if self.items.is_empty() {
            return Err(ReadingError::Nothing(MetricsApi::Resource));
        }
        let mut found = Measurements::default();
        for pod in &self.items {
            let used = match container {
                Some(container) => pod.use_of_container(container, resource)?,
                None => pod.use_of_all(resource),
            };
            let Some(used) = used else { continue };
            let name = pod.metadata.name.clone();
            if let Some(since) = begin(pod.timestamp.as_ref(), pod.window.0) {
                found.since.insert(name.clone(), since);
            }
            found.values.insert(name, used);
        }
        Ok(found)
    }
}

impl PodMetrics {
    fn use_of_container(
        &self,
        container: &str,
        resource: &str,
    ) -> Result<Option<i64>, ReadingError> {
        let mut containers = self.containers.iter();
        let found = containers.find(|known| known.name == container);
        let found = found.ok_or_else(|| ReadingError::NoContainer {
            container: container.to_owned(),
            namespace: self.metadata.namespace.clone(),
            pod: self.metadata.name.clone(),
        })?;
        Ok(found.usage.get(resource).map(|used| used.0))
    }

    /// Nothing as long as the use of a single container is unknown.
    fn use_of_all(&self, resource: &str) -> Option<i64> {
        let mut total = None;
        for container in &self.containers {
            let used = container.usage.get(resource)?.0;
            total = Some(total.unwrap_or(0_i64).saturating_add(used));
        }
        total
    }
}

impl MetricValueList {
    /// The value of each object.
    pub(super) fn measurements(&self) -> Result<Measurements, ReadingError> {
        if self.items.is_empty() {
            return Err(ReadingError::Nothing(MetricsApi::Custom));
        }
        let mut found = Measurements::default();
        for item in &self.items {
            let name = item.described_object.name.clone();
            let window = item.window_seconds.map_or(WINDOW, Duration::from_secs);
            if let Some(since) = begin(item.timestamp.as_ref(), window) {
                found.since.insert(name.clone(), since);
            }
            found.values.insert(name, item.value.0);
        }
        Ok(found)
    }

    /// The value of the one object that was asked for.
    pub(super) fn value(&self) -> Result<i64, ReadingError> {
        match &self.items[..] {
            [one] => Ok(one.value.0),
            items => Err(ReadingError::Fetch {
                api: MetricsApi::Custom,
                why: format!(
                    "the custom metrics API server returned {} results when we asked for exactly one",
                    items.len()
                ),
            }),
        }
    }
}

impl ExternalMetricValueList {
    /// The sum of all values.
    pub(super) fn sum(&self) -> Result<i64, ReadingError> {
        if self.items.is_empty() {
            return Err(ReadingError::Nothing(MetricsApi::External));
        }
        let values = self.items.iter().map(|item| item.value.0);
        Ok(values.fold(0, i64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pods() -> PodMetricsList {
        serde_json::from_value(json!({"kind": "PodMetricsList", "metadata": {}, "items": [
            {"metadata": {"namespace": "n", "name": "p0"}, "timestamp": "2030-01-01T00:01:00Z", "window": "15s",
                "containers": [{"name": "c", "usage": {"cpu": "1500001n", "memory": "1Ki"}},
                    {"name": "d", "usage": {"cpu": "1"}}]},
            {"metadata": {"namespace": "n", "name": "p1"}, "timestamp": null, "window": "1m0s",
                "containers": [{"name": "c", "usage": {"memory": "1Ki"}}]},
        ]}))
        .expect("a list")
    }

    #[test]
    fn use_of_a_pod_is_the_sum_of_its_containers() {
        let found = pods().measurements("cpu", None).expect("measured");
        assert_eq!(found.values, [("p0".to_owned(), 1002)].into());
        let since = "2030-01-01T00:00:45Z".parse().expect("a moment");
        assert_eq!(found.since, [("p0".to_owned(), since)].into());
    }

    #[test]
    fn container_that_nobody_measured_is_named() {
        let found = pods().measurements("memory", Some("c")).expect("measured");
        assert_eq!(found.values["p1"], 1_024_000);
        let missing = pods().measurements("cpu", Some("d"));
        let text =
            "failed to get container metrics: container d not present in metrics for pod n/p1";
        assert_eq!(missing.expect_err("it is missing").to_string(), text);
    }

    #[test]
    fn values_of_objects_are_read_at_both_versions() {
        for window in ["window", "windowSeconds"] {
            let list: MetricValueList = serde_json::from_value(json!({"items": [
                {"describedObject": {"kind": "Pod", "name": "p0"}, "timestamp": "2030-01-01T00:01:00Z",
                    window: 30, "value": "2500m", "metricName": "hits", "metric": {"name": "hits"}}]}))
            .expect("a list");
            let found = list.measurements().expect("measured");
            assert_eq!(found.values["p0"], 2500);
            assert_eq!(found.since["p0"].to_string(), "2030-01-01T00:00:30Z");
            assert_eq!(list.value(), Ok(2500));
        }
        let none = MetricValueList::default();
        let text = "unable to fetch metrics from custom metrics API: the custom metrics API server returned 0 results \
                    when we asked for exactly one";
        assert_eq!(none.value().expect_err("none").to_string(), text);
    }

    #[test]
    fn values_from_outside_are_added_up() {
        let list = |items: Value| {
            serde_json::from_value::<ExternalMetricValueList>(json!({"items": items}))
        };
        let sum = |items| list(items).expect("a list").sum();
        assert_eq!(sum(json!([{"value": "30"}, {"value": 12}])), Ok(42_000));
        let none = sum(json!([])).expect_err("none").to_string();
        assert_eq!(none, "no metrics returned from external metrics API");
        assert!(list(json!([{"value": "a lot"}])).is_err());
    }

    #[test]
    fn windows_are_durations_of_go() {
        for (text, seconds) in [
            ("10s", Some(10.0)),
            ("1m0s", Some(60.0)),
            ("1h2m", Some(3720.0)),
            ("500ms", Some(0.5)),
            ("0", Some(0.0)),
            ("", Some(0.0)),
            ("10", None),
            ("s", None),
            ("1d", None),
            ("1e400h", None),
        ] {
            assert_eq!(window(text).map(|w| w.as_secs_f64()), seconds, "{text}");
        }
    }
}
