//! Controllers read whatever the server accepts: nulls where Go writes them, conditions without times, words that nobody knows,
//! specs that mean nothing.

#[path = "tolerance/subjects.rs"]
mod subjects;
mod world;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kubewright_cluster::Cluster;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use subjects::{Subject, api};
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

    /// Errors, and objects that nobody could read. Any other warning is a try that is repeated.
    fn errors(&self) -> Vec<String> {
        let mut seen = self.all();
        seen.retain(|text| text.starts_with("ERROR") || text.contains("cannot be read"));
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

/// The value with something odd in each of its places: null, and a word that nobody knows where there is a word.
fn variants(value: &Value, word: &str) -> Vec<Value> {
    let mut found = Vec::new();
    places(value, "", &mut found);
    let mut odd = Vec::new();
    for path in found {
        for replacement in [Value::Null, json!(word)] {
            let mut changed = value.clone();
            let place = changed.pointer_mut(&path).expect("it was found there");
            if replacement.is_string() && !place.is_string() {
                continue;
            }
            *place = replacement;
            odd.push(changed);
        }
    }
    odd
}

/// States of a status that a client in Go may write: with nulls, without times, with words that nobody knows.
fn statuses(status: &Value) -> Vec<Value> {
    let mut odd = variants(status, "Unheard-Of");
    let go = json!([{"type": "Odd", "status": "Perhaps", "reason": "E", "message": "m", "lastTransitionTime": null}]);
    let mut conditions = status.clone();
    conditions["conditions"] = go;
    odd.push(conditions);
    odd
}

/// Creates an object and lets controllers see it.
async fn bring_up(cluster: &Cluster, subject: &Subject) -> (Api<DynamicObject>, DynamicObject) {
    let objects = subject.api(&cluster.client());
    let created = objects
        .create(&PostParams::default(), &subject.object())
        .await;
    created.unwrap_or_else(|error| panic!("{} is refused: {error}", subject.kind()));
    sleep(Duration::from_secs(30)).await;
    let present = objects.get("odd").await.expect("it is there");
    (objects, present)
}

/// Gives an object every odd status that the server accepts, and returns how many that were.
async fn mistreat_status(cluster: &Cluster, subject: &Subject) -> usize {
    let (objects, present) = bring_up(cluster, subject).await;
    let status = subject.status.as_ref().unwrap_or(&present.data["status"]);
    let mut taken = 0;
    for status in statuses(status) {
        let mut body = objects.get("odd").await.expect("it is there");
        body.data["status"] = status;
        let replaced = objects
            .replace_status("odd", &PostParams::default(), &body)
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

/// Gives an object every odd spec that the server accepts, and returns how many that were.
async fn mistreat_spec(cluster: &Cluster, subject: &Subject) -> usize {
    let (objects, present) = bring_up(cluster, subject).await;
    let mut usual = present.data.clone();
    if let Some(fields) = usual.as_object_mut() {
        fields.remove("status");
    }
    let mut taken = 0;
    for spec in variants(&usual, "unheard-of") {
        if !replace(&objects, spec).await {
            continue;
        }
        taken += 1;
        sleep(Duration::from_millis(100)).await;
        // The next one differs from the usual spec in one place too. Some changes cannot be taken back.
        replace(&objects, usual.clone()).await;
    }
    sleep(Duration::from_secs(30)).await;
    taken
}

/// Replaces all but the metadata of the object, and returns whether the server accepts that.
async fn replace(objects: &Api<DynamicObject>, with: Value) -> bool {
    let mut body = objects.get("odd").await.expect("it is there");
    body.data = with;
    let replaced = objects.replace("odd", &PostParams::default(), &body).await;
    replaced.is_ok()
}

#[tokio::test(start_paused = true)]
async fn no_controller_gives_up_on_a_status_that_the_server_accepted() {
    let errors = Errors::default();
    let _guard = tracing::subscriber::set_default(errors.clone());
    let cluster = world::start().await;
    let mut taken = 0;
    for subject in subjects::all() {
        let has_status = !matches!(subject.kind(), "EndpointSlice" | "StorageClass");
        if has_status {
            taken += mistreat_status(&cluster, &subject).await;
        }
    }
    // The server refuses some of it; enough has to be left for the test to mean something.
    assert!(taken > 120, "only {taken} states were accepted");
    let seen = errors.errors();
    assert!(seen.is_empty(), "{seen:#?}");
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_controller_gives_up_on_a_spec_that_the_server_accepted() {
    let errors = Errors::default();
    let _guard = tracing::subscriber::set_default(errors.clone());
    let cluster = world::start().await;
    let mut taken = 0;
    for subject in subjects::all() {
        taken += mistreat_spec(&cluster, &subject).await;
    }
    assert!(taken > 120, "only {taken} specs were accepted");
    let seen = errors.errors();
    assert!(seen.is_empty(), "{seen:#?}");
    cluster.stop().await;
}

/// Objects that mean nothing, contradict themselves or name what does not exist: a line each in `odd.json`.
#[tokio::test(start_paused = true)]
async fn no_controller_gives_up_on_objects_that_mean_nothing() {
    let errors = Errors::default();
    let _guard = tracing::subscriber::set_default(errors.clone());
    let cluster = world::start().await;
    let objects: Vec<DynamicObject> =
        serde_json::from_str(include_str!("tolerance/odd.json")).expect("objects");
    for object in &objects {
        let types = object.types.as_ref().expect("it says what it is");
        let is_namespaced = object.metadata.namespace.is_some();
        let objects = api(
            &cluster.client(),
            &types.api_version,
            &types.kind,
            is_namespaced,
        );
        let created = objects.create(&PostParams::default(), object).await;
        created.unwrap_or_else(|error| panic!("{object:?} is refused: {error}"));
        sleep(Duration::from_secs(1)).await;
    }
    sleep(Duration::from_secs(900)).await;
    // Whoever had given up would not do this any more.
    let pod = json!({"metadata": {"name": "sane"}, "spec": {"containers": [{"name": "c", "image": "sim"}]}});
    let pods = here::<Pod>(&cluster);
    create(&pods, pod).await;
    until(&pods, "sane", |pod| pod["status"]["phase"] == "Running").await;
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
    let objects = api(&cluster.client(), "v1", "Service", true);
    let condition = json!({"type": "T", "status": "True", "reason": "E", "message": "m", "lastTransitionTime": null});
    let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    let patched = objects
        .patch_status("odd", &PatchParams::default(), &patch)
        .await;
    patched.expect("the server takes it");
    let pod = json!({"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "sim"}]}});
    let pods = here::<Pod>(&cluster);
    create(&pods, pod).await;
    until(&pods, "p", |pod| pod["status"]["phase"] == "Running").await;
    sleep(Duration::from_secs(5)).await;
    let slices = api(
        &cluster.client(),
        "discovery.k8s.io/v1",
        "EndpointSlice",
        true,
    );
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
