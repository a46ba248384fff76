//! Roles and bindings as they are stored, for the policy that is in force.
//!
//! The policy follows from the stored roles and bindings, rules of aggregated ClusterRoles included. Those are
//! computed when such a role is written; when another write makes one outdated, the server writes it again
//! (`reconcile`).

use serde_json::Value;

use super::Access;
use super::policy::Policy;
use crate::resource::Served;
use crate::storage::{Change, Event, Record};

const GROUP: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "rbac.authorization.k8s.io/clusterroles";
const ROLES: &str = "rbac.authorization.k8s.io/roles";

/// The collections that make up the policy.
pub(crate) const COLLECTIONS: [&str; 4] = [
    CLUSTER_ROLES,
    "rbac.authorization.k8s.io/clusterrolebindings",
    ROLES,
    "rbac.authorization.k8s.io/rolebindings",
];

/// Whether objects of this kind make up the policy.
pub(crate) fn is_policy(served: &Served) -> bool {
    &*served.resource.group == GROUP
}

/// Whether the objects of a collection make up the policy.
pub(crate) fn is_policy_collection(collection: &str) -> bool {
    collection.starts_with(GROUP) && COLLECTIONS.contains(&collection)
}

/// Computes the rules of an aggregated ClusterRole, whatever its writer sent.
pub(crate) fn aggregate(access: &Access, served: &Served, value: &mut Value) {
    if !served.is(GROUP, "ClusterRole") {
        return;
    }
    if let Some(rules) = access.policy.read().aggregated(value) {
        value["rules"] = serde_json::to_value(rules).expect("rules are plain data");
    }
}

/// Follows one change; returns the aggregated ClusterRoles whose rules are outdated.
pub(crate) fn apply(policy: &mut Policy, collection: &str, event: &Event) -> Vec<String> {
    let record = event.record();
    let before = policy.labels(record.key());
    match event.change() {
        Change::Deleted { .. } => remove(policy, collection, record),
        Change::Created | Change::Updated { .. } => put(policy, collection, record),
    }
    if collection != CLUSTER_ROLES {
        return Vec::new();
    }
    let after = policy.labels(record.key());
    let labels: Vec<_> = [&before, &after].into_iter().flatten().collect();
    policy.outdated(record.key(), &labels)
}

/// Puts a role or binding into the policy. One that cannot be read grants nothing.
pub(crate) fn put(policy: &mut Policy, collection: &str, record: &Record) {
    let Ok(object) = serde_json::from_slice::<Value>(record.body()) else {
        tracing::error!(key = record.key(), collection, "a stored role is not JSON");
        return remove(policy, collection, record);
    };
    match collection {
        CLUSTER_ROLES => policy.put_cluster_role(&object),
        ROLES => policy.put_role(&object),
        _ => policy.put_binding(&object),
    }
}

fn remove(policy: &mut Policy, collection: &str, record: &Record) {
    let (namespace, name) = (record.namespace().unwrap_or(""), record.name());
    match collection {
        CLUSTER_ROLES => policy.remove_cluster_role(name),
        ROLES => policy.remove_role(namespace, name),
        _ => policy.remove_binding(namespace, name),
    }
}
