//! Measurements that autoscalers go by: what programs set, and what the annotations of pods say.
//!
//! Nothing is measured in a cluster without machines. A pod whose use nobody has reported has no metrics, as a pod that a
//! metrics server has not seen yet.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Container, Pod};
use kubewright_schema::quantity::{Quantity, QuantityError};
use parking_lot::Mutex;

use crate::node::Engine;
use crate::node::script::{PREFIX, Role, containers};
use crate::pods::phase;

/// Measurements of one cluster. Clones are the same measurements; a fork of the cluster has its own.
///
/// ```
/// use kubewright_cluster::{Measured, Metrics};
///
/// let metrics = Metrics::default();
/// metrics.set(Measured::pod("default", "web-1"), "cpu", "200m")?;
/// metrics.set(Measured::object("default", "Service", "web"), "requests", "1k")?;
/// metrics.set(Measured::external("default").label("queue", "mail"), "backlog", "40")?;
/// # Ok::<(), kubewright_cluster::MetricError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    book: Arc<Mutex<Book>>,
    /// Who runs containers, and knows what they use.
    engine: Arc<OnceLock<Engine>>,
}

/// Values in thousandths.
type Book = BTreeMap<(Measured, String), i64>;

/// What a measurement is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Measured {
    /// A pod as a whole. It takes precedence over values of its containers.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// One container of a pod.
    Container {
        /// The namespace of the pod.
        namespace: String,
        /// The name of the pod.
        pod: String,
        /// The name of the container.
        name: String,
    },
    /// An object of any kind, by its name.
    Object {
        /// Its namespace.
        namespace: String,
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Something outside of the cluster.
    External {
        /// The namespace in which autoscalers see it.
        namespace: String,
        /// The labels that metric selectors match.
        labels: BTreeMap<String, String>,
    },
}

/// Why a value was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// The value is not a quantity.
    #[error("{text:?} is not a quantity")]
    Quantity {
        /// What was given.
        text: String,
        /// What is wrong with it.
        #[source]
        source: QuantityError,
    },
    /// It is below zero, or too large to be counted in thousandths.
    #[error("{0:?} is out of range")]
    Range(String),
}

impl Measured {
    /// A pod as a whole.
    pub fn pod(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::Pod {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// One container of a pod.
    pub fn container(
        namespace: impl Into<String>,
        pod: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self::Container {
            namespace: namespace.into(),
            pod: pod.into(),
            name: name.into(),
        }
    }

    /// Names an object of any kind.
    pub fn object(
        namespace: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self::Object {
            namespace: namespace.into(),
            kind: kind.into(),
            name: name.into(),
        }
    }

    /// Something outside of the cluster.
    pub fn external(namespace: impl Into<String>) -> Self {
        Self::External {
            namespace: namespace.into(),
            labels: BTreeMap::new(),
        }
    }

    /// Adds a label to something outside of the cluster; anything else is not changed.
    #[must_use]
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        if let Self::External { labels, .. } = &mut self {
            labels.insert(key.into(), value.into());
        }
        self
    }
}

impl Metrics {
    /// Sets a value, from now on and until another is set.
    ///
    /// # Errors
    /// When it is not a quantity, below zero or too large.
    pub fn set(&self, of: Measured, metric: &str, value: &str) -> Result<(), MetricError> {
        let quantity = Quantity::parse(value).map_err(|source| MetricError::Quantity {
            text: value.to_owned(),
            source,
        })?;
        let milli = quantity.milli_value().filter(|milli| *milli >= 0);
        let milli = milli.ok_or_else(|| MetricError::Range(value.to_owned()))?;
        self.book.lock().insert((of, metric.to_owned()), milli);
        Ok(())
    }

    /// Forgets a value that was set.
    pub fn forget(&self, of: Measured, metric: &str) {
        self.book.lock().remove(&(of, metric.to_owned()));
    }

    /// The same values, from now on independent.
    pub(crate) fn copy(&self) -> Self {
        Self {
            book: Arc::new(Mutex::new(self.book.lock().clone())),
            engine: Arc::default(),
        }
    }

    /// Asks these runtimes for values that nobody has set; set once for each cluster.
    pub(crate) fn measured_by(&self, engine: &Engine) {
        // A second cluster over the same measurements keeps the first one's.
        let _ = self.engine.set(engine.clone());
    }

    /// A custom metric of a pod that runs.
    pub(crate) fn of_pod(&self, pod: &Pod, metric: &str) -> Option<i64> {
        if phase(pod) != "Running" {
            return None;
        }
        let (namespace, name) = place(pod);
        let set = self.get(Measured::pod(namespace, name), metric);
        set.or_else(|| annotated(pod, &format!("metric-{metric}")))
    }

    /// What a pod that runs uses of a resource: all of it, or one container's part. As of a metrics server, nothing as
    /// long as the use of a single container is unknown.
    pub(crate) fn use_of(&self, pod: &Pod, container: Option<&str>, resource: &str) -> Option<i64> {
        if phase(pod) != "Running" {
            return None;
        }
        let (namespace, name) = place(pod);
        if container.is_none()
            && let Some(whole) = self.get(Measured::pod(namespace, name), resource)
        {
            return Some(whole);
        }
        let running = containers(pod).filter(|(role, one)| {
            matches!(role, Role::Main | Role::Sidecar)
                && container.is_none_or(|wanted| wanted == one.name)
        });
        let mut total = None;
        for (_, one) in running {
            let used = self.use_of_container(pod, &one, resource)?;
            total = Some(total.unwrap_or(0_i64).saturating_add(used));
        }
        total
    }

    fn use_of_container(&self, pod: &Pod, container: &Container, resource: &str) -> Option<i64> {
        let (namespace, name) = place(pod);
        let set = self.get(
            Measured::container(namespace, name, &*container.name),
            resource,
        );
        let own = || annotated(pod, &format!("{}.{resource}", container.name));
        let run = || self.runtime_says(pod, container, resource);
        set.or_else(own)
            .or_else(|| annotated(pod, resource))
            .or_else(run)
    }

    /// What the runtime of a container says of it, in thousandths.
    fn runtime_says(&self, pod: &Pod, container: &Container, resource: &str) -> Option<i64> {
        let runtime = self.engine.get()?.of(container);
        let usage = runtime.usage(pod, &container.name)?;
        match resource {
            "cpu" => Some(usage.cpu),
            "memory" => Some(usage.memory.saturating_mul(1000)),
            _ => None,
        }
    }

    /// A metric of an object.
    pub(crate) fn of_object(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        metric: &str,
    ) -> Option<i64> {
        self.get(Measured::object(namespace, kind, name), metric)
    }

    /// The values of a metric from outside, of all that is selected.
    pub(crate) fn of_external(
        &self,
        namespace: &str,
        metric: &str,
        selects: impl Fn(&BTreeMap<String, String>) -> bool,
    ) -> Vec<i64> {
        let book = self.book.lock();
        let found = book.iter().filter(|((of, name), _)| match of {
            Measured::External {
                namespace: at,
                labels,
            } => at == namespace && name == metric && selects(labels),
            _ => false,
        });
        found.map(|(_, value)| *value).collect()
    }

    fn get(&self, of: Measured, metric: &str) -> Option<i64> {
        self.book.lock().get(&(of, metric.to_owned())).copied()
    }
}

fn place(pod: &Pod) -> (&str, &str) {
    (
        pod.metadata.namespace.as_deref().unwrap_or_default(),
        pod.metadata.name.as_deref().unwrap_or_default(),
    )
}

/// The value of an annotation of the simulation, in thousandths. What cannot be parsed is ignored.
fn annotated(pod: &Pod, setting: &str) -> Option<i64> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let text = annotations.get(&format!("{PREFIX}{setting}"))?;
    let milli = Quantity::parse(text).ok()?.milli_value()?;
    (milli >= 0).then_some(milli)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(annotations: Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"namespace": "n", "name": "p", "annotations": annotations},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}],
                "initContainers": [{"name": "first"}, {"name": "beside", "restartPolicy": "Always"}]},
            "status": {"phase": "Running"},
        }))
        .expect("it is a pod")
    }

    #[test]
    fn use_of_a_pod_is_that_of_its_containers() {
        let all = "sim.kubewright.dev/cpu";
        let one = "sim.kubewright.dev/b.cpu";
        for (annotations, whole, of_b) in [
            (json!({}), None, None),
            (json!({all: "100m"}), Some(300), Some(100)),
            (json!({all: "100m", one: "1"}), Some(1200), Some(1000)),
            // A container without a value hides the whole.
            (json!({one: "1"}), None, Some(1000)),
            (json!({all: "a lot"}), None, None),
            (json!({all: "-1"}), None, None),
        ] {
            let (metrics, pod) = (Metrics::default(), pod(annotations.clone()));
            let shown = (
                metrics.use_of(&pod, None, "cpu"),
                metrics.use_of(&pod, Some("b"), "cpu"),
            );
            assert_eq!(shown, (whole, of_b), "{annotations}");
        }
    }

    #[test]
    fn what_is_set_goes_before_annotations_and_waiting_pods_have_no_metrics() {
        let metrics = Metrics::default();
        let mut pod =
            pod(json!({"sim.kubewright.dev/cpu": "1", "sim.kubewright.dev/metric-hits": "5"}));
        let set = |of, value| metrics.set(of, "cpu", value).expect("a quantity");
        set(Measured::container("n", "p", "b"), "2");
        assert_eq!(metrics.use_of(&pod, None, "cpu"), Some(4000));
        set(Measured::pod("n", "p"), "7");
        assert_eq!(metrics.use_of(&pod, None, "cpu"), Some(7000));
        metrics.forget(Measured::pod("n", "p"), "cpu");
        assert_eq!(metrics.use_of(&pod, None, "cpu"), Some(4000));
        assert_eq!(metrics.of_pod(&pod, "hits"), Some(5000));
        pod.status.as_mut().expect("it has one").phase = Some("Pending".to_owned());
        assert_eq!(metrics.use_of(&pod, None, "cpu"), None);
        assert_eq!(metrics.of_pod(&pod, "hits"), None);
    }

    #[test]
    fn copies_are_independent_and_bad_values_are_refused() {
        let metrics = Metrics::default();
        let queue = |name| Measured::external("n").label("queue", name);
        for (name, value) in [("mail", "3"), ("video", "4")] {
            metrics
                .set(queue(name), "backlog", value)
                .expect("a quantity");
        }
        let copy = metrics.copy();
        metrics.forget(queue("mail"), "backlog");
        assert_eq!(copy.of_external("n", "backlog", |_| true), [3000, 4000]);
        assert_eq!(metrics.of_external("n", "backlog", |_| true), [4000]);
        for text in ["", "many", "-1", "9E30"] {
            assert!(
                metrics.set(queue("mail"), "backlog", text).is_err(),
                "{text}"
            );
        }
    }
}
