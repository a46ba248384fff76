//! Leases.

use kubewright_schema::FieldError;
use serde_json::Value;

use super::checks::{Errors, non_negative};
use super::path::Path;
use super::strategy::Strategy;
use super::value::is_empty;

/// Leases.
pub(super) static LEASE: Strategy = Strategy {
    allow_unconditional_update: false,
    allow_create_on_update: true,
    validate,
    ..Strategy::PLAIN
};

/// LeaseCandidates.
pub(super) static LEASE_CANDIDATE: Strategy = Strategy {
    allow_unconditional_update: false,
    allow_create_on_update: true,
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    let duration = &spec["leaseDurationSeconds"];
    if duration.as_i64().is_some_and(|seconds| seconds <= 0) {
        let text = "must be greater than 0";
        errors.push(FieldError::invalid(
            path.child("leaseDurationSeconds"),
            duration,
            text,
        ));
    }
    non_negative(
        &spec["leaseTransitions"],
        &path.child("leaseTransitions"),
        errors,
    );
    if !is_empty(&spec["preferredHolder"]) && is_empty(&spec["strategy"]) {
        let text = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(path.child("preferredHolder"), text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kinds::testing::create_errors;

    #[test]
    fn leases_last_for_a_while() {
        let lease = json!({
            "metadata": {"name": "l", "namespace": "d"},
            "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1},
        });
        assert_eq!(
            create_errors("coordination.k8s.io", "Lease", lease),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
