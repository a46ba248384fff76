//! Deployments.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{SPEC, unsupported_strategy, validate_counts, validate_replicated};
use crate::kinds::checks::{
    Errors, at_most_100_percent, immutable, non_negative, non_negative_fields, number_or_percent,
    number_value,
};
use crate::kinds::path::Path;
use crate::kinds::pod;
use crate::kinds::strategy::{Generation, StatusMeta, Strategy};
use crate::kinds::value::{ensure, set, set_default, set_default_text, text};

pub(crate) static DEPLOYMENT: Strategy = Strategy {
    generation: Generation::SpecAndAnnotations,
    has_status: true,
    status_meta: StatusMeta::KeepLabels,
    default,
    create: |object, _| set(object, "status", json!({})),
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
    set_default(spec, "revisionHistoryLimit", 10);
    set_default(spec, "progressDeadlineSeconds", 600);
    let strategy = ensure(spec, "strategy");
    set_default_text(strategy, "type", "RollingUpdate");
    if text(&strategy["type"]) == "RollingUpdate" {
        let rolling = ensure(strategy, "rollingUpdate");
        set_default(rolling, "maxUnavailable", "25%");
        set_default(rolling, "maxSurge", "25%");
    }
    pod::default_template(ensure(spec, "template"));
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    non_negative(&spec["replicas"], &SPEC.child("replicas"), errors);
    validate_replicated(spec, errors);
    validate_strategy(&spec["strategy"], &SPEC.child("strategy"), errors);
    let counts = [
        "minReadySeconds",
        "revisionHistoryLimit",
        "progressDeadlineSeconds",
    ];
    non_negative_fields(spec, &counts, &SPEC, errors);
    let deadline = &spec["progressDeadlineSeconds"];
    let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
    if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
        let text = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(
            SPEC.child("progressDeadlineSeconds"),
            deadline,
            text,
        ));
    }
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let path_rolling = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "Recreate" if rolling.is_null() => {}
        "Recreate" => {
            let text = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(path_rolling, text));
        }
        "RollingUpdate" => validate_rolling(rolling, &path_rolling, errors),
        _ => {
            let allowed = ["Recreate", "RollingUpdate"];
            errors.push(unsupported_strategy(strategy, &allowed, path));
        }
    }
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    let path_unavailable = path.child("maxUnavailable");
    number_or_percent(unavailable, &path_unavailable, errors);
    number_or_percent(surge, &path.child("maxSurge"), errors);
    if number_value(unavailable) == 0 && number_value(surge) == 0 {
        let text = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(path_unavailable, unavailable, text));
    }
    at_most_100_percent(unavailable, &path_unavailable, errors);
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"]["selector"], &old["spec"]["selector"]);
    immutable(new, old, &SPEC.child("selector"), errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let within = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    let counts = [
        "observedGeneration",
        "replicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    validate_counts(new, old, &within, &counts, errors);
}
