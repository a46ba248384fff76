//! ReplicaSets.

use serde_json::{Value, json};

use super::{SPEC, validate_counts, validate_replicated};
use crate::kinds::checks::{Errors, immutable, non_negative_fields};
use crate::kinds::pod;
use crate::kinds::strategy::{FieldLabels, Generation, Strategy};
use crate::kinds::value::{ensure, set, set_default};

pub(crate) static REPLICA_SET: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    field_labels: FieldLabels::Generic,
    default,
    create: |object, _| set(object, "status", json!({"replicas": 0})),
    validate,
    validate_update,
    validate_status,
    name_appears_in: Some("Pod names and hostnames"),
    warnings: pod::template_warnings,
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default(spec, "replicas", 1);
    pod::default_template(ensure(spec, "template"));
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    non_negative_fields(spec, &["replicas", "minReadySeconds"], &SPEC, errors);
    validate_replicated(spec, errors);
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"]["selector"], &old["spec"]["selector"]);
    immutable(new, old, &SPEC.child("selector"), errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let within = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let counts = ["replicas", "observedGeneration", "terminatingReplicas"];
    validate_counts(new, old, &within, &counts, errors);
}
