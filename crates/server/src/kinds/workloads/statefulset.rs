//! StatefulSets.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use super::{SPEC, validate_counts, validate_selector};
use crate::kinds::checks::{
    Errors, at_most_100_percent, invalid_each, non_negative, non_negative_fields,
    number_or_percent, number_value, one_of,
};
use crate::kinds::name_rule::NameRule;
use crate::kinds::path::Path;
use crate::kinds::strategy::{Generation, Strategy};
use crate::kinds::value::{
    alike, copy, ensure, is_empty, items, items_mut, remove, set, set_default, set_default_text,
    text,
};
use crate::kinds::{pod, storage};
use crate::object;

pub(crate) static STATEFUL_SET: Strategy = Strategy {
    name_rule: NameRule::Label,
    generation: Generation::Field("spec"),
    has_status: true,
    default,
    create: |object, _| {
        let status = json!({"replicas": 0, "availableReplicas": 0});
        set(object, "status", status);
    },
    validate,
    validate_create_only,
    validate_update,
    validate_status,
    warnings,
    ..Strategy::PLAIN
};

/// What may change; everything else is refused as a whole.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default_text(spec, "podManagementPolicy", "OrderedReady");
    set_default(spec, "replicas", 1);
    set_default(spec, "revisionHistoryLimit", 10);
    let strategy = ensure(spec, "updateStrategy");
    if is_empty(&strategy["type"]) {
        set(strategy, "type", "RollingUpdate");
        ensure(strategy, "rollingUpdate");
    }
    if text(&strategy["type"]) == "RollingUpdate" && !strategy["rollingUpdate"].is_null() {
        set_default(ensure(strategy, "rollingUpdate"), "partition", 0);
    }
    let retention = ensure(spec, "persistentVolumeClaimRetentionPolicy");
    set_default_text(retention, "whenDeleted", "Retain");
    set_default_text(retention, "whenScaled", "Retain");
    pod::default_template(ensure(spec, "template"));
    for claim in items_mut(spec.get_mut("volumeClaimTemplates")) {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
        storage::default_claim(claim);
    }
}

fn validate(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let policy = text(&spec["podManagementPolicy"]);
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let text = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(
            SPEC.child("podManagementPolicy"),
            &policy.into(),
            text,
        ));
    }
    validate_strategy(
        &spec["updateStrategy"],
        &SPEC.child("updateStrategy"),
        errors,
    );
    let retention = &spec["persistentVolumeClaimRetentionPolicy"];
    let path = SPEC.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        one_of(
            &retention[field],
            &["Retain", "Delete"],
            &path.child(field),
            errors,
        );
    }
    non_negative_fields(spec, &["replicas", "minReadySeconds"], &SPEC, errors);
    non_negative(
        &spec["ordinals"]["start"],
        &SPEC.child("ordinals.start"),
        errors,
    );
    validate_template(spec, errors);
}

fn validate_strategy(strategy: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rolling = &strategy["rollingUpdate"];
    let path_rolling = path.child("rollingUpdate");
    match text(&strategy["type"]) {
        "OnDelete" if rolling.is_null() => {}
        "OnDelete" => {
            let text = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid(path_rolling, rolling, text));
        }
        "RollingUpdate" => {
            non_negative(
                &rolling["partition"],
                &path_rolling.child("partition"),
                errors,
            );
            let most = &rolling["maxUnavailable"];
            if !most.is_null() {
                let path = path_rolling.child("maxUnavailable");
                number_or_percent(most, &path, errors);
                if number_value(most) == 0 {
                    errors.push(FieldError::invalid(path, most, "cannot be 0"));
                }
                at_most_100_percent(most, &path, errors);
            }
        }
        _ => {
            let text = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(FieldError::invalid(path, strategy, text));
        }
    }
}

fn validate_template(spec: &Value, errors: &mut Errors) {
    let path = SPEC.child("template");
    if validate_selector(spec, "empty selector is invalid for statefulset", errors) {
        pod::validate_selected(&spec["selector"], &spec["template"], &path, errors);
        pod::validate_template(&template_as_run(spec), &path, errors);
    } else {
        errors.push(FieldError::invalid(
            SPEC.child("selector"),
            &spec["selector"],
            "",
        ));
    }
    pod::validate_runs_forever(&spec["template"], "StatefulSet", &path, errors);
}

/// The template as its pods will look: with a volume per claim, and host names of the controller's making.
fn template_as_run(spec: &Value) -> Value {
    let mut template = spec["template"].clone();
    let claims: BTreeSet<&str> = items(&spec["volumeClaimTemplates"])
        .iter()
        .map(object::name)
        .collect();
    let pod_spec = ensure(&mut template, "spec");
    remove(pod_spec, "subdomain");
    remove(pod_spec, "hostname");
    if claims.is_empty() {
        return template;
    }
    let own = items(&pod_spec["volumes"])
        .iter()
        .filter(|volume| !claims.contains(text(&volume["name"])))
        .cloned();
    let volumes: Vec<Value> = claims
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .chain(own)
        .collect();
    set(pod_spec, "volumes", volumes);
    template
}

fn validate_create_only(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let path = SPEC.child("volumeClaimTemplates");
    for (i, claim) in items(&spec["volumeClaimTemplates"]).iter().enumerate() {
        let at = path.index(i);
        storage::validate_claim_spec(&claim["spec"], &at.child("spec"), errors);
    }
    let service = text(&spec["serviceName"]);
    if !service.is_empty() {
        invalid_each(
            names::dns1123_label(service),
            service,
            &SPEC.child("serviceName"),
            errors,
        );
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let mut rest = new["spec"].clone();
    for field in MUTABLE {
        copy(&mut rest, &old["spec"], field);
    }
    if !alike(&rest, &old["spec"]) {
        let text = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(SPEC, text));
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let within = [
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    let counts = ["replicas", "observedGeneration", "collisionCount"];
    validate_counts(new, old, &within, &counts, errors);
}

fn warnings(object: &Value) -> Vec<String> {
    let mut out = pod::template_warnings(object);
    if object["spec"]["revisionHistoryLimit"]
        .as_i64()
        .is_some_and(|limit| limit < 0)
    {
        out.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
    out
}
