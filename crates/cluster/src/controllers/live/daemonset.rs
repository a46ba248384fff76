//! DaemonSets as their users see them.

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kubewright_runtime::Key;
use serde_json::{Value, json};

use super::Cluster;
use crate::controllers::daemonset::template::target;

pub(super) fn set(image: &str) -> Value {
    json!({
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

pub(super) fn node(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

pub(super) fn is_complete(set: &DaemonSet, nodes: i32) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.observed_generation == set.metadata.generation
        && status.desired_number_scheduled == nodes
        && status.current_number_scheduled == nodes
        && status.number_ready == nodes
        && status.number_available.unwrap_or(0) == nodes
        && status.updated_number_scheduled.unwrap_or(0) == nodes
        && status.number_misscheduled == 0
}

async fn nodes_with_pods(cluster: &Cluster) -> Vec<String> {
    let pods: Vec<Pod> = cluster.list().await;
    let mut nodes: Vec<String> = pods
        .iter()
        .filter_map(|pod| target(pod).map(str::to_owned))
        .collect();
    nodes.sort();
    nodes
}

#[tokio::test(start_paused = true)]
async fn every_node_has_a_pod_and_updates_reach_all() {
    let cluster = Cluster::start().await;
    cluster.create::<Node>(node("a")).await;
    cluster.create::<Node>(node("b")).await;
    cluster.create::<DaemonSet>(set("one")).await;
    cluster.until_one("agent", |set| is_complete(set, 2)).await;
    assert_eq!(nodes_with_pods(&cluster).await, ["a", "b"]);

    cluster.create::<Node>(node("c")).await;
    cluster.until_one("agent", |set| is_complete(set, 3)).await;

    cluster
        .change::<DaemonSet>("agent", |set| {
            set.spec.template.spec.get_or_insert_default().containers[0].image =
                Some("two".to_owned());
        })
        .await;
    let is_new = |pod: &Pod| {
        pod.spec
            .as_ref()
            .and_then(|spec| spec.containers[0].image.as_deref())
            == Some("two")
    };
    cluster
        .until::<Pod>("new pods", |pods| {
            pods.len() == 3 && pods.iter().all(|pod| is_new(pod))
        })
        .await;
    cluster.until_one("agent", |set| is_complete(set, 3)).await;
    assert_eq!(nodes_with_pods(&cluster).await, ["a", "b", "c"]);
    assert_eq!(cluster.list::<ControllerRevision>().await.len(), 2);

    let client = &cluster.client;
    let c: Node = client
        .live()
        .get(&Key::cluster("c"))
        .await
        .expect("the server answers")
        .expect("it exists");
    let taint = Taint {
        key: "dedicated".to_owned(),
        effect: "NoExecute".to_owned(),
        ..Taint::default()
    };
    let expel = |node: &mut Node| node.spec.get_or_insert_default().taints = Some(vec![taint]);
    client.modify(&c, expel).await.expect("it is tainted");
    cluster.until_one("agent", |set| is_complete(set, 2)).await;
    assert_eq!(nodes_with_pods(&cluster).await, ["a", "b"]);
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_failed_is_replaced() {
    let cluster = Cluster::start().await;
    cluster.create::<Node>(node("a")).await;
    cluster.create::<DaemonSet>(set("one")).await;
    cluster.until_one("agent", |set| is_complete(set, 1)).await;
    let pod = cluster.list::<Pod>().await.remove(0);
    let name = pod.metadata.name.clone().unwrap_or_default();
    let fail = |pod: &mut Pod| {
        let status = pod.status.get_or_insert_default();
        status.phase = Some("Failed".to_owned());
        status.conditions = None;
    };
    cluster
        .client
        .modify_status(&pod, fail)
        .await
        .expect("it fails");
    let message = format!("Found failed daemon pod default/{name} on node a, will try to kill it");
    cluster.until_event("FailedDaemonPod", &message).await;
    cluster
        .until::<Pod>("another pod", |pods| {
            pods.len() == 1 && pods[0].metadata.uid != pod.metadata.uid
        })
        .await;
    cluster.until_one("agent", |set| is_complete(set, 1)).await;
    cluster.end().await;
}
