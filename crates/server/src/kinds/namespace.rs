//! Namespaces.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use super::checks::{Errors, invalid_each};
use super::name_rule::NameRule;
use super::path::Path;
use super::strategy::{Deletion, FieldLabels, Strategy};
use super::value::{copy, ensure, map, set, set_default_text, strings, text};

/// The label that carries the name, so that selectors can choose a namespace by it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Namespaces.
pub(super) static NAMESPACE: Strategy = Strategy {
    name_rule: NameRule::Label,
    has_status: true,
    returns_deleted_object: true,
    deletion: Deletion::Terminating,
    field_labels: FieldLabels::Listed(&["status.phase", "metadata.name"]),
    default,
    create: |object, _| {
        label(object);
        set(object, "status", json!({"phase": "Active"}));
        let spec = ensure(object, "spec");
        let mut finalizers: Vec<Value> = spec["finalizers"].as_array().cloned().unwrap_or_default();
        if !finalizers.contains(&"kubernetes".into()) {
            finalizers.push("kubernetes".into());
        }
        set(spec, "finalizers", finalizers);
    },
    update: |new, old| {
        label(new);
        copy(ensure(new, "spec"), &old["spec"], "finalizers");
    },
    validate_status,
    fields: |object| vec![("status.phase", text(&object["status"]["phase"]).to_owned())],
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    label(object);
    set_default_text(ensure(object, "status"), "phase", "Active");
}

fn label(object: &mut Value) {
    let metadata = ensure(object, "metadata");
    let name = metadata["name"].clone();
    if !text(&name).is_empty() {
        map(ensure(metadata, "labels")).insert(NAME_LABEL.to_owned(), name);
    }
}

/// Checks a write of the `finalize` subresource, besides what is checked of every update.
pub(crate) fn validate_finalize(new: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = Path::Root("spec.finalizers");
    for (i, finalizer) in strings(&new["spec"]["finalizers"]).enumerate() {
        let complaints = names::qualified_name(finalizer);
        invalid_each(complaints, finalizer, &path.index(i), &mut errors);
    }
    errors
}

fn validate_status(new: &Value, _: &Value, errors: &mut Errors) {
    let (phase, complaint) = if new["metadata"]["deletionTimestamp"].is_null() {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    } else {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    };
    let given = &new["status"]["phase"];
    if text(given) != phase {
        errors.push(FieldError::invalid("status.Phase", given, complaint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, update};

    /// Golden entry "ns delete" shows what creation made.
    #[test]
    fn namespaces_start_active_and_held() {
        let object = create("", "Namespace", json!({"metadata": {"name": "n1"}}));
        assert_eq!(
            object,
            json!({
                "metadata": {"name": "n1", "labels": {"kubernetes.io/metadata.name": "n1"}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            })
        );
        assert_eq!(NAMESPACE.deletion, Deletion::Terminating);
    }

    #[test]
    fn updates_keep_label_and_finalizers() {
        let old = create("", "Namespace", json!({"metadata": {"name": "n1"}}));
        let new = update("", "Namespace", &old, |new| {
            new["metadata"]["labels"] = json!({"a": "b"});
            new["spec"] = json!({});
        });
        assert_eq!(
            new["metadata"]["labels"]["kubernetes.io/metadata.name"],
            "n1"
        );
        assert_eq!(new["spec"], json!({"finalizers": ["kubernetes"]}));
    }
}
