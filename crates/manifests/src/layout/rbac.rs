//! Who the manager is and what it may do: a service account, the role of its controllers, leader election, metrics.

use serde_json::{Value, json};

use super::{LayoutError, Operator, Tree, access};
use crate::role;

const API: &str = "rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": operator.namespaced("controller-manager"),
    });
    tree.add("rbac/service_account.yaml", account)?;
    add_manager(operator, tree)?;
    add_leader_election(operator, tree)?;
    add_metrics(operator, tree)?;
    access::add(operator, tree)
}

/// The roles of the controllers, and their bindings.
fn add_manager(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let roles = manager_roles(operator);
    let bindings: Vec<Value> = roles.iter().map(|role| operator.binding(role)).collect();
    if roles.is_empty() {
        return Ok(());
    }
    tree.add("rbac/role.yaml", one_or_list(roles))?;
    tree.add("rbac/role_binding.yaml", one_or_list(bindings))
}

fn manager_roles(operator: &Operator<'_>) -> Vec<Value> {
    let made = role::roles(&operator.inventory.rules, &operator.name("manager-role"));
    let made = made.iter().map(|role| json!(role));
    made.flat_map(|role| operator.placed(role)).collect()
}

/// Documents as one value, since a file is one.
pub(super) fn one_or_list(mut objects: Vec<Value>) -> Value {
    match objects.len() {
        1 => objects.remove(0),
        _ => json!({ "apiVersion": "v1", "items": objects, "kind": "List" }),
    }
}

fn add_leader_election(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let role = json!({
        "apiVersion": API,
        "kind": "Role",
        "metadata": operator.namespaced("leader-election-role"),
        "rules": [{
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            // An election needs no more than to get, create and update one; replicas that share the objects list the leases of
            // all, and delete those of replicas that are gone.
            "verbs": ["get", "list", "create", "update", "delete"],
        }],
    });
    tree.add(
        "rbac/leader_election_role_binding.yaml",
        operator.binding(&role),
    )?;
    tree.add("rbac/leader_election_role.yaml", role)
}

fn add_metrics(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let auth = json!({
        "apiVersion": API,
        "kind": "ClusterRole",
        "metadata": operator.metadata("metrics-auth-role"),
        "rules": [
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["tokenreviews"],
                "verbs": ["create"],
            },
            {
                "apiGroups": ["authorization.k8s.io"],
                "resources": ["subjectaccessreviews"],
                "verbs": ["create"],
            },
        ],
    });
    let reader = json!({
        "apiVersion": API,
        "kind": "ClusterRole",
        "metadata": operator.metadata("metrics-reader"),
        "rules": [{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }],
    });
    tree.add(
        "rbac/metrics_auth_role_binding.yaml",
        operator.binding(&auth),
    )?;
    tree.add("rbac/metrics_auth_role.yaml", auth)?;
    tree.add("rbac/metrics_reader_role.yaml", reader)
}

impl Operator<'_> {
    /// Gives a role its name and labels. In a namespaced project a role for the cluster becomes one for each namespace
    /// that is watched.
    fn placed(&self, mut role: Value) -> Vec<Value> {
        let prefix = self.name("");
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let name = name.strip_prefix(&prefix).unwrap_or(name).to_owned();
        let namespace = role["metadata"]["namespace"].clone();
        role["metadata"] = self.metadata(&name);
        if !namespace.is_null() {
            role["metadata"]["namespace"] = namespace;
        }
        if role["kind"] == "Role" || !self.project.namespaced {
            return vec![role];
        }
        role["kind"] = json!("Role");
        let place = |namespace: String| {
            let mut role = role.clone();
            role["metadata"]["namespace"] = json!(namespace);
            role
        };
        self.watched().into_iter().map(place).collect()
    }

    /// The namespaces that a namespaced project works in.
    pub(super) fn watched(&self) -> Vec<String> {
        if self.options.watch_namespaces.is_empty() {
            vec![self.project.namespace()]
        } else {
            self.options.watch_namespaces.clone()
        }
    }

    /// Gives the role to the manager's service account.
    pub(super) fn binding(&self, role: &Value) -> Value {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let mut metadata = json!({ "labels": self.labels(), "name": format!("{name}binding") });
        let mut kind = "ClusterRoleBinding";
        if role["kind"] == "Role" {
            kind = "RoleBinding";
            metadata["namespace"] = role["metadata"]["namespace"].clone();
        }
        json!({
            "apiVersion": API,
            "kind": kind,
            "metadata": metadata,
            "roleRef": { "apiGroup": GROUP, "kind": role["kind"], "name": name },
            "subjects": [{
                "kind": "ServiceAccount",
                "name": self.name("controller-manager"),
                "namespace": self.project.namespace(),
            }],
        })
    }
}
