//! What the scheduler writes to the API server.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Binding, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kubewright_cache::Key;
use serde::de::IgnoredAny;
use serde_json::json;

use super::board::NodeName;
use super::volumes::Choice;
use crate::controllers::volumes::binding::bind_volume;
use crate::controllers::volumes::objects::SELECTED_NODE;
use crate::identity::Acting;

/// The name under which this is written.
const MANAGER: &str = "kube-scheduler";

fn patching() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

fn creating() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// A pod that was put on a node.
pub(super) struct Bound {
    pub(super) pod: Arc<Pod>,
    pub(super) node: NodeName,
}

/// Puts a pod on a node.
///
/// # Errors
/// What the server says.
pub(super) async fn bind(client: kube::Client, pod: &Pod, node: &str) -> Result<(), kube::Error> {
    let meta = &pod.metadata;
    let name = meta.name.as_deref().unwrap_or("");
    let binding = Binding {
        metadata: ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let api: Api<Pod> = Api::namespaced(client, meta.namespace.as_deref().unwrap_or("default"));
    let params = creating();
    let bound: Result<serde_json::Value, _> = api
        .create_subresource("binding", name, &params, &binding)
        .await;
    bound.map(|_| ())
}

/// Whether the pod says already that it cannot be scheduled, for this reason.
pub(super) fn says(pod: &Pod, message: &str) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|condition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
            && condition.message.as_deref() == Some(message)
    })
}

/// Writes down why a pod has no node.
///
/// # Errors
/// What the server says.
pub(super) async fn unschedulable(
    client: kube::Client,
    pod: &Pod,
    message: &str,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let meta = &pod.metadata;
    let conditions = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    let mut known = conditions.filter(|c| c.type_ == "PodScheduled" && c.status == "False");
    let since = known.find_map(|c| c.last_transition_time.clone());
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": since.unwrap_or(Time(now)), "observedGeneration": meta.generation,
    });
    let patch = json!({"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}});
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let object = (Some(namespace), meta.name.as_deref().unwrap_or(""));
    let (acting, params, patch) = (Acting::of(&client), patching(), Patch::Strategic(patch));
    let patched = acting.patch_status::<Pod, IgnoredAny>(object, &params, &patch);
    patched.await.map(drop)
}

/// Promises volumes to the claims that get them, and tells the provisioners of the others which node they are for
/// (`volumebinding/binder.go: bindAPIUpdate`). A volume that somebody else took meanwhile is a conflict.
///
/// # Errors
/// What the server says.
pub(super) async fn bind_volumes(
    client: kube::Client,
    choices: Vec<(Choice, Arc<PersistentVolumeClaim>)>,
    node: &str,
) -> Result<(), kube::Error> {
    for (choice, claim) in choices {
        match &choice.volume {
            Some(volume) => promise(&client, volume, &claim).await?,
            None => select_node(&client, &choice.claim, node).await?,
        }
    }
    Ok(())
}

async fn promise(
    client: &kube::Client,
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
) -> Result<(), kube::Error> {
    let mut promised = volume.clone();
    bind_volume(&mut promised, claim);
    if promised == *volume {
        return Ok(());
    }
    let (meta, spec) = (&promised.metadata, promised.spec.unwrap_or_default());
    let patch = json!({
        "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": meta.annotations},
        "spec": {"claimRef": spec.claim_ref},
    });
    let object = (None, volume.metadata.name.as_deref().unwrap_or(""));
    let (acting, params, patch) = (Acting::of(client), patching(), Patch::Merge(patch));
    let patched = acting.patch::<PersistentVolume>(object, &params, &patch);
    patched.await
}

async fn select_node(client: &kube::Client, claim: &Key, node: &str) -> Result<(), kube::Error> {
    let object = (Some(claim.namespace().unwrap_or("default")), claim.name());
    let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
    let (acting, params, patch) = (Acting::of(client), patching(), Patch::Merge(patch));
    let patched = acting.patch::<PersistentVolumeClaim>(object, &params, &patch);
    patched.await
}
