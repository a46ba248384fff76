//! DaemonSets.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{SPEC, unsupported_strategy, validate_collisions};
use crate::kinds::checks::{
    Errors, at_most_100_percent, immutable, non_negative_fields, number_or_percent, number_value,
};
use crate::kinds::path::Path;
use crate::kinds::strategy::{CreateContext, Generation, Strategy, UpdateOrder};
use crate::kinds::value::{alike, ensure, set, set_default, set_default_text, text};
use crate::kinds::{pod, selector};

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) static DAEMON_SET: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    update_order: UpdateOrder::ChangeFirst,
    default,
    create,
    update,
    validate,
    validate_update,
    validate_status,
    warnings: pod::template_warnings,
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default(spec, "revisionHistoryLimit", 10);
    let strategy = ensure(spec, "updateStrategy");
    set_default_text(strategy, "type", "RollingUpdate");
    if text(&strategy["type"]) == "RollingUpdate" {
        let rolling = ensure(strategy, "rollingUpdate");
        set_default(rolling, "maxUnavailable", 1);
        set_default(rolling, "maxSurge", 0);
    }
    pod::default_template(ensure(spec, "template"));
}

/// Counts changes of the template in an annotation, because older versions of the kind had a field for it.
fn set_template_generation(object: &mut Value, count: i64) {
    let annotations = ensure(ensure(object, "metadata"), "annotations");
    set(annotations, TEMPLATE_GENERATION, count.to_string());
}

fn template_generation(object: &Value) -> i64 {
    let annotation = &object["metadata"]["annotations"][TEMPLATE_GENERATION];
    text(annotation).parse().unwrap_or(0)
}

fn create(object: &mut Value, _: &CreateContext<'_>) {
    let count = template_generation(object).max(1);
    set_template_generation(object, count);
    let status = json!({
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    });
    set(object, "status", status);
}

fn update(new: &mut Value, old: &Value) {
    let changed = !alike(&new["spec"]["template"], &old["spec"]["template"]);
    let count = template_generation(old).saturating_add(i64::from(changed));
    set_template_generation(new, count);
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let choice = &spec["selector"];
    selector::validate(choice, &SPEC.child("selector"), errors);
    let (template, path) = (&spec["template"], SPEC.child("template"));
    let labels = &template["metadata"]["labels"];
    if selector::matches(choice, labels) == Some(false) {
        errors.push(pod::mismatch(labels, &path));
    }
    if !choice.is_null() && selector::is_empty(choice) {
        let text = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(SPEC.child("selector"), choice, text));
    }
    pod::validate_template(template, &path, errors);
    pod::validate_runs_forever(template, "DaemonSet", &path, errors);
    non_negative_fields(spec, &["minReadySeconds"], &SPEC, errors);
    validate_strategy(
        &spec["updateStrategy"],
        &SPEC.child("updateStrategy"),
        errors,
    );
    non_negative_fields(spec, &["revisionHistoryLimit"], &SPEC, errors);
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    match text(&strategy["type"]) {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            validate_rolling(&strategy["rollingUpdate"], &path, errors);
        }
        _ => {
            let allowed = ["RollingUpdate", "OnDelete"];
            errors.push(unsupported_strategy(strategy, &allowed, path));
        }
    }
}

fn validate_rolling(rolling: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (unavailable, surge) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    let (path_unavailable, path_surge) = (path.child("maxUnavailable"), path.child("maxSurge"));
    number_or_percent(unavailable, &path_unavailable, errors);
    number_or_percent(surge, &path_surge, errors);
    at_most_100_percent(unavailable, &path_unavailable, errors);
    at_most_100_percent(surge, &path_surge, errors);
    match (number_value(unavailable) != 0, number_value(surge) != 0) {
        (true, true) => {
            let text = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(path_surge, surge, text));
        }
        (false, false) => {
            let text = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(path_unavailable, text));
        }
        _ => {}
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"]["selector"], &old["spec"]["selector"]);
    immutable(new, old, &SPEC.child("selector"), errors);
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    non_negative_fields(&new["status"], &counts, &Path::Root("status"), errors);
    validate_collisions(new, old, errors);
}
