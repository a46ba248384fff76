//! What the tests share: a cluster in virtual time, objects from JSON, and waiting for a state.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use kubewright_cluster::{Clock, Cluster};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

/// How long, in virtual time, a state may take to come about.
const PATIENCE: Duration = Duration::from_secs(600);

/// The moment at which virtual time begins.
pub(crate) fn beginning() -> Timestamp {
    "2030-01-01T00:00:00Z".parse().expect("a moment")
}

pub(crate) async fn start() -> Cluster {
    let clock = Clock::starting_at(beginning());
    let builder = Cluster::builder().nodes(0).clock(clock).seed(7);
    builder.start().await.expect("starts")
}

pub(crate) fn here<K>(cluster: &Cluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::default_namespaced(cluster.client())
}

pub(crate) fn there<K>(cluster: &Cluster, namespace: &str) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::namespaced(cluster.client(), namespace)
}

pub(crate) fn all<K>(cluster: &Cluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
{
    Api::all(cluster.client())
}

/// Creates an object from JSON and gives it as the server made it.
pub(crate) async fn create<K>(api: &Api<K>, value: Value) -> K
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let object: K = serde_json::from_value(value).expect("the test's object is one");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created")
}

pub(crate) async fn delete<K>(api: &Api<K>, name: &str, how: DeleteParams)
where
    K: DeserializeOwned + Clone + Debug,
{
    api.delete(name, &how).await.expect("deleted");
}

pub(crate) async fn patch<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: DeserializeOwned + Clone + Debug,
{
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(patch))
        .await
        .expect("patched");
}

pub(crate) async fn exists<K>(api: &Api<K>, name: &str) -> bool
where
    K: DeserializeOwned + Clone + Debug,
{
    api.get_opt(name).await.expect("an answer").is_some()
}

/// An owner reference to an object.
pub(crate) fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Value {
    let mut reference = json!(object.owner_ref(&()).expect("it was created"));
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

/// Waits until something holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while !holds().await {
        assert!(tokio::time::Instant::now() < end, "never: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Lets everything come to rest that has not yet.
pub(crate) async fn rest() {
    sleep(Duration::from_secs(5)).await;
}
