//! Deployments as their users see them.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::Delete;
use serde_json::{Value, json};

use super::Cluster;
use crate::controllers::deployment::samples::image;

/// A Deployment with many defaults to be filled in: its template must still be that of its set afterwards.
pub(super) fn deployment(image: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
                "spec": {
                    "containers": [{
                        "name": "main",
                        "image": image,
                        "ports": [{"containerPort": 80}],
                        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "resources": {"requests": {"cpu": "1000m"}, "limits": {}},
                        "readinessProbe": {"httpGet": {"port": 80}},
                        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                    "tolerations": [],
                },
            },
        },
    })
}

fn reason<'a>(deployment: &'a Deployment, type_: &str) -> Option<&'a str> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    let condition = conditions.find(|condition| condition.type_.as_deref() == Some(type_));
    condition?.reason.as_deref()
}

/// Whether a rollout is over and all pods have this revision.
pub(super) fn is_complete(deployment: &Deployment, replicas: i32, revision: &str) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    let annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && status.replicas == Some(replicas)
        && status.updated_replicas == Some(replicas)
        && status.available_replicas == Some(replicas)
        && status.unavailable_replicas.is_none()
        && reason(deployment, "Progressing") == Some("NewReplicaSetAvailable")
        && reason(deployment, "Available") == Some("MinimumReplicasAvailable")
        && annotations
            .get("deployment.kubernetes.io/revision")
            .map(String::as_str)
            == Some(revision)
}

/// The sets as pairs of image and size, in the order of images.
async fn sizes(cluster: &Cluster) -> Vec<(String, i32)> {
    let sets: Vec<ReplicaSet> = cluster.list().await;
    let mut sizes: Vec<_> = sets
        .iter()
        .map(|set| (image(set).to_owned(), set.spec.replicas.unwrap_or(1)))
        .collect();
    sizes.sort();
    sizes
}

fn pair(image: &str, size: i32) -> (String, i32) {
    (image.to_owned(), size)
}

fn use_image(deployment: &mut Deployment, image: &str) {
    let spec = deployment.spec.template.spec.get_or_insert_default();
    spec.containers[0].image = Some(image.to_owned());
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_rolled_out_updated_and_rolled_back() {
    let cluster = Cluster::start().await;
    cluster.create::<Deployment>(deployment("a", 3)).await;
    cluster
        .until_one("web", |web| is_complete(web, 3, "1"))
        .await;
    assert_eq!(sizes(&cluster).await, [pair("a", 3)]);
    let set = cluster.list::<ReplicaSet>().await.remove(0);
    let name = set.metadata.name.expect("sets have names");
    cluster
        .until_event(
            "ScalingReplicaSet",
            &format!("Scaled up replica set {name} from 0 to 3"),
        )
        .await;
    for pod in cluster.list::<Pod>().await {
        let pod = pod.metadata.name.expect("pods have names");
        assert!(pod.starts_with(&format!("{name}-")), "{pod}");
        cluster
            .until_event("SuccessfulCreate", &format!("Created pod: {pod}"))
            .await;
    }

    cluster
        .change::<Deployment>("web", |web| use_image(web, "b"))
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 3, "2"))
        .await;
    assert_eq!(sizes(&cluster).await, [pair("a", 0), pair("b", 3)]);
    cluster
        .until_event(
            "ScalingReplicaSet",
            &format!("Scaled down replica set {name} from 1 to 0"),
        )
        .await;

    cluster
        .change::<Deployment>("web", |web| use_image(web, "a"))
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 3, "3"))
        .await;
    assert_eq!(sizes(&cluster).await, [pair("a", 3), pair("b", 0)]);
    cluster
        .until::<Pod>("three pods", |pods| pods.len() == 3)
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_is_scaled_and_paused() {
    let cluster = Cluster::start().await;
    cluster.create::<Deployment>(deployment("a", 1)).await;
    cluster
        .until_one("web", |web| is_complete(web, 1, "1"))
        .await;
    cluster
        .change::<Deployment>("web", |web| web.spec.replicas = Some(4))
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 4, "1"))
        .await;

    cluster
        .change::<Deployment>("web", |web| {
            web.spec.paused = Some(true);
            use_image(web, "b");
        })
        .await;
    cluster
        .until_one("web", |web| {
            reason(web, "Progressing") == Some("DeploymentPaused")
        })
        .await;
    assert_eq!(sizes(&cluster).await, [pair("a", 4)]);
    cluster
        .change::<Deployment>("web", |web| web.spec.paused = None)
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 4, "2"))
        .await;
    assert_eq!(sizes(&cluster).await, [pair("a", 0), pair("b", 4)]);

    cluster
        .change::<Deployment>("web", |web| web.spec.replicas = Some(0))
        .await;
    cluster
        .until::<Pod>("no pods", |pods| pods.is_empty())
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn recreate_and_a_short_history_leave_one_set() {
    let cluster = Cluster::start().await;
    let mut object = deployment("a", 2);
    object["spec"]["strategy"] = json!({"type": "Recreate"});
    object["spec"]["revisionHistoryLimit"] = json!(0);
    cluster.create::<Deployment>(object).await;
    cluster
        .until_one("web", |web| is_complete(web, 2, "1"))
        .await;
    cluster
        .change::<Deployment>("web", |web| use_image(web, "b"))
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 2, "2"))
        .await;
    cluster
        .until::<ReplicaSet>("one set", |sets| sets.len() == 1 && image(&sets[0]) == "b")
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_hangs_is_late_after_its_deadline_and_can_be_undone() {
    let cluster = Cluster::start().await;
    cluster.create::<Deployment>(deployment("a", 2)).await;
    cluster
        .until_one("web", |web| is_complete(web, 2, "1"))
        .await;
    let good: Deployment = cluster.get("web").await;
    let hang = |web: &mut Deployment| {
        let metadata = web.spec.template.metadata.get_or_insert_default();
        let labels = metadata.labels.get_or_insert_default();
        labels.insert("hangs".to_owned(), "yes".to_owned());
    };
    cluster.change::<Deployment>("web", hang).await;
    let is_late = |web: &Deployment| reason(web, "Progressing") == Some("ProgressDeadlineExceeded");
    cluster.until_one("web", is_late).await;
    let late: Deployment = cluster.get("web").await;
    assert_eq!(
        reason(&late, "Available"),
        Some("MinimumReplicasAvailable"),
        "the old pods still serve"
    );
    cluster
        .change::<Deployment>("web", |web| web.spec.template = good.spec.template)
        .await;
    cluster
        .until_one("web", |web| is_complete(web, 2, "3"))
        .await;
    cluster.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_set_of_another_owner_that_has_the_name_counts_as_a_collision() {
    let cluster = Cluster::start().await;
    cluster.create::<Deployment>(deployment("a", 1)).await;
    cluster
        .until_one("web", |web| is_complete(web, 1, "1"))
        .await;
    let taken = cluster.list::<ReplicaSet>().await.remove(0);
    let web: Deployment = cluster.get("web").await;
    let client = &cluster.client;
    let gone = client.delete(&web, Delete::background()).await;
    gone.expect("the deployment is deleted");
    let gone = client.delete(&taken, Delete::background()).await;
    gone.expect("the set is deleted");
    // Somebody else takes the name that the next one will want, for pods that are none of its business.
    let other = json!({
        "metadata": {"name": taken.metadata.name, "namespace": "default"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "other"}},
            "template": {
                "metadata": {"labels": {"app": "other"}},
                "spec": {"containers": [{"name": "main", "image": "x"}]},
            },
        },
    });
    cluster.create::<ReplicaSet>(other).await;
    cluster.create::<Deployment>(deployment("a", 1)).await;
    cluster
        .until_one("web", |web| is_complete(web, 1, "1"))
        .await;
    let web: Deployment = cluster.get("web").await;
    assert_eq!(
        web.status.and_then(|status| status.collision_count),
        Some(1)
    );
    cluster.end().await;
}
