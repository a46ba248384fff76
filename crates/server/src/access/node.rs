//! What nodes may do, as the authorizer `Node` of Kubernetes decides it: the rules of the role `system:node`, and of some
//! resources the node's own objects alone.
//!
//! Deliberately absent: the graph of what pods on a node refer to. A node may read any Secret that the role lets it read.

use super::attributes::{Attributes, Resource, Subject};
use super::policy::{Policy, RoleKind, RoleRef};
use crate::auth::User;

/// Where nodes keep their leases.
const LEASES: &str = "kube-node-lease";
const GROUP: &str = "system:nodes";
const PREFIX: &str = "system:node:";
const ROLE: &str = "system:node";

/// The node that a user is, if it is one (`identifier.go: NodeIdentity`).
fn node_name(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(PREFIX)?;
    let is_member = user.groups.iter().any(|group| group == GROUP);
    (is_member && !name.is_empty()).then_some(name)
}

/// Whether a user is a node that may do this (`node_authorizer.go: Authorize`).
pub(super) fn allows(policy: &Policy, user: &User, asked: &Attributes<'_>) -> bool {
    let Some(node) = node_name(user) else {
        return false;
    };
    if let Subject::Resource(resource) = &asked.subject
        && !is_own(node, &asked.verb, resource)
    {
        return false;
    }
    let role = RoleRef {
        kind: RoleKind::ClusterRole,
        name: ROLE.to_owned(),
    };
    let rules = policy.rules(&role, "").unwrap_or_default();
    rules.iter().any(|rule| rule.allows(asked))
}

/// Whether an object belongs to the node, where that matters (`authorizeLease`, `authorizeCSINode`). What is created by a
/// list of its kind has no name yet; the objects that nodes create are theirs by admission in Kubernetes.
fn is_own(node: &str, verb: &str, resource: &Resource<'_>) -> bool {
    let named = verb == "create" || resource.name == node;
    match (resource.group, resource.plural) {
        ("coordination.k8s.io", "leases") => named && resource.namespace == LEASES,
        ("storage.k8s.io", "csinodes") => named,
        _ => true,
    }
}
