//! What a kubelet serves of itself through `nodes/proxy`: its health, its pods and what they use.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::{Value, json};

use super::Agents;
use super::stats::{self, NodeFacts, PodName, Sample};
use crate::node::handle::Housed;

const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";
/// What Prometheus scrapes.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Agents {
    /// Answers a request for a path.
    pub(super) fn answer(&self, node: &str, path: &str, housed: &Housed) -> Response<Bytes> {
        let (code, kind, text) = match path.trim_end_matches('/') {
            "/healthz" | "/livez" | "/readyz" => (StatusCode::OK, PLAIN, "ok".to_owned()),
            "/configz" => {
                let config = json!({"kubeletconfig": {}});
                (StatusCode::OK, JSON, config.to_string())
            }
            "/pods" => (StatusCode::OK, JSON, pods(housed).to_string()),
            "/stats/summary" => (StatusCode::OK, JSON, self.summary(node, housed).to_string()),
            "/metrics/resource" => (StatusCode::OK, METRICS, self.resource_metrics(node, housed)),
            _ => {
                let text = format!("404 page not found: simulated nodes do not serve {path}\n");
                (StatusCode::NOT_FOUND, PLAIN, text)
            }
        };
        let mut answer = Response::new(Bytes::from(text));
        *answer.status_mut() = code;
        let kind = header::HeaderValue::from_static(kind);
        answer.headers_mut().insert(header::CONTENT_TYPE, kind);
        answer
    }

    fn summary(&self, node: &str, housed: &Housed) -> Value {
        let now = self.environment.now();
        let facts = NodeFacts {
            name: node.to_owned(),
            since: housed.since.unwrap_or(now),
            memory: housed.memory,
        };
        stats::summary(&facts, &self.samples(node, housed), now)
    }

    fn resource_metrics(&self, node: &str, housed: &Housed) -> String {
        stats::metrics(&self.samples(node, housed), self.environment.now())
    }

    /// What the containers on a node use, as `metrics.k8s.io` has it. Pods whose use is not known are not there.
    fn samples(&self, node: &str, housed: &Housed) -> Vec<Sample> {
        let mut samples = Vec::new();
        for pod in &housed.pods {
            samples.extend(self.samples_of(pod).into_iter().flatten());
        }
        let mut counters = self.counters.lock();
        let counters = counters.entry(node.to_owned()).or_default();
        counters.advance(&mut samples, self.environment.now());
        samples
    }

    fn samples_of(&self, pod: &Pod) -> Option<Vec<Sample>> {
        let status = pod.status.as_ref()?;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let name = PodName {
            namespace: text(&pod.metadata.namespace),
            name: text(&pod.metadata.name),
            uid: text(&pod.metadata.uid),
            since: status.start_time.as_ref()?.0,
        };
        let used = self.usage(pod)?;
        let init = status.init_container_statuses.iter().flatten();
        let all = init.chain(status.container_statuses.iter().flatten());
        let started = |status: &ContainerStatus| {
            let running = status.state.as_ref()?.running.as_ref()?;
            running.started_at.as_ref().map(|at| at.0)
        };
        let samples = all.filter_map(|status| {
            Some(Sample {
                pod: name.clone(),
                container: status.name.clone(),
                started: started(status)?,
                usage: *used.get(&status.name)?,
                core_nanos: 0,
            })
        });
        Some(samples.collect())
    }
}

/// The pods of a node as its kubelet has them: with where it got them from.
fn pods(housed: &Housed) -> Value {
    let items = housed.pods.iter().map(|pod| {
        let mut pod = Pod::clone(pod);
        let seen = pod
            .status
            .as_ref()
            .and_then(|status| status.start_time.as_ref());
        let seen = seen.map(|at| at.0.to_string());
        let annotations = pod.metadata.annotations.get_or_insert_default();
        annotations.insert("kubernetes.io/config.source".to_owned(), "api".to_owned());
        annotations.extend(seen.map(|seen| ("kubernetes.io/config.seen".to_owned(), seen)));
        let mut shown = serde_json::to_value(pod).unwrap_or_default();
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        shown
    });
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items.collect::<Vec<_>>()})
}
