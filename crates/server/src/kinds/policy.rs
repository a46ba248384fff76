//! PodDisruptionBudgets.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::checks::{
    Errors, at_most_100_percent, non_negative_fields, number_or_percent, one_of_if_set,
};
use super::name_rule::NameRule;
use super::path::Path;
use super::selector;
use super::strategy::{Generation, Strategy};
use super::value::set;

const COUNTS: [&str; 4] = [
    "disruptionsAllowed",
    "currentHealthy",
    "desiredHealthy",
    "expectedPods",
];

/// PodDisruptionBudgets.
pub(super) static POD_DISRUPTION_BUDGET: Strategy = Strategy {
    name_rule: NameRule::PathSegment,
    generation: Generation::Field("spec"),
    has_status: true,
    allow_unconditional_update: false,
    create: |object, _| {
        let counts = COUNTS.map(|field| (field, 0));
        set(
            object,
            "status",
            json!(std::collections::BTreeMap::from(counts)),
        );
    },
    validate,
    validate_status: |new, _, errors| {
        non_negative_fields(&new["status"], &COUNTS, &Path::Root("status"), errors);
    },
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let text = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(path, spec, text));
    }
    for field in ["minAvailable", "maxUnavailable"] {
        let path = path.child(field);
        number_or_percent(&spec[field], &path, errors);
        at_most_100_percent(&spec[field], &path, errors);
    }
    selector::validate(&spec["selector"], &path.child("selector"), errors);
    one_of_if_set(
        &spec["unhealthyPodEvictionPolicy"],
        &["AlwaysAllow", "IfHealthyBudget"],
        &path.child("unhealthyPodEvictionPolicy"),
        errors,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{create, create_errors};

    #[test]
    fn budgets_start_empty_and_say_one_thing() {
        let budget =
            |spec: Value| json!({"metadata": {"name": "b", "namespace": "d"}, "spec": spec});
        let object = create(
            "policy",
            "PodDisruptionBudget",
            budget(json!({"minAvailable": 1})),
        );
        assert_eq!(object["status"]["expectedPods"], 0);
        assert_eq!(object["metadata"]["generation"], 1);
        assert_eq!(
            create_errors(
                "policy",
                "PodDisruptionBudget",
                budget(json!({"minAvailable": "120%"}))
            ),
            ["spec.minAvailable: Invalid value: \"120%\": must not be greater than 100%"]
        );
        let both = budget(json!({"minAvailable": 1, "maxUnavailable": 1}));
        assert!(
            create_errors("policy", "PodDisruptionBudget", both)[0]
                .ends_with("minAvailable and maxUnavailable cannot be both set")
        );
    }
}
