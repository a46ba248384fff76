//! Garbage collection with definitions of the size that real operators have: whatever their number and size, and whether
//! or not there is a disk or a restart, what a custom resource owned goes with it, and what that owned.
//!
//! `KUBEWRIGHT_DEFINITIONS` and `KUBEWRIGHT_DEFINITION_RUNS` set how many definitions there are and how many clusters.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use kube::{Api, ResourceExt};
use kubewright_cluster::Cluster;
use kubewright_server::storage::Fsync;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

/// How long anything may take: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(180);

fn volume(variable: &str, default: usize) -> usize {
    let given = std::env::var(variable).ok();
    given
        .and_then(|given| given.parse().ok())
        .unwrap_or(default)
}

/// A structural schema of about this many bytes, as deep and wide as those that embed pod templates.
fn schema(bytes: usize) -> Value {
    let leaf = |at: usize| {
        json!({"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "description": format!("Field {at} of a container, described at the length that generated definitions have.")})
    };
    let mut sections = Map::new();
    let (mut size, mut section) = (0, 0);
    while size < bytes {
        let fields: Map<String, Value> =
            (0..24).map(|at| (format!("field{at}"), leaf(at))).collect();
        let item = json!({"type": "object", "properties": fields});
        let list = json!({"type": "array", "items": item});
        size += list.to_string().len();
        sections.insert(format!("section{section}"), list);
        section += 1;
    }
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": sections},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

/// Schemas of 100 to 500 KB as text: hundreds of definitions are made of them, and it is not their making that is tested.
static SCHEMAS: LazyLock<[String; 5]> =
    LazyLock::new(|| [1, 2, 3, 4, 5].map(|size| schema(size * 100_000).to_string()));

/// The text of a definition; one after another they have all sizes.
fn definition(number: usize) -> String {
    let schema = &SCHEMAS[number % SCHEMAS.len()];
    let (plural, kind) = (format!("fruit{number}s"), format!("Fruit{number}"));
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": "SCHEMA"}}],
            "names": {"plural": plural, "singular": format!("fruit{number}"), "kind": kind, "listKind": format!("{kind}List")}},
    })
    .to_string();
    let at = definition.find("\"SCHEMA\"").expect("its place");
    definition.replace_range(at..at + "\"SCHEMA\"".len(), schema);
    definition
}

fn fruits(cluster: &Cluster, number: usize) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", &format!("Fruit{number}"));
    let resource = ApiResource::from_gvk_with_plural(&kind, &format!("fruit{number}s"));
    Api::default_namespaced_with(cluster.client(), &resource)
}

/// Creates an object of a kind as soon as the server takes it.
async fn plant(cluster: &Cluster, number: usize, metadata: Value) -> DynamicObject {
    let api = fruits(cluster, number);
    let fruit = json!({"apiVersion": "example.com/v1", "kind": format!("Fruit{number}"), "metadata": metadata});
    let fruit: DynamicObject = serde_json::from_value(fruit).expect("an object");
    let end = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(5);
    loop {
        match api.create(&PostParams::default(), &fruit).await {
            Ok(fruit) => return fruit,
            Err(error) => assert!(
                Instant::now() < end,
                "fruit{number}s are not served: {error}"
            ),
        }
        sleep(pause).await;
        // Hundreds that ask at once would leave the server no time for what they ask for.
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// The metadata of what an object of a kind owns.
fn owned_by(owner: &DynamicObject, kind: usize, name: &str) -> Value {
    let owner = json!({"apiVersion": "example.com/v1", "kind": format!("Fruit{kind}"),
        "name": owner.name_any(), "uid": owner.metadata.uid});
    json!({"name": name, "labels": {"of": "fruit"}, "ownerReferences": [owner]})
}

async fn define(cluster: &Cluster, number: usize) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = http::Request::post(path).header("Content-Type", "application/json");
    let request = request.body(definition(number).into_bytes());
    let request = request.expect("a request");
    let created = cluster.client().request_text(request).await;
    created.expect("the server takes the definition");
}

/// Defines a kind and makes an object of it that owns a config map, and at the head of a chain an object of the next kind, which
/// owns a Deployment, which owns what it makes.
async fn live(cluster: &Cluster, number: usize, definitions: usize) {
    define(cluster, number).await;
    let first = plant(cluster, number, json!({"name": "first"})).await;
    let (name, next) = (format!("of-fruit{number}"), (number + 1) % definitions);
    let map = json!({"metadata": owned_by(&first, number, &name)});
    create::<ConfigMap>(cluster, map).await;
    let link = plant(cluster, next, owned_by(&first, number, &name)).await;
    let template = json!({"metadata": {"labels": {"app": name, "of": "fruit"}}, "spec": {
        "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "app:1"}]}});
    let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template});
    let deployment = json!({"metadata": owned_by(&link, next, &name), "spec": spec});
    create::<Deployment>(cluster, deployment).await;
}

async fn create<K>(cluster: &Cluster, object: Value)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    let api = of::<K>(cluster);
    let object = serde_json::from_value(object).expect("an object");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("created");
}

async fn die(cluster: &Cluster, number: usize) {
    let deleted = fruits(cluster, number)
        .delete("first", &DeleteParams::default())
        .await;
    deleted.expect("deleted");
}

fn of<K>(cluster: &Cluster) -> Api<DynamicObject>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::default_namespaced_with(cluster.client(), &ApiResource::erase::<K>(&()))
}

/// What there is of a kind that belongs to a fruit.
async fn labelled(api: &Api<DynamicObject>) -> Vec<DynamicObject> {
    let params = ListParams::default().labels("of=fruit");
    api.list(&params).await.expect("listed").items
}

/// What is left of one kind after another, until there is one of which something is.
async fn orphans(cluster: &Cluster, definitions: usize) -> Vec<String> {
    let built_in = [
        of::<ConfigMap>(cluster),
        of::<Deployment>(cluster),
        of::<ReplicaSet>(cluster),
        of::<Pod>(cluster),
    ];
    let custom = (0..definitions).map(|number| fruits(cluster, number));
    for api in built_in.into_iter().chain(custom) {
        let left = labelled(&api).await;
        if let Some(first) = left.first() {
            let kind = first.types.as_ref().map_or("", |types| types.kind.as_str());
            let name = |object: &DynamicObject| format!("{kind} {}", object.name_any());
            return left.iter().map(name).collect();
        }
    }
    Vec::new()
}

/// Waits until nothing is left of what the deleted objects owned.
async fn wait_until_nothing_is_left(cluster: &Cluster, definitions: usize) {
    let end = Instant::now() + PATIENCE;
    loop {
        let left = orphans(cluster, definitions).await;
        if left.is_empty() {
            return;
        }
        assert!(
            Instant::now() < end,
            "these stay although their owners are gone: {left:?}"
        );
        sleep(Duration::from_millis(50)).await;
    }
}

/// Lets many definitions come at once, each with an object that goes as soon as it owns something, and waits until nothing is
/// left.
async fn nothing_is_left(cluster: &Cluster, definitions: usize) {
    let life = |number| async move {
        live(cluster, number, definitions).await;
        die(cluster, number).await;
    };
    join_all((0..definitions).map(life)).await;
    wait_until_nothing_is_left(cluster, definitions).await;
}

/// When a server goes and another one starts with its data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// The garbage collector that sees the deletion has not seen the creation.
    BeforeDeletion,
    /// The garbage collector has seen the creation, and another one comes to know that the owners are gone.
    AfterDeletion,
}

async fn start(directory: &Path) -> Cluster {
    let end = Instant::now() + PATIENCE;
    loop {
        let builder = Cluster::builder().nodes(1).data_dir(directory);
        match builder.fsync(Fsync::Always).start().await {
            Ok(cluster) => return cluster,
            // The one before may not have closed its log yet.
            Err(error) => assert!(Instant::now() < end, "it does not start: {error}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Waits until every Deployment has its pod.
async fn wait_until_all_run(cluster: &Cluster, definitions: usize) {
    let end = Instant::now() + PATIENCE;
    loop {
        let deployments = labelled(&of::<Deployment>(cluster)).await;
        let is_ready = |it: &&DynamicObject| it.data["status"]["readyReplicas"] == 1;
        let ready = deployments.iter().filter(is_ready).count();
        if ready == definitions {
            return;
        }
        assert!(Instant::now() < end, "{ready} of {definitions} are ready");
        sleep(Duration::from_millis(50)).await;
    }
}

async fn nothing_is_left_after_a_restart(directory: &Path, definitions: usize, restart: Restart) {
    let cluster = start(directory).await;
    let created = (0..definitions).map(|number| live(&cluster, number, definitions));
    join_all(created).await;
    wait_until_all_run(&cluster, definitions).await;
    if restart == Restart::AfterDeletion {
        join_all((0..definitions).map(|number| die(&cluster, number))).await;
    }
    cluster.stop().await;
    let cluster = start(directory).await;
    if restart == Restart::BeforeDeletion {
        join_all((0..definitions).map(|number| die(&cluster, number))).await;
    }
    wait_until_nothing_is_left(&cluster, definitions).await;
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_of_large_definitions_are_collected_in_memory() {
    for _ in 0..volume("KUBEWRIGHT_DEFINITION_RUNS", 1) {
        let cluster = Cluster::builder().nodes(1).start().await.expect("starts");
        nothing_is_left(&cluster, volume("KUBEWRIGHT_DEFINITIONS", 6)).await;
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_of_large_definitions_are_collected_with_a_data_directory() {
    for _ in 0..volume("KUBEWRIGHT_DEFINITION_RUNS", 1) {
        let directory = tempfile::tempdir().expect("a directory");
        let cluster = start(directory.path()).await;
        nothing_is_left(&cluster, volume("KUBEWRIGHT_DEFINITIONS", 6)).await;
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_of_large_definitions_are_collected_although_the_server_restarts() {
    let definitions = volume("KUBEWRIGHT_DEFINITIONS", 2);
    for _ in 0..volume("KUBEWRIGHT_DEFINITION_RUNS", 1) {
        for restart in [Restart::BeforeDeletion, Restart::AfterDeletion] {
            let directory = tempfile::tempdir().expect("a directory");
            nothing_is_left_after_a_restart(directory.path(), definitions, restart).await;
        }
    }
}
