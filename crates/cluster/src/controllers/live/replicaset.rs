//! ReplicaSets as their users see them.

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::Delete;
use kubewright_runtime::owners::controller_of;
use serde_json::{Value, json};

use super::{Cluster, names};

fn set(replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "a"}]},
            },
        },
    })
}

fn has_available(set: &ReplicaSet, count: i32) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.replicas == count
        && status.available_replicas.unwrap_or(0) == count
        && status.fully_labeled_replicas.unwrap_or(0) == count
        && status.observed_generation == set.metadata.generation
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_deleted_comes_back() {
    let cluster = Cluster::start().await;
    cluster.create::<ReplicaSet>(set(2)).await;
    cluster.until_one("web", |set| has_available(set, 2)).await;
    let before = cluster.list::<Pod>().await;
    let gone = &before[0];
    cluster
        .client
        .delete(gone, Delete::background())
        .await
        .expect("it is deleted");
    let is_back = |pods: &[std::sync::Arc<Pod>]| {
        pods.len() == 2 && pods.iter().all(|pod| pod.metadata.uid != gone.metadata.uid)
    };
    cluster.until::<Pod>("another pod", is_back).await;
    cluster.until_one("web", |set| has_available(set, 2)).await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_relabelled_is_released_and_replaced() {
    let cluster = Cluster::start().await;
    cluster.create::<ReplicaSet>(set(1)).await;
    cluster.until_one("web", |set| has_available(set, 1)).await;
    let pod = names(&cluster.list::<Pod>().await).remove(0);
    cluster
        .change::<Pod>(&pod, |pod| {
            let labels = pod.metadata.labels.get_or_insert_default();
            labels.insert("app".to_owned(), "debug".to_owned());
        })
        .await;
    cluster
        .until_one::<Pod>(&pod, |pod| controller_of(pod).is_none())
        .await;
    cluster
        .until::<Pod>("a second pod", |pods| pods.len() == 2)
        .await;
    cluster.until_one("web", |set| has_available(set, 1)).await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_matches_is_adopted_and_counted() {
    let cluster = Cluster::start().await;
    let orphan = json!({
        "metadata": {"name": "stray", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "a"}]},
    });
    cluster.create::<Pod>(orphan.clone()).await;
    cluster.create::<ReplicaSet>(set(2)).await;
    cluster.until_one("web", |set| has_available(set, 2)).await;
    let stray: Pod = cluster.get("stray").await;
    assert_eq!(
        controller_of(&stray).map(|owner| owner.name.as_str()),
        Some("web")
    );
    assert_eq!(cluster.list::<Pod>().await.len(), 2);

    // One too many: the set adopts it and then deletes the one that matters least.
    let mut second = orphan;
    second["metadata"]["name"] = json!("second");
    cluster.create::<Pod>(second).await;
    cluster
        .until::<k8s_openapi::api::core::v1::Event>("a deletion", |events| {
            events
                .iter()
                .any(|event| event.reason.as_deref() == Some("SuccessfulDelete"))
        })
        .await;
    cluster
        .until::<Pod>("two pods", |pods| pods.len() == 2)
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_counts_pods_as_available_only_after_a_while() {
    let cluster = Cluster::start().await;
    let mut object = set(1);
    object["spec"]["minReadySeconds"] = json!(60);
    let start = tokio::time::Instant::now();
    cluster.create::<ReplicaSet>(object).await;
    let is_ready = |set: &ReplicaSet| {
        let status = set.status.clone().unwrap_or_default();
        status.ready_replicas == Some(1) && status.available_replicas.is_none()
    };
    cluster.until_one("web", is_ready).await;
    cluster.until_one("web", |set| has_available(set, 1)).await;
    assert!(start.elapsed() >= std::time::Duration::from_secs(60));
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_the_server_refuses_are_a_condition() {
    let cluster = Cluster::start().await;
    let mut object = set(1);
    // Nobody looks at the finalizers of a template before a pod has them.
    object["spec"]["template"]["metadata"]["finalizers"] = json!(["not a name"]);
    cluster.create::<ReplicaSet>(object).await;
    cluster
        .until_one::<ReplicaSet>("web", |set| {
            let conditions = set.status.clone().and_then(|status| status.conditions);
            conditions.is_some_and(|all| all[0].reason.as_deref() == Some("FailedCreate"))
        })
        .await;
    cluster.end().await;
}
