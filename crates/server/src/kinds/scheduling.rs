//! PriorityClasses.

use crate::object;
use kubewright_schema::FieldError;
use serde_json::Value;

use super::checks::{Errors, immutable, one_of_if_set};
use super::path::Path;
use super::strategy::{Generation, Strategy};
use super::value::set_default;

const HIGHEST_OF_USERS: i64 = 1_000_000_000;

/// PriorityClasses.
pub(super) static PRIORITY_CLASS: Strategy = Strategy {
    generation: Generation::Fixed,
    default: |object| set_default(object, "preemptionPolicy", "PreemptLowerPriority"),
    validate,
    validate_update: |new, old, errors| {
        if new["value"] != old["value"] {
            errors.push(FieldError::forbidden(
                "value",
                "may not be changed in an update.",
            ));
        }
        let policy = "preemptionPolicy";
        immutable(&new[policy], &old[policy], &Path::Root(policy), errors);
    },
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut Errors) {
    let name = object::name(object);
    let value = object["value"].as_i64().unwrap_or(0);
    if name.starts_with("system-") {
        let known = match name {
            "system-node-critical" => value == 2_000_001_000,
            "system-cluster-critical" => value == 2_000_000_000,
            _ => false,
        };
        if !known {
            let text = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system priority class"
            );
            errors.push(FieldError::forbidden("metadata.name", &text));
        }
    } else if value > HIGHEST_OF_USERS {
        let text =
            format!("maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}");
        errors.push(FieldError::forbidden("value", &text));
    }
    one_of_if_set(
        &object["preemptionPolicy"],
        &["PreemptLowerPriority", "Never"],
        &Path::Root("preemptionPolicy"),
        errors,
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::testing::{create_errors, update_errors};

    #[test]
    fn priorities_are_bounded_and_stay() {
        let class = |value: i64| serde_json::json!({"metadata": {"name": "c"}, "value": value});
        assert_eq!(
            create_errors("scheduling.k8s.io", "PriorityClass", class(1_000_000_001)),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]
        );
        assert_eq!(
            update_errors("scheduling.k8s.io", "PriorityClass", class(1), |new| new
                ["value"] =
                json!(2)),
            ["value: Forbidden: may not be changed in an update."]
        );
    }
}
