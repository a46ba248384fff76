//! Controllers read whatever the server accepts: nulls where Go writes them, conditions without times, words that nobody knows.

mod world;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use world::{create, here, until};

/// Keeps what is logged as a warning or an error, with all its fields.
#[derive(Clone, Default)]
struct Errors {
    seen: Arc<Mutex<Vec<String>>>,
    spans: Arc<AtomicU64>,
}

impl Errors {
    fn all(&self) -> Vec<String> {
        let seen = self.seen.lock();
        seen.expect("nobody panics while holding it").clone()
    }

    /// Errors alone: a warning is a try that is repeated.
    fn errors(&self) -> Vec<String> {
        let mut seen = self.all();
        seen.retain(|text| text.starts_with("ERROR"));
        seen
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(format!("{} ", event.metadata().level()));
        event.record(&mut text);
        let mut seen = self.seen.lock().expect("nobody panics while holding it");
        seen.push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The kinds that controllers, scheduler and nodes read, each with an object of it.
fn objects() -> Vec<(&'static str, &'static str, Value)> {
    let pod = json!({"containers": [{"name": "c", "image": "sim"}]});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod});
    let selector = json!({"matchLabels": {"app": "a"}});
    let set = json!({"replicas": 1, "selector": selector, "template": template});
    let storage =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let job =
        json!({"template": {"spec": {"restartPolicy": "Never", "containers": pod["containers"]}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "odd"});
    let stateful = json!({"serviceName": "odd", "selector": selector, "template": template});
    let daemon = json!({"selector": selector, "template": template});
    let controller = json!({"replicas": 1, "selector": {"app": "a"}, "template": template});
    vec![
        ("v1", "Pod", pod),
        (
            "v1",
            "Service",
            json!({"selector": {"app": "a"}, "ports": [{"port": 80}]}),
        ),
        ("v1", "PersistentVolumeClaim", storage),
        ("v1", "ReplicationController", controller),
        ("v1", "ResourceQuota", json!({"hard": {"pods": "9"}})),
        ("apps/v1", "Deployment", set.clone()),
        ("apps/v1", "ReplicaSet", set),
        ("apps/v1", "StatefulSet", stateful),
        ("apps/v1", "DaemonSet", daemon),
        ("batch/v1", "Job", job.clone()),
        (
            "batch/v1",
            "CronJob",
            json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({"minAvailable": 0, "selector": selector}),
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"maxReplicas": 2, "scaleTargetRef": target}),
        ),
    ]
}

fn api(client: &Client, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// Every place in a value, parents before children.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let path = format!("{path}/{key}");
        found.push(path.clone());
        places(child, &path, found);
    }
}

/// States of a status that a client in Go may write: with nulls, without times, with words that nobody knows.
fn statuses(status: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    places(status, "", &mut found);
    let mut odd = Vec::new();
    for path in found {
        for replacement in [Value::Null, json!("Unheard-Of")] {
            let mut changed = status.clone();
            let place = changed.pointer_mut(&path).expect("it was found there");
            if replacement.is_string() && !place.is_string() {
                continue;
            }
            *place = replacement;
            odd.push(changed);
        }
    }
    let go = json!([{"type": "Odd", "status": "Perhaps", "reason": "E", "message": "m", "lastTransitionTime": null}]);
    let mut conditions = status.clone();
    conditions["conditions"] = go;
    odd.push(conditions);
    odd
}

async fn mistreat(cluster: &Cluster, (api_version, kind, spec): (&str, &str, Value)) -> usize {
    let objects = api(&cluster.client(), api_version, kind);
    let object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "odd"}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    objects
        .create(&Default::default(), &object)
        .await
        .expect("the server takes it");
    sleep(Duration::from_secs(30)).await;
    let present = objects.get("odd").await.expect("it is there");
    let mut taken = 0;
    for status in statuses(&present.data["status"]) {
        let mut body = objects.get("odd").await.expect("it is there");
        body.data["status"] = status;
        let replaced = objects
            .replace_status("odd", &Default::default(), &body)
            .await;
        taken += usize::from(replaced.is_ok());
        sleep(Duration::from_millis(100)).await;
    }
    // Labels and annotations that are null, and an annotation that is nobody's.
    let patch = json!({"metadata": {"labels": {"gone": null}, "annotations": {"odd": ""}}});
    let patched = objects
        .patch("odd", &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.expect("the server takes it");
    sleep(Duration::from_secs(30)).await;
    taken
}

#[tokio::test(start_paused = true)]
async fn no_controller_gives_up_on_what_the_server_accepted() {
    let errors = Errors::default();
    let _guard = tracing::subscriber::set_default(errors.clone());
    let cluster = world::start().await;
    let mut taken = 0;
    for object in objects() {
        taken += mistreat(&cluster, object).await;
    }
    // The server refuses some of it; enough has to be left for the test to mean something.
    assert!(taken > 60, "only {taken} states were accepted");
    let seen = errors.errors();
    assert!(seen.is_empty(), "{seen:#?}");
    cluster.stop().await;
}

/// The Service of `the conformance suite`: a Go client writes a condition without a time, and its endpoints have to go on.
#[tokio::test(start_paused = true)]
async fn service_with_a_condition_without_a_time_has_endpoints() {
    let errors = Errors::default();
    let _guard = tracing::subscriber::set_default(errors.clone());
    let cluster = world::start().await;
    let services = here::<Service>(&cluster);
    let spec = json!({"selector": {"app": "a"}, "ports": [{"port": 80}]});
    create(
        &services,
        json!({"metadata": {"name": "odd"}, "spec": spec}),
    )
    .await;
    let objects = api(&cluster.client(), "v1", "Service");
    let condition = json!({"type": "T", "status": "True", "reason": "E", "message": "m", "lastTransitionTime": null});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let patched = objects
        .patch_status("odd", &PatchParams::default(), &patch)
        .await;
    patched.expect("the server takes it");
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "sim"}]}});
    create(&here::<k8s_openapi::api::core::v1::Pod>(&cluster), pod).await;
    let pods = here::<k8s_openapi::api::core::v1::Pod>(&cluster);
    until(&pods, "p", |pod| pod["status"]["phase"] == "Running").await;
    sleep(Duration::from_secs(5)).await;
    let slices = api(&cluster.client(), "discovery.k8s.io/v1", "EndpointSlice");
    let listed = slices
        .list(&ListParams::default().labels("kubernetes.io/service-name=odd"))
        .await;
    let listed = listed.expect("an answer").items;
    assert_eq!(
        listed[0].data["endpoints"].as_array().map(Vec::len),
        Some(1),
        "{:#?}",
        errors.all()
    );
    cluster.stop().await;
}
