//! Forks and restored snapshots keep what no object tells: back-offs of containers and DaemonSets, what autoscalers remember.
//! What nodes know is in `kubelet.rs`.

mod world;

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::Pod;
use kubewright_cluster::{Cluster, Measured};
use serde_json::{Value, json};
use tokio::time::sleep;

use world::{create, here, start, until};

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

async fn restarts(cluster: &Cluster) -> i64 {
    let pod = until(&here::<Pod>(cluster), "crash", Value::is_object).await;
    let status = &pod["status"]["containerStatuses"][0];
    status["restartCount"].as_i64().expect("a number")
}

#[tokio::test(start_paused = true)]
async fn container_that_waits_to_be_restarted_waits_in_the_fork() {
    let cluster = start().await;
    let metadata =
        json!({"name": "crash", "annotations": {"sim.kubewright.dev/crash-loop": "true"}});
    let pod =
        json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "sim"}]}});
    create::<Pod>(&here(&cluster), pod).await;
    sleep(minutes(4)).await;
    let (fork, before) = (
        cluster.fork().await.expect("a fork"),
        restarts(&cluster).await,
    );
    assert!(before >= 4, "{before} restarts");
    // The pause is between two and five minutes by now: whoever forgot it would restart at once.
    sleep(Duration::from_secs(30)).await;
    assert_eq!(restarts(&fork).await, restarts(&cluster).await);
    sleep(minutes(20)).await;
    assert_eq!(restarts(&fork).await, restarts(&cluster).await);
    fork.stop().await;
    cluster.stop().await;
}

/// Replicas of the Deployment after the autoscaler has looked.
async fn replicas(cluster: &Cluster) -> i64 {
    let web = until(&here::<Deployment>(cluster), "web", Value::is_object).await;
    web["spec"]["replicas"].as_i64().expect("a number")
}

fn load(cluster: &Cluster, count: &str) {
    let set = cluster
        .metrics()
        .set(Measured::external("default"), "jobs", count);
    set.expect("a quantity");
}

/// Mirrors `horizontal.go: stabilizeRecommendation`: five minutes have to pass before it goes down.
#[tokio::test(start_paused = true)]
async fn autoscaler_remembers_its_recommendations_in_forks_and_snapshots() {
    let cluster = start().await;
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "sim"}]}});
    let spec =
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    create::<Deployment>(
        &here(&cluster),
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    let metric = json!({"type": "External", "external": {
        "metric": {"name": "jobs"}, "target": {"type": "AverageValue", "averageValue": "10"}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec =
        json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10, "metrics": [metric]});
    load(&cluster, "50");
    create::<HorizontalPodAutoscaler>(
        &here(&cluster),
        json!({"metadata": {"name": "web"}, "spec": spec}),
    )
    .await;
    until(&here::<Deployment>(&cluster), "web", |web| {
        web["spec"]["replicas"] == 5
    })
    .await;
    sleep(minutes(1)).await;
    load(&cluster, "10");
    // Long after the last high recommendation, and before the window is over.
    sleep(minutes(4)).await;
    let (fork, snapshot) = (
        cluster.fork().await.expect("a fork"),
        cluster.snapshot().await,
    );
    assert_eq!((replicas(&cluster).await, replicas(&fork).await), (5, 5));
    sleep(Duration::from_secs(75)).await;
    // Whoever begins anew waits for five more minutes.
    assert_eq!((replicas(&cluster).await, replicas(&fork).await), (1, 1));
    fork.stop().await;
    cluster.restore(&snapshot).await.expect("in memory");
    load(&cluster, "10");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(replicas(&cluster).await, 1);
    cluster.reset().await.expect("in memory");
    cluster.stop().await;
}
