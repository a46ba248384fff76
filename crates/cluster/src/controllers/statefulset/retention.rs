//! Who owns the claims of a StatefulSet's pods, and so with whom they go away.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::pods::claim::controller_reference;

/// Whether a pod is one that the set still wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The set still wants it.
    Wanted,
    /// The set was scaled below it.
    Condemned,
}

/// With whom a claim goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Set,
    Pod,
}

/// Whether claims go away when the set is scaled down, and when it is deleted.
fn policy(set: &StatefulSet) -> (bool, bool) {
    let policy = set.spec.persistent_volume_claim_retention_policy.as_ref();
    let deletes = |when: Option<&String>| when.is_some_and(|when| when == "Delete");
    let scaled = deletes(policy.and_then(|policy| policy.when_scaled.as_ref()));
    let deleted = deletes(policy.and_then(|policy| policy.when_deleted.as_ref()));
    (scaled, deleted)
}

fn wanted(set: &StatefulSet, place: Place) -> Owner {
    match (policy(set), place) {
        ((true, _), Place::Condemned) => Owner::Pod,
        ((_, true), _) => Owner::Set,
        ((_, false), _) => Owner::Nobody,
    }
}

/// The owners of a claim that is about to be created.
pub(crate) fn first_owners(set: &StatefulSet) -> Option<Vec<OwnerReference>> {
    match wanted(set, Place::Wanted) {
        Owner::Set => Some(vec![controller_reference(set)]),
        Owner::Pod | Owner::Nobody => None,
    }
}

/// The owners that a claim should have, if it has others. Claims that an earlier set or pod of the same name owns wait
/// for the garbage collector, and those with a controller of their own are left to it.
pub(crate) fn owners(
    set: &StatefulSet,
    pod: &Pod,
    place: Place,
    claim: &PersistentVolumeClaim,
) -> Option<Vec<OwnerReference>> {
    let (by_set, by_pod) = (controller_reference(set), controller_reference(pod));
    let before = claim.metadata.owner_references.clone().unwrap_or_default();
    if before
        .iter()
        .any(|owner| is_stale(owner, &by_set) || is_stale(owner, &by_pod))
    {
        return None;
    }
    let ours = |owner: &OwnerReference| owner.uid == by_set.uid || owner.uid == by_pod.uid;
    let mut after: Vec<_> = before
        .iter()
        .filter(|owner| !ours(owner))
        .cloned()
        .collect();
    let controlled = after.iter().any(|owner| owner.controller == Some(true));
    match wanted(set, place) {
        Owner::Set if !controlled => after.push(by_set),
        Owner::Pod if !controlled => after.push(by_pod),
        _ => {}
    }
    (after != before).then_some(after)
}

/// Whether a claim waits for its deletion because an earlier pod of the same name owns it.
pub(crate) fn is_left_over(
    set: &StatefulSet,
    pod_name: &str,
    claim: &PersistentVolumeClaim,
) -> bool {
    let (scaled, _) = policy(set);
    let owners = claim.metadata.owner_references.iter().flatten();
    let mut pods = owners.filter(|owner| owner.kind == "Pod" && owner.api_version == "v1");
    scaled && pods.any(|owner| owner.name == pod_name)
}

/// Whether a reference is to a namesake that is gone.
fn is_stale(owner: &OwnerReference, now: &OwnerReference) -> bool {
    owner.api_version == now.api_version
        && owner.kind == now.kind
        && owner.name == now.name
        && owner.uid != now.uid
}
