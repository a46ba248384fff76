//! What controllers do when there is nothing to do.

use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kubewright_runtime::client::TypedObject;

use super::{Cluster, daemonset, deployment, statefulset};

/// The names and versions of all objects of a kind.
async fn versions<K: TypedObject>(cluster: &Cluster) -> Vec<String> {
    let version = |object: &K| {
        let metadata = object.meta();
        format!("{:?} {:?}", metadata.name, metadata.resource_version)
    };
    cluster.list::<K>().await.iter().map(version).collect()
}

async fn everything(cluster: &Cluster) -> Vec<Vec<String>> {
    vec![
        versions::<Deployment>(cluster).await,
        versions::<ReplicaSet>(cluster).await,
        versions::<StatefulSet>(cluster).await,
        versions::<DaemonSet>(cluster).await,
        versions::<ControllerRevision>(cluster).await,
        versions::<PersistentVolumeClaim>(cluster).await,
        versions::<Pod>(cluster).await,
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_does_not_change() {
    let cluster = Cluster::start().await;
    cluster.create::<Node>(daemonset::node("a")).await;
    cluster.create::<DaemonSet>(daemonset::set("a")).await;
    cluster
        .create::<Deployment>(deployment::deployment("a", 2))
        .await;
    let mut set = statefulset::set("a", 2);
    set["metadata"]["name"] = "db".into();
    set["spec"]["selector"]["matchLabels"]["app"] = "db".into();
    set["spec"]["template"]["metadata"]["labels"]["app"] = "db".into();
    cluster.create::<StatefulSet>(set).await;
    cluster
        .until_one("agent", |set| daemonset::is_complete(set, 1))
        .await;
    cluster
        .until_one("web", |web| deployment::is_complete(web, 2, "1"))
        .await;
    cluster
        .until_one("db", |set| statefulset::is_complete(set, 2))
        .await;
    // Whatever was still under way is over after a minute; then an hour must change nothing.
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    let before = everything(&cluster).await;
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(everything(&cluster).await, before);
    cluster.end().await;
}
