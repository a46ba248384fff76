//! A cluster on a paused clock, and what tests do with it.
#![allow(dead_code, reason = "every test takes what it needs")]

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use kubewright_cluster::{Clock, Cluster};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep};

pub(crate) async fn start() -> Cluster {
    let clock = Clock::starting_at("2030-01-01T00:00:00Z".parse().expect("a moment"));
    let builder = Cluster::builder().nodes(2).clock(clock).seed(7);
    builder.start().await.expect("starts")
}

/// The objects of a kind in the default namespace.
pub(crate) fn here<K>(cluster: &Cluster) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    Api::default_namespaced(cluster.client())
}

pub(crate) async fn create<K>(api: &Api<K>, object: Value)
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let object: K = serde_json::from_value(object).expect("the test's object is one");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("the server takes it");
}

pub(crate) async fn change<K>(api: &Api<K>, name: &str, patch: Value)
where
    K: DeserializeOwned + Clone + Debug,
{
    let params = PatchParams::default();
    let patched = api.patch(name, &params, &Patch::Merge(patch)).await;
    patched.expect("the server takes it");
}

/// The object of a name, as JSON, once it is as it should be; within two virtual hours.
pub(crate) async fn until<K>(api: &Api<K>, name: &str, holds: impl Fn(&Value) -> bool) -> Value
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let end = Instant::now() + Duration::from_secs(7200);
    loop {
        let object = api.get_opt(name).await.expect("an answer");
        let shown = serde_json::to_value(object).expect("json");
        if holds(&shown) {
            return shown;
        }
        assert!(
            Instant::now() < end,
            "{name} is not as it should be: {shown:#}"
        );
        sleep(Duration::from_millis(500)).await;
    }
}

pub(crate) async fn all<K>(api: &Api<K>) -> Vec<Value>
where
    K: Serialize + DeserializeOwned + Clone + Debug,
{
    let listed = api.list(&ListParams::default()).await.expect("an answer");
    let shown = listed
        .items
        .iter()
        .map(|object| serde_json::to_value(object).expect("json"));
    shown.collect()
}

/// Whether an event says this of an object.
pub(crate) async fn has_event(cluster: &Cluster, name: &str, reason: &str, message: &str) -> bool {
    sleep(Duration::from_secs(5)).await;
    let events = all(&here::<Event>(cluster)).await;
    events.iter().any(|event| {
        event["involvedObject"]["name"] == name
            && event["reason"] == reason
            && event["message"] == message
    })
}

pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions
        .into_iter()
        .flatten()
        .filter(|c| c["type"] == kind);
    found.next().unwrap_or(&Value::Null)
}

pub(crate) fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind)["status"] == "True"
}
