//! What the node lifecycle controller writes to the API server.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Patch, PatchParams};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::identity::Acting;
use crate::pods::disruption::Disruption;

/// The name under which this is written.
const MANAGER: &str = "kube-controller-manager";

fn patching() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Writes conditions of a node.
///
/// # Errors
/// What the server says.
pub(super) async fn conditions(
    client: kube::Client,
    name: &str,
    conditions: Vec<NodeCondition>,
) -> Result<(), kube::Error> {
    let (acting, params, object) = (Acting::of(&client), patching(), (None, name));
    let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
    let patched = acting.patch_status::<Node, IgnoredAny>(object, &params, &patch);
    missing_is_fine(patched.await)
}

/// Writes the taints of a node, unless somebody else changed it meanwhile.
///
/// # Errors
/// What the server says.
pub(super) async fn taints(
    client: kube::Client,
    node: &Node,
    taints: Vec<Taint>,
) -> Result<(), kube::Error> {
    let object = (None, node.metadata.name.as_deref().unwrap_or(""));
    let version = &node.metadata.resource_version;
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
    let (acting, params, patch) = (Acting::of(&client), patching(), Patch::Merge(patch));
    let patched = acting.patch::<Node>(object, &params, &patch);
    missing_is_fine(patched.await)
}

/// Marks a pod as not ready: its node cannot say.
///
/// # Errors
/// What the server says.
pub(super) async fn not_ready(
    client: kube::Client,
    pod: &Pod,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": Time(now)});
    patch_status(client, pod, json!({"conditions": [condition]})).await
}

/// A pod that a taint evicts.
const EVICTION: Disruption = Disruption {
    manager: MANAGER,
    reason: "DeletionByTaintManager",
    message: "Taint manager: deleting due to NoExecute taint",
};

/// Takes a pod away that a taint evicts, and says so.
///
/// # Errors
/// What the server says.
pub(super) async fn evict(
    client: kube::Client,
    pod: &Pod,
    now: Timestamp,
) -> Result<(), kube::Error> {
    EVICTION.delete(&client, pod, now).await
}

async fn patch_status(client: kube::Client, pod: &Pod, status: Value) -> Result<(), kube::Error> {
    let meta = &pod.metadata;
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let object = (Some(namespace), meta.name.as_deref().unwrap_or(""));
    let patch = json!({"metadata": {"uid": meta.uid}, "status": status});
    let (acting, params, patch) = (Acting::of(&client), patching(), Patch::Strategic(patch));
    let patched = acting.patch_status::<Pod, IgnoredAny>(object, &params, &patch);
    missing_is_fine(patched.await)
}

/// What is gone needs nothing.
fn missing_is_fine<T>(result: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}
