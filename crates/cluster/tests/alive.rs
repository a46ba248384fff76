//! The cluster as users know it (S16): Deployments make ReplicaSets make Pods, which run; and all of it goes again.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kubewright_cluster::{Clock, Cluster, NodesOptions};
use kubewright_testing::{Verb, Wire};
use serde_json::{Value, json};

async fn cluster() -> Cluster {
    let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
    let builder = Cluster::builder()
        .nodes(3)
        .seed(7)
        .clock(Clock::starting_at(start));
    builder.start().await.expect("a cluster starts")
}

fn deployment(replicas: i32, image: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]}}},
    }))
    .expect("it is a Deployment")
}

async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..10_000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

struct World {
    cluster: Cluster,
    deployments: Api<Deployment>,
    sets: Api<ReplicaSet>,
    pods: Api<Pod>,
}

impl World {
    async fn new() -> Self {
        let cluster = cluster().await;
        let client = cluster.client();
        Self {
            deployments: Api::default_namespaced(client.clone()),
            sets: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client),
            cluster,
        }
    }

    async fn patch(&self, patch: Value) {
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.deployments.patch("web", &params, &patch).await;
        patched.expect("it is patched");
    }

    /// Waits until the Deployment has rolled out so many of this image, and nothing else is left.
    async fn rolled_out(&self, replicas: i32, image: &str) {
        until(&format!("{replicas} of {image}"), async || {
            let found = self.deployments.get("web").await.expect("it is there");
            let status = found.status.unwrap_or_default();
            let done = status.observed_generation == found.metadata.generation
                && status.available_replicas.unwrap_or(0) == replicas
                && status.updated_replicas.unwrap_or(0) == replicas
                && status.replicas.unwrap_or(0) == replicas;
            done && self.images().await == vec![image.to_owned(); replicas as usize]
        })
        .await;
    }

    async fn images(&self) -> Vec<String> {
        let pods = self
            .pods
            .list(&ListParams::default())
            .await
            .expect("they are listed");
        let images = pods
            .items
            .into_iter()
            .filter_map(|pod| pod.spec?.containers.pop()?.image);
        images.collect()
    }
}

#[tokio::test(start_paused = true)]
async fn deployment_rolls_out_scales_rolls_back_and_goes_with_all_it_owns() {
    let world = World::new().await;
    let made = deployment(3, "web:1");
    world
        .deployments
        .create(&PostParams::default(), &made)
        .await
        .expect("it is created");
    world.rolled_out(3, "web:1").await;
    let nodes: std::collections::BTreeSet<_> = world
        .pods
        .list(&ListParams::default())
        .await
        .expect("they are listed")
        .items
        .into_iter()
        .filter_map(|pod| pod.spec?.node_name)
        .collect();
    assert_eq!(nodes.len(), 3, "three pods are spread over three nodes");

    world.patch(json!({"spec": {"replicas": 5}})).await;
    world.rolled_out(5, "web:1").await;
    let new = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}});
    world.patch(new("web:2")).await;
    world.rolled_out(5, "web:2").await;
    let sets = world
        .sets
        .list(&ListParams::default())
        .await
        .expect("they are listed");
    assert_eq!(sets.items.len(), 2, "the old one is kept for a rollback");
    world.patch(new("web:1")).await;
    world.rolled_out(5, "web:1").await;
    let sets = world
        .sets
        .list(&ListParams::default())
        .await
        .expect("they are listed");
    assert_eq!(sets.items.len(), 2, "a rollback uses the old one");

    world
        .deployments
        .delete("web", &DeleteParams::background())
        .await
        .expect("it is deleted");
    until("all is gone", async || {
        let sets = world
            .sets
            .list(&ListParams::default())
            .await
            .expect("they are listed");
        sets.items.is_empty() && world.images().await.is_empty()
    })
    .await;
    world.cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_pod_is_replaced_and_the_status_follows() {
    let world = World::new().await;
    let made = deployment(3, "web:1");
    world
        .deployments
        .create(&PostParams::default(), &made)
        .await
        .expect("it is created");
    world.rolled_out(3, "web:1").await;
    let pods = world
        .pods
        .list(&ListParams::default())
        .await
        .expect("they are listed");
    let name = pods.items[0].metadata.name.clone().expect("a name");
    world
        .pods
        .delete(&name, &DeleteParams::default())
        .await
        .expect("it is deleted");
    until("it is replaced", async || {
        let pods = world
            .pods
            .list(&ListParams::default())
            .await
            .expect("they are listed");
        pods.items.len() == 3
            && pods
                .items
                .iter()
                .all(|pod| pod.metadata.name.as_ref() != Some(&name))
    })
    .await;
    world.rolled_out(3, "web:1").await;
}

#[tokio::test(start_paused = true)]
async fn namespace_takes_everything_in_it_along() {
    let world = World::new().await;
    let client = world.cluster.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "team"}})).expect("a namespace");
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .expect("it is created");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "team");
    let mut made = deployment(2, "web:1");
    made.metadata.namespace = Some("team".to_owned());
    deployments
        .create(&PostParams::default(), &made)
        .await
        .expect("it is created");
    until("it runs", async || {
        let found = deployments.get("web").await.expect("it is there");
        found.status.and_then(|status| status.available_replicas) == Some(2)
    })
    .await;
    namespaces
        .delete("team", &DeleteParams::default())
        .await
        .expect("it is deleted");
    until("it is gone", async || {
        namespaces
            .get_opt("team")
            .await
            .expect("the server answers")
            .is_none()
    })
    .await;
    let pods: Api<Pod> = Api::namespaced(client, "team");
    assert!(
        pods.list(&ListParams::default())
            .await
            .expect("they are listed")
            .items
            .is_empty()
    );
}

/// What controllers and nodes ask of the server in twelve hours in which nothing happens.
#[tokio::test(start_paused = true)]
async fn cluster_at_rest_renews_leases_and_reports_and_asks_for_nothing() {
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    let (lease, line) = (Duration::from_secs(1_200), Arc::new(Mutex::new(None)));
    let kept = line.clone();
    let options = NodesOptions::default()
        .lease_duration(lease)
        .status_interval(hours(1));
    let builder = Cluster::builder().node_options(options).node_grace(lease);
    let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
    let builder = builder
        .clock(Clock::starting_at(start))
        .line(move |service| {
            let wire = Wire::new(service);
            *kept.lock().expect("nobody panics while holding it") = Some(wire.clone());
            wire.client()
        });
    let cluster = builder.start().await.expect("a cluster starts");
    let wire = line.lock().expect("nobody panics while holding it").take();
    let wire = wire.expect("controllers are connected");
    // All that a start leads to is over, and its events have been forgotten.
    tokio::time::sleep(hours(3)).await;
    let verbs = [
        (Verb::Get, 0..=0),
        (Verb::List, 0..=0),
        (Verb::Watch, 0..=0),
        (Verb::Create, 0..=0),
        (Verb::Update, 143..=145),
        (Verb::Patch, 11..=13),
        (Verb::Delete, 0..=0),
    ];
    let before = verbs.clone().map(|(verb, _)| wire.count(verb));
    tokio::time::sleep(hours(12)).await;
    for ((verb, expected), before) in verbs.into_iter().zip(before) {
        let count = wire.count(verb) - before;
        assert!(expected.contains(&count), "{count} times {verb:?}");
    }
    cluster.stop().await;
}
