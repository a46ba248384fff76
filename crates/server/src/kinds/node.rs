//! Nodes and RuntimeClasses.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, immutable, invalid_each};
use super::path::Path;
use super::pod;
use super::strategy::{FieldLabels, Strategy};
use super::value::{ensure, entries, is_empty, is_true, items, set, text};

/// Nodes. A node may bring its status along when it registers.
pub(super) static NODE: Strategy = Strategy {
    has_status: true,
    brings_status: true,
    field_labels: FieldLabels::Listed(&["metadata.name", "spec.unschedulable"]),
    default,
    validate,
    validate_update,
    validate_status: |new, old, errors| {
        validate_resources(new, errors);
        validate_update(new, old, errors);
    },
    fields: |object| {
        let unschedulable = is_true(&object["spec"]["unschedulable"]);
        vec![("spec.unschedulable", unschedulable.to_string())]
    },
    ..Strategy::PLAIN
};

/// RuntimeClasses.
pub(super) static RUNTIME_CLASS: Strategy = Strategy {
    allow_unconditional_update: false,
    allow_create_on_update: true,
    validate: |object, errors| {
        let handler = text(&object["handler"]);
        invalid_each(
            names::dns1123_label(handler),
            handler,
            &Path::Root("handler"),
            errors,
        );
    },
    validate_update: |new, old, errors| {
        immutable(
            &new["handler"],
            &old["handler"],
            &Path::Root("handler"),
            errors,
        );
    },
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    let status = ensure(object, "status");
    for list in ["capacity", "allocatable"] {
        pod::default_resource_list(status.get_mut(list));
    }
    if status["allocatable"].is_null() && !status["capacity"].is_null() {
        let capacity = status["capacity"].clone();
        set(status, "allocatable", capacity);
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    pod::validate_taints(
        &object["spec"]["taints"],
        &Path::Root("metadata.taints"),
        errors,
    );
    validate_resources(object, errors);
}

fn validate_resources(object: &Value, errors: &mut Errors) {
    let path = Path::Root("status");
    for list in ["capacity", "allocatable"] {
        let path = path.child(list);
        for (name, quantity) in entries(&object["status"][list]) {
            pod::validate_quantity(quantity, &path.key(name), errors);
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let path = Path::Root("status.addresses");
    for (i, address) in items(&new["status"]["addresses"]).iter().enumerate() {
        if !seen.insert((text(&address["type"]), text(&address["address"]))) {
            errors.push(FieldError::duplicate(path.index(i), address));
        }
    }
    for (field, shown) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let (now, before) = (&new["spec"][field], &old["spec"][field]);
        if !is_empty(before) && now != before {
            let text = format!("node updates may not change {shown} except from \"\" to valid");
            errors.push(FieldError::forbidden(
                Path::Root("spec").child(field),
                &text,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::testing::{create, create_errors, update_errors};

    #[test]
    fn allocatable_defaults_to_capacity() {
        let node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}});
        let object = create("", "Node", node);
        assert_eq!(object["status"]["allocatable"], json!({"cpu": "4"}));
    }

    #[test]
    fn taints_and_providers_are_checked() {
        let taint = json!({"key": "k", "effect": "Never"});
        let node =
            json!({"metadata": {"name": "n"}, "spec": {"taints": [taint], "providerID": "p"}});
        assert_eq!(
            create_errors("", "Node", node.clone()),
            [
                "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""
            ]
        );
        let errors = update_errors("", "Node", node, |new| {
            new["spec"] = json!({"providerID": "q"});
        });
        assert_eq!(
            errors,
            [
                "spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"
            ]
        );
    }
}
