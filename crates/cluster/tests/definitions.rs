//! Garbage collection with definitions of the size that real operators have: whatever their number and size, and whether
//! or not there is a disk, what a custom resource owned goes with it.
//!
//! `KUBEWRIGHT_DEFINITIONS` and `KUBEWRIGHT_DEFINITION_RUNS` set how many definitions there are and how many clusters.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
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

/// Creates the first object of a kind as soon as the server takes it.
async fn first_fruit(cluster: &Cluster, number: usize) -> DynamicObject {
    let api = fruits(cluster, number);
    let fruit = json!({"apiVersion": "example.com/v1", "kind": format!("Fruit{number}"), "metadata": {"name": "first"}});
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

/// Defines a kind, makes an object of it that owns another, and deletes it at once.
async fn live_and_die(cluster: &Cluster, number: usize) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = http::Request::post(path).header("Content-Type", "application/json");
    let request = request.body(definition(number).into_bytes());
    let request = request.expect("a request");
    let created = cluster.client().request_text(request).await;
    created.expect("the server takes the definition");
    let fruit = first_fruit(cluster, number).await;
    let owner = json!({"apiVersion": "example.com/v1", "kind": format!("Fruit{number}"), "name": "first",
        "uid": fruit.metadata.uid});
    let dependent = json!({"metadata": {"name": format!("of-fruit{number}"), "labels": {"of": "fruit"},
        "ownerReferences": [owner]}});
    let dependent: ConfigMap = serde_json::from_value(dependent).expect("a config map");
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    maps.create(&PostParams::default(), &dependent)
        .await
        .expect("created");
    let deleted = fruits(cluster, number)
        .delete("first", &DeleteParams::default())
        .await;
    deleted.expect("deleted");
}

async fn orphans(cluster: &Cluster) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let left = maps
        .list(&ListParams::default().labels("of=fruit"))
        .await
        .expect("listed");
    left.iter().map(ResourceExt::name_any).collect()
}

/// Lets many definitions come at once, and waits until nothing is left of what their objects owned.
async fn nothing_is_left(cluster: &Cluster, definitions: usize) {
    join_all((0..definitions).map(|number| live_and_die(cluster, number))).await;
    let end = Instant::now() + PATIENCE;
    loop {
        let left = orphans(cluster).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_of_large_definitions_are_collected_in_memory() {
    for _ in 0..volume("KUBEWRIGHT_DEFINITION_RUNS", 1) {
        let cluster = Cluster::builder().nodes(0).start().await.expect("starts");
        nothing_is_left(&cluster, volume("KUBEWRIGHT_DEFINITIONS", 6)).await;
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dependents_of_large_definitions_are_collected_with_a_data_directory() {
    for _ in 0..volume("KUBEWRIGHT_DEFINITION_RUNS", 1) {
        let directory = tempfile::tempdir().expect("a directory");
        let builder = Cluster::builder()
            .nodes(0)
            .data_dir(directory.path())
            .fsync(Fsync::Always);
        let cluster = builder.start().await.expect("starts");
        nothing_is_left(&cluster, volume("KUBEWRIGHT_DEFINITIONS", 6)).await;
        cluster.stop().await;
    }
}
