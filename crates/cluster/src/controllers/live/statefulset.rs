//! StatefulSets as their users see them.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::{Cluster, names};

pub(super) fn set(image: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "serviceName": "headless",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]},
            },
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
        },
    })
}

/// Whether all pods are there, serve, and have the latest revision.
pub(super) fn is_complete(set: &StatefulSet, replicas: i32) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.observed_generation == set.metadata.generation
        && status.replicas == replicas
        && status.ready_replicas.unwrap_or(0) == replicas
        && status.available_replicas.unwrap_or(0) == replicas
        && status.updated_replicas.unwrap_or(0) == replicas
        && status.current_revision == status.update_revision
}

#[tokio::test(start_paused = true)]
async fn a_set_has_named_pods_with_claims_that_outlive_them() {
    let cluster = Cluster::start().await;
    cluster.create::<StatefulSet>(set("a", 3)).await;
    cluster.until_one("web", |set| is_complete(set, 3)).await;
    assert_eq!(
        names(&cluster.list::<Pod>().await),
        ["web-0", "web-1", "web-2"]
    );
    let claims = cluster.list::<PersistentVolumeClaim>().await;
    assert_eq!(names(&claims), ["data-web-0", "data-web-1", "data-web-2"]);
    let owners = claims[0]
        .metadata
        .owner_references
        .clone()
        .unwrap_or_default();
    assert_eq!(
        owners
            .iter()
            .map(|owner| owner.kind.as_str())
            .collect::<Vec<_>>(),
        ["StatefulSet"]
    );
    let pod: Pod = cluster.get("web-1").await;
    let spec = pod.spec.expect("pods have specs");
    assert_eq!(
        (spec.hostname.as_deref(), spec.subdomain.as_deref()),
        (Some("web-1"), Some("headless"))
    );
    cluster
        .until_event(
            "SuccessfulCreate",
            "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
        )
        .await;
    cluster
        .until_event(
            "SuccessfulCreate",
            "Create Pod web-2 in StatefulSet web successful",
        )
        .await;

    cluster
        .change::<StatefulSet>("web", |set| set.spec.replicas = Some(1))
        .await;
    cluster.until_one("web", |set| is_complete(set, 1)).await;
    assert_eq!(names(&cluster.list::<Pod>().await), ["web-0"]);
    assert_eq!(cluster.list::<PersistentVolumeClaim>().await.len(), 3);
    cluster
        .until_event(
            "SuccessfulDelete",
            "Delete Pod web-1 in StatefulSet web successful",
        )
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_update_stops_at_the_partition_and_goes_on_without_it() {
    let cluster = Cluster::start().await;
    let mut object = set("a", 3);
    object["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    cluster.create::<StatefulSet>(object).await;
    cluster.until_one("web", |set| is_complete(set, 3)).await;
    let use_image = |set: &mut StatefulSet, image: &str| {
        set.spec.template.spec.get_or_insert_default().containers[0].image = Some(image.to_owned());
    };
    cluster
        .change::<StatefulSet>("web", |set| use_image(set, "b"))
        .await;
    cluster
        .until_one::<StatefulSet>("web", |set| {
            let status = set.status.clone().unwrap_or_default();
            status.updated_replicas == Some(1)
                && status.current_replicas == Some(2)
                && status.ready_replicas == Some(3)
        })
        .await;
    let image = |pod: &Pod| {
        pod.spec
            .as_ref()
            .and_then(|spec| spec.containers[0].image.clone())
    };
    let images: Vec<_> = ["web-0", "web-1", "web-2"].to_vec();
    let mut seen = Vec::new();
    for name in images {
        seen.extend(image(&cluster.get(name).await));
    }
    assert_eq!(seen, ["a", "a", "b"]);

    cluster
        .change::<StatefulSet>("web", |set| {
            let strategy = set.spec.update_strategy.get_or_insert_default();
            strategy.rolling_update.get_or_insert_default().partition = Some(0);
        })
        .await;
    cluster.until_one("web", |set| is_complete(set, 3)).await;
    assert_eq!(cluster.list::<ControllerRevision>().await.len(), 2);

    // Back to the first template: its revision is used again, with a new number.
    cluster
        .change::<StatefulSet>("web", |set| use_image(set, "a"))
        .await;
    cluster
        .until::<Pod>("all pods old again", |pods| {
            pods.len() == 3 && pods.iter().all(|pod| image(pod).as_deref() == Some("a"))
        })
        .await;
    cluster.until_one("web", |set| is_complete(set, 3)).await;
    let revisions = cluster.list::<ControllerRevision>().await;
    let mut numbers: Vec<_> = revisions
        .iter()
        .filter_map(|revision| revision.revision)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3]);
    cluster.end().await;
}
