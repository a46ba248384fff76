//! Role bindings: which role, and who has it.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column, wide};
use crate::printers::view::{View, text};

const GROUP: &str = "rbac.authorization.k8s.io";

const BINDING: &[Column] = &[
    NAME,
    column("Role"),
    AGE,
    wide("Users"),
    wide("Groups"),
    wide("ServiceAccounts"),
];

pub(super) const KINDS: &[Entry] = &[
    entry(GROUP, "RoleBinding", BINDING, binding),
    entry(GROUP, "ClusterRoleBinding", BINDING, binding),
];

fn binding(view: &View<'_>) -> Vec<Value> {
    let role = format!(
        "{}/{}",
        view.text("roleRef.kind"),
        view.text("roleRef.name")
    );
    cells![
        view.name(),
        role,
        view.age(),
        subjects(view, "User"),
        subjects(view, "Group"),
        subjects(view, "ServiceAccount"),
    ]
}

/// Names of the subjects of one kind; accounts are named with their namespace.
fn subjects(view: &View<'_>, kind: &str) -> String {
    let names: Vec<String> = view
        .list("subjects")
        .iter()
        .filter(|subject| text(subject, "kind") == kind)
        .map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        })
        .collect();
    names.join(", ")
}
