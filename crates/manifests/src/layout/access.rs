//! Roles for people: who administers, edits and views the objects of each kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{LayoutError, Operator, Tree};

/// Each role, and what it may do with objects of the kind.
const ROLES: [(&str, &[&str]); 3] = [
    ("admin", &["*"]),
    (
        "editor",
        &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    ),
    ("viewer", &["get", "list", "watch"]),
];

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    for definition in &operator.inventory.definitions {
        let stem = stem(operator, definition);
        for (role, verbs) in ROLES {
            let path = format!("rbac/{}_{role}_role.yaml", stem.replace('-', "_"));
            let name = format!("{stem}-{role}-role");
            tree.add(path, make(operator, definition, &name, verbs))?;
        }
    }
    Ok(())
}

/// What the roles of a kind begin with: in a project of many groups two of them may have the same kind.
fn stem(operator: &Operator<'_>, definition: &CustomResourceDefinition) -> String {
    let kind = definition.spec.names.kind.to_ascii_lowercase();
    if operator.project.multigroup {
        format!(
            "{}-{kind}",
            operator.short_group(definition).replace('.', "-")
        )
    } else {
        kind
    }
}

fn make(
    operator: &Operator<'_>,
    definition: &CustomResourceDefinition,
    name: &str,
    verbs: &[&str],
) -> Value {
    let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": operator.metadata(name),
        "rules": [
            { "apiGroups": [group], "resources": [plural], "verbs": verbs },
            { "apiGroups": [group], "resources": [format!("{plural}/status")], "verbs": ["get"] },
        ],
    })
}
