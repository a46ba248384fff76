//! Clusters with some of the built-in controllers, and built-in controllers in a manager of somebody else's.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kubewright_cluster::{BuiltIn, Clock, Cluster};
use kubewright_runtime::Manager;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

async fn cluster(parts: &[BuiltIn]) -> Cluster {
    let start = "2030-01-01T00:00:00Z".parse().expect("a moment");
    let builder = Cluster::builder()
        .seed(7)
        .clock(Clock::starting_at(start))
        .controllers(parts.iter().copied());
    builder.start().await.expect("a cluster starts")
}

async fn deploy(cluster: &Cluster) {
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]}}},
    }))
    .expect("it is a Deployment");
    let deployments = Api::<Deployment>::default_namespaced(cluster.client());
    let created = deployments
        .create(&PostParams::default(), &deployment)
        .await;
    created.expect("it is created");
}

async fn sets(cluster: &Cluster) -> usize {
    let sets = Api::<ReplicaSet>::default_namespaced(cluster.client());
    let listed = sets.list(&ListParams::default()).await;
    listed.expect("they are listed").items.len()
}

#[tokio::test(start_paused = true)]
async fn cluster_runs_the_controllers_that_it_was_given_and_no_others() {
    let cluster = cluster(&[BuiltIn::Deployment]).await;
    deploy(&cluster).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(sets(&cluster).await, 1);
    let namespace = serde_json::from_value(json!({"metadata": {"name": "later"}}));
    let namespaces = Api::<Namespace>::all(cluster.client());
    let namespace = namespace.expect("a namespace");
    let created = namespaces.create(&PostParams::default(), &namespace).await;
    created.expect("it is created");
    sleep(Duration::from_secs(60)).await;
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), "later");
    let found = accounts
        .get_opt("default")
        .await
        .expect("the server answers");
    assert_eq!(found, None, "nothing makes accounts");
}

#[tokio::test(start_paused = true)]
async fn controller_that_a_cluster_lacks_runs_in_another_manager() {
    let without = BuiltIn::all().filter(|part| *part != BuiltIn::Deployment);
    let cluster = cluster(&without.collect::<Vec<_>>()).await;
    deploy(&cluster).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(sets(&cluster).await, 0);
    let manager = Manager::new(cluster.client()).name("elsewhere");
    let manager = cluster.add_controllers(manager, [BuiltIn::Deployment]);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.expect("keys are made").run_until(stop.clone()));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(sets(&cluster).await, 1);
    stop.cancel();
    running
        .await
        .expect("it does not panic")
        .expect("it ends well");
}
