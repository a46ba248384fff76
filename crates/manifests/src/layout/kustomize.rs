//! A kustomization for each folder, so that kustomize can put a project's own changes on top.

use serde_json::{Value, json};

use super::{LayoutError, Operator, Tree};

/// Folders with a kustomization of their own, if there is anything in them.
const FOLDERS: [&str; 8] = [
    "crd",
    "rbac",
    "manager",
    "webhook",
    "certmanager",
    "network-policy",
    "prometheus",
    "samples",
];

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let parts = operator.folders(tree);
    let parts = parts.into_iter().filter(|part| *part != "default");
    let mut resources: Vec<String> = parts.map(|part| format!("../{part}")).collect();
    resources.extend(tree.names("default"));
    for folder in FOLDERS {
        let names = tree.names(folder);
        // An empty kustomization is an error to kustomize.
        if !names.is_empty() {
            tree.add(
                format!("{folder}/kustomization.yaml"),
                kustomization(&names),
            )?;
        }
    }
    tree.add("default/kustomization.yaml", kustomization(&resources))
}

fn kustomization(resources: &[String]) -> Value {
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    })
}
