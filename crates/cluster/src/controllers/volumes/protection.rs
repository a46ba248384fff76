//! Keeps claims that pods use and volumes that are bound, deleted or not: their finalizers go when nobody needs them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{
    ClientError, Context, Controller, Error, IgnoreNotFound, Key, Outcome, Predicate, Query,
    Reconciler, Watch, finalizer,
};

use crate::controllers::ephemeral_volume::claim_name;
use crate::pods::{is_finished, node_name};
use crate::writes::replace;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";

/// Protects claims.
pub(crate) fn claim_controller() -> Controller {
    // A pod that is gone sets its claims free; nothing else of it matters.
    let gone = Predicate::any().created(|_| false).updated(|_, _| false);
    let pods = Watch::of::<Pod>().map(|pod, _| claims(pod)).when(gone);
    Controller::of::<PersistentVolumeClaim>("pvc-protection-controller")
        .watches(pods)
        .reconciler(Claims)
}

/// Protects volumes.
pub(crate) fn volume_controller() -> Controller {
    Controller::of::<PersistentVolume>("pv-protection-controller").reconciler(Volumes)
}

/// What is to be done with a finalizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Add,
    /// It goes, if nobody uses the object.
    Remove,
    Leave,
}

fn step(metadata: &ObjectMeta, finalizer: &str) -> Step {
    let there = metadata.finalizers.iter().flatten().any(|f| f == finalizer);
    match (metadata.deletion_timestamp.is_some(), there) {
        (false, false) => Step::Add,
        (true, true) => Step::Remove,
        _ => Step::Leave,
    }
}

struct Claims;

impl Reconciler<PersistentVolumeClaim> for Claims {
    async fn reconcile(
        &self,
        claim: Arc<PersistentVolumeClaim>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        match step(&claim.metadata, CLAIM) {
            Step::Leave => {}
            Step::Add => write(cx, &*claim, |claim| finalizer::add(claim, CLAIM)).await?,
            Step::Remove => {
                // A pod that the cache has not heard of may use it.
                let namespace = cx.key().namespace().unwrap_or_default();
                let all = Query::all().namespace(namespace);
                let pods: Vec<Pod> = cx.client().live().list(all).await?;
                if !pods.iter().any(|pod| uses(pod, &claim)) {
                    write(cx, &*claim, |claim| finalizer::remove(claim, CLAIM)).await?;
                }
            }
        }
        Ok(Outcome::done())
    }
}

struct Volumes;

impl Reconciler<PersistentVolume> for Volumes {
    async fn reconcile(
        &self,
        volume: Arc<PersistentVolume>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let phase = volume.status.as_ref().and_then(|s| s.phase.as_deref());
        let change: fn(&mut PersistentVolume) -> bool = match step(&volume.metadata, VOLUME) {
            Step::Add => |volume| finalizer::add(volume, VOLUME),
            Step::Remove if phase != Some("Bound") => |volume| finalizer::remove(volume, VOLUME),
            Step::Remove | Step::Leave => return Ok(Outcome::done()),
        };
        // Rare, and large: it is not to make every other run large.
        Box::pin(write(cx, &*volume, change)).await?;
        Ok(Outcome::done())
    }
}

/// Whether a pod uses a claim: it has been given a node. Others cannot start with a claim that is going.
fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let mut volumes = volumes.filter(|volume| match &volume.persistent_volume_claim {
        Some(claimed) => claimed.claim_name == name,
        None => {
            let own = || is_of(claim, pod) && claim_name(pod, &volume.name) == name;
            volume.ephemeral.is_some() && !is_finished(pod) && own()
        }
    });
    !node_name(pod).is_empty() && volumes.next().is_some()
}

/// Whether a claim was made for a pod.
fn is_of(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == pod.metadata.uid.as_ref())
}

/// The claims that a pod may use.
fn claims(pod: &Pod) -> Vec<Key> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let volumes = pod
        .spec
        .iter()
        .flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| match &volume.persistent_volume_claim {
        Some(claimed) => Some(claimed.claim_name.clone()),
        None => volume
            .ephemeral
            .as_ref()
            .map(|_| claim_name(pod, &volume.name)),
    });
    names.map(|name| Key::new(namespace, &name)).collect()
}

/// Writes an object with a finalizer more or less; refused if somebody else changed it meanwhile.
async fn write<K: TypedObject + PartialEq>(
    cx: &Context,
    object: &K,
    change: impl FnOnce(&mut K) -> bool,
) -> Result<(), ClientError> {
    let mut after = object.clone();
    if !change(&mut after) {
        return Ok(());
    }
    let written = replace(cx.client(), object, after).await;
    written.ignore_not_found().map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn finalizer_is_added_while_an_object_stays_and_removed_when_it_goes() {
        let (deleted, other) = ("2030-01-01T00:00:00Z", "example.com/mine");
        for (metadata, expected) in [
            (json!({}), Step::Add),
            (json!({"finalizers": [other]}), Step::Add),
            (json!({"finalizers": [other, CLAIM]}), Step::Leave),
            (
                json!({"finalizers": [other, CLAIM], "deletionTimestamp": deleted}),
                Step::Remove,
            ),
            (
                json!({"finalizers": [other], "deletionTimestamp": deleted}),
                Step::Leave,
            ),
        ] {
            let read = serde_json::from_value(metadata.clone()).expect("it is metadata");
            assert_eq!(step(&read, CLAIM), expected, "{metadata}");
        }
    }

    #[test]
    fn claim_is_used_by_pods_that_have_a_node_and_name_it() {
        let claim = |owner: Value| -> PersistentVolumeClaim {
            let metadata = json!({"namespace": "n", "name": "p-data", "ownerReferences": owner});
            serde_json::from_value(json!({"metadata": metadata})).expect("it is a claim")
        };
        let pod = |node: Value, phase: &str, volume: Value| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"namespace": "n", "name": "p", "uid": "u"},
                "spec": {"containers": [], "nodeName": node, "volumes": [volume]},
                "status": {"phase": phase},
            }))
            .expect("it is a pod")
        };
        let named = |name: &str| json!({"name": "v", "persistentVolumeClaim": {"claimName": name}});
        let own = || json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
        let owner = || json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]);
        let none = || json!([]);
        for (what, owners, pod, expected) in [
            (
                "named",
                none(),
                pod(json!("a"), "Running", named("p-data")),
                true,
            ),
            (
                "another",
                none(),
                pod(json!("a"), "Running", named("other")),
                false,
            ),
            (
                "without a node",
                none(),
                pod(Value::Null, "Pending", named("p-data")),
                false,
            ),
            (
                "finished, but there",
                none(),
                pod(json!("a"), "Succeeded", named("p-data")),
                true,
            ),
            ("its own", owner(), pod(json!("a"), "Running", own()), true),
            (
                "its own, finished",
                owner(),
                pod(json!("a"), "Failed", own()),
                false,
            ),
            (
                "of the same name, not its own",
                none(),
                pod(json!("a"), "Running", own()),
                false,
            ),
        ] {
            assert_eq!(uses(&pod, &claim(owners)), expected, "{what}");
            let keys = claims(&pod);
            assert!(
                keys.len() == 1 && (!expected || keys == [Key::new("n", "p-data")]),
                "{what}"
            );
        }
    }
}
