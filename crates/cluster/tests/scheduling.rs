//! Pods that found no node get one as soon as what they lacked is there, in paused time.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::PostParams;
use kube::{Api, Resource};
use kubewright_cluster::{Clock, Cluster, NodeSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Long enough for writes, which take no virtual time, and for nothing that waits.
const AT_ONCE: Duration = Duration::from_millis(200);

async fn start() -> Cluster {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().nodes(1).clock(clock).seed(7);
    builder.start().await.expect("starts")
}

async fn create<K>(cluster: &Cluster, object: Value)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let api: Api<K> = Api::default_namespaced(cluster.client());
    let object: K = serde_json::from_value(object).expect("the test's object is one");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the server takes it");
}

fn pod(name: &str, extra: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}});
    for (key, value) in extra.as_object().into_iter().flatten() {
        pod["spec"][key] = value.clone();
    }
    pod
}

async fn message(cluster: &Cluster, name: &str) -> String {
    let pod = Api::<Pod>::default_namespaced(cluster.client())
        .get(name)
        .await;
    let conditions = pod.expect("the pod").status.and_then(|s| s.conditions);
    let mut unscheduled = conditions
        .into_iter()
        .flatten()
        .filter(|c| c.status == "False");
    unscheduled.find_map(|c| c.message).unwrap_or_default()
}

/// How long until a pod runs, in virtual time.
async fn runs_after(cluster: &Cluster, name: &str) -> Duration {
    let (start, api) = (
        Instant::now(),
        Api::<Pod>::default_namespaced(cluster.client()),
    );
    loop {
        let pod = api.get(name).await.expect("the pod");
        let phase = pod.status.and_then(|s| s.phase);
        if phase.as_deref() == Some("Running") {
            return start.elapsed();
        }
        assert!(
            start.elapsed() < Duration::from_secs(900),
            "{name} never runs"
        );
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pod_runs_as_soon_as_its_claim_is_bound() {
    let cluster = start().await;
    let volumes =
        json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]});
    create::<Pod>(&cluster, pod("p", volumes)).await;
    sleep(Duration::from_secs(60)).await;
    assert!(message(&cluster, "p").await.contains("\"data\" not found"));
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    create::<PersistentVolumeClaim>(&cluster, claim).await;
    assert!(runs_after(&cluster, "p").await < AT_ONCE);
    cluster.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_runs_as_soon_as_there_is_a_node_for_it() {
    let cluster = start().await;
    create::<Pod>(
        &cluster,
        pod("p", json!({"nodeSelector": {"pool": "late"}})),
    )
    .await;
    sleep(Duration::from_secs(60)).await;
    assert!(message(&cluster, "p").await.contains("didn't match"));
    let late = NodeSpec::new("late").label("pool", "late");
    cluster.nodes().add(late).await.expect("a node");
    assert!(runs_after(&cluster, "p").await < AT_ONCE);
    cluster.stop().await;
}
