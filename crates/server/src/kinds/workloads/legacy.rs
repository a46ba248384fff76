//! ReplicationControllers, PodTemplates and ControllerRevisions.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{SPEC, validate_counts};
use crate::kinds::checks::{Errors, immutable, non_negative, non_negative_fields};
use crate::kinds::path::Path;
use crate::kinds::pod;
use crate::kinds::strategy::{FieldLabels, Generation, Propagation, Strategy};
use crate::kinds::value::{ensure, is_empty, set, set_default};

pub(crate) static REPLICATION_CONTROLLER: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    default_propagation: Propagation::Orphan,
    field_labels: FieldLabels::Listed(&["metadata.name", "metadata.namespace", "status.replicas"]),
    default: default_controller,
    create: |object, _| set(object, "status", json!({"replicas": 0})),
    validate: validate_controller,
    validate_status: |new, old, errors| {
        let within = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        validate_counts(
            new,
            old,
            &within,
            &["replicas", "observedGeneration"],
            errors,
        );
    },
    fields: |object| {
        let replicas = object["status"]["replicas"].as_i64().unwrap_or(0);
        vec![("status.replicas", replicas.to_string())]
    },
    ..Strategy::PLAIN
};

pub(crate) static POD_TEMPLATE: Strategy = Strategy {
    generation: Generation::Field("template"),
    returns_deleted_object: true,
    default: |object| pod::default_template(ensure(object, "template")),
    validate: |object, errors| {
        pod::validate_template(&object["template"], &Path::Root("template"), errors);
    },
    ..Strategy::PLAIN
};

pub(crate) static CONTROLLER_REVISION: Strategy = Strategy {
    validate: |object, errors| {
        non_negative(&object["revision"], &Path::Root("revision"), errors);
    },
    validate_create_only: |object, errors| match &object["data"] {
        Value::Object(_) => {}
        Value::Null => errors.push(FieldError::required("data", "data is mandatory")),
        _ => errors.push(FieldError::required(
            "data",
            "data must be a valid JSON object",
        )),
    },
    validate_update: |new, old, errors| {
        immutable(&new["data"], &old["data"], &Path::Root("data"), errors);
    },
    ..Strategy::PLAIN
};

fn default_controller(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default(spec, "replicas", 1);
    if spec["template"].is_null() {
        return;
    }
    let labels = spec["template"]["metadata"]["labels"].clone();
    pod::default_template(ensure(spec, "template"));
    if labels.is_null() {
        return;
    }
    if is_empty(&spec["selector"]) {
        set(spec, "selector", labels.clone());
    }
    let metadata = ensure(object, "metadata");
    if is_empty(&metadata["labels"]) {
        set(metadata, "labels", labels);
    }
}

fn validate_controller(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    non_negative_fields(spec, &["minReadySeconds"], &SPEC, errors);
    if is_empty(&spec["selector"]) {
        errors.push(FieldError::required(SPEC.child("selector"), ""));
    }
    non_negative_fields(spec, &["replicas"], &SPEC, errors);
    let (template, path) = (&spec["template"], SPEC.child("template"));
    if template.is_null() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let choice = json!({"matchLabels": spec["selector"]});
    pod::validate_selected(&choice, template, &path, errors);
    pod::validate_template(template, &path, errors);
    pod::validate_runs_forever(template, "ReplicationController", &path, errors);
}
