//! Jobs: their pods carry labels with the job's name and uid, and are chosen by them.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use super::policies;
use crate::kinds::checks::{Errors, immutable, non_negative_fields, one_of_if_set};
use crate::kinds::path::Path;
use crate::kinds::strategy::{CreateContext, FieldLabels, Generation, Propagation, Strategy};
use crate::kinds::value::{alike, copy, ensure, is_empty, is_true, map, set, set_default, text};
use crate::kinds::{pod, selector};
use crate::object;

const SPEC: Path<'static> = Path::Root("spec");

const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

pub(crate) static JOB: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    default_propagation: Propagation::Orphan,
    orphaning_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    ),
    field_labels: FieldLabels::ListedForJob(&[
        "metadata.name",
        "metadata.namespace",
        "status.successful",
    ]),
    default,
    create,
    validate,
    validate_update,
    validate_status: |new, _, errors| {
        let counts = ["active", "succeeded", "failed", "ready", "terminating"];
        non_negative_fields(&new["status"], &counts, &Path::Root("status"), errors);
    },
    name_appears_in: Some("Pod names and hostnames"),
    warnings: pod::template_warnings,
    fields: |object| {
        let succeeded = object["status"]["succeeded"].as_i64().unwrap_or(0);
        vec![("status.successful", succeeded.to_string())]
    },
    ..Strategy::PLAIN
};

fn default(object: &mut Value) {
    default_spec(ensure(object, "spec"));
    default_labels(object);
}

/// A job without labels takes those of its pods.
fn default_labels(object: &mut Value) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let metadata = ensure(object, "metadata");
    if is_empty(&metadata["labels"]) && !is_empty(&labels) {
        set(metadata, "labels", labels);
    }
}

fn default_spec(spec: &mut Value) {
    if spec["completions"].is_null() && spec["parallelism"].is_null() {
        set(spec, "completions", 1);
    }
    set_default(spec, "parallelism", 1);
    let retries = if spec["backoffLimitPerIndex"].is_null() {
        6
    } else {
        i32::MAX
    };
    set_default(spec, "backoffLimit", retries);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    let replace = if spec["podFailurePolicy"].is_null() {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    set_default(spec, "podReplacementPolicy", replace);
    set_default(spec, "manualSelector", false);
    policies::default(spec);
    pod::default_template(ensure(spec, "template"));
}

fn create(object: &mut Value, cx: &CreateContext<'_>) {
    set(object, "status", json!({}));
    if is_true(&object["spec"]["manualSelector"]) {
        return;
    }
    let name = object["metadata"]["name"].clone();
    let spec = ensure(object, "spec");
    let labels = map(ensure(
        ensure(ensure(spec, "template"), "metadata"),
        "labels",
    ));
    for label in NAME_LABELS {
        labels.entry(label).or_insert_with(|| name.clone());
    }
    for label in UID_LABELS {
        labels.entry(label).or_insert_with(|| cx.uid.into());
    }
    let chosen = map(ensure(ensure(spec, "selector"), "matchLabels"));
    chosen.entry(UID_LABELS[1]).or_insert_with(|| cx.uid.into());
    // Reading a job gives it the labels of its pods when it has none, so it shows them from the start.
    default_labels(object);
}

fn validate(object: &Value, errors: &mut Errors) {
    validate_generated(object, errors);
    validate_selected_spec(&object["spec"], errors);
    let spec = &object["spec"];
    let completions = spec["completions"].as_i64().unwrap_or(0);
    if text(&spec["completionMode"]) == "Indexed" && completions > 0 {
        let name = object::name(object);
        let longest = format!("{name}-{}", completions - 1);
        if !names::dns1123_label(&longest).is_empty() {
            let text = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.push(FieldError::invalid("metadata.name", &name.into(), &text));
        }
    }
}

/// Checks that nobody meddled with the labels and selector that the server generates.
fn validate_generated(object: &Value, errors: &mut Errors) {
    let (spec, meta) = (&object["spec"], &object["metadata"]);
    if is_true(&spec["manualSelector"]) || spec["selector"].is_null() {
        return;
    }
    if is_empty(&meta["uid"]) {
        errors.push(FieldError::required("metadata.uid", ""));
    }
    let (uid, name) = (text(&meta["uid"]), text(&meta["name"]));
    let labels = &spec["template"]["metadata"]["labels"];
    let path = Path::Root("spec.template.metadata.labels");
    let expected = [
        (UID_LABELS[0], uid),
        (NAME_LABELS[0], name),
        (UID_LABELS[1], uid),
        (NAME_LABELS[1], name),
    ];
    for (key, value) in expected {
        let text = format!("must be '{value}'");
        match labels.get(key) {
            None => errors.push(FieldError::required(path.key(key), &text)),
            Some(found) if found != value => {
                errors.push(FieldError::invalid(path.key(key), labels, &text));
            }
            Some(_) => {}
        }
    }
    let generated = json!(std::collections::BTreeMap::from(expected));
    if selector::matches(&spec["selector"], &generated) == Some(false) {
        let text = "`selector` not auto-generated";
        errors.push(FieldError::invalid(
            SPEC.child("selector"),
            &spec["selector"],
            text,
        ));
    }
}

fn validate_selected_spec(spec: &Value, errors: &mut Errors) {
    validate_spec(spec, &SPEC, errors);
    let choice = &spec["selector"];
    if choice.is_null() {
        errors.push(FieldError::required(SPEC.child("selector"), ""));
    } else {
        selector::validate(choice, &SPEC.child("selector"), errors);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector::matches(choice, labels) == Some(false) {
        errors.push(pod::mismatch(labels, &SPEC.child("template")));
    }
}

/// Checks a `JobSpec` but for its selector.
pub(super) fn validate_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    non_negative_fields(spec, &counts, path, errors);
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let text = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(
            path.child("backoffLimitPerIndex"),
            text,
        ));
    }
    let modes = ["NonIndexed", "Indexed"];
    one_of_if_set(
        &spec["completionMode"],
        &modes,
        &path.child("completionMode"),
        errors,
    );
    validate_mode(spec, path, errors);
    policies::validate(spec, path, errors);
    pod::validate_template(&spec["template"], &path.child("template"), errors);
    validate_restart(spec, &path.child("template.spec.restartPolicy"), errors);
}

fn validate_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(&spec["completionMode"]) == "Indexed" {
        if spec["completions"].is_null() {
            let text = "when completion mode is Indexed";
            errors.push(FieldError::required(path.child("completions"), text));
        }
        if spec["parallelism"].as_i64().is_some_and(|n| n > 100_000) {
            let text = "must be less than or equal to 100000 when completion mode is Indexed";
            errors.push(FieldError::invalid(
                path.child("parallelism"),
                &spec["parallelism"],
                text,
            ));
        }
        return;
    }
    for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if !spec[field].is_null() {
            let text = "requires indexed completion mode";
            errors.push(FieldError::invalid(path.child(field), &spec[field], text));
        }
    }
}

fn validate_restart(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = &spec["template"]["spec"]["restartPolicy"];
    match text(policy) {
        "" | "Always" => errors.push(FieldError::required(
            path,
            "valid values: \"OnFailure\", \"Never\"",
        )),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => errors.push(FieldError::invalid(
            path,
            policy,
            "only \"Never\" is supported when podFailurePolicy is specified",
        )),
        "OnFailure" | "Never" => {}
        _ => errors.push(FieldError::not_supported(
            path,
            policy,
            &["OnFailure", "Never"],
        )),
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (now, before) = (&new["spec"], &old["spec"]);
    // The server checks the spec once as an object and once more as an update.
    validate_selected_spec(now, errors);
    validate_completions(now, before, errors);
    immutable(
        &now["selector"],
        &before["selector"],
        &SPEC.child("selector"),
        errors,
    );
    validate_template_update(new, old, errors);
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        immutable(&now[field], &before[field], &SPEC.child(field), errors);
    }
}

fn validate_completions(now: &Value, before: &Value, errors: &mut Errors) {
    let path = SPEC.child("completions");
    let count = &now["completions"];
    if text(&now["completionMode"]) != "Indexed" {
        immutable(count, &before["completions"], &path, errors);
    } else if !count.is_null() && *count != before["completions"] && *count != now["parallelism"] {
        let text = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid(path, count, text));
    }
}

/// The pod template of a job does not change, but where its pods run may change before the job has started.
fn validate_template_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (now, mut before) = (&new["spec"]["template"], old["spec"]["template"].clone());
    let waiting = is_true(&old["spec"]["suspend"]) && old["status"]["startTime"].is_null();
    if waiting {
        for field in ["annotations", "labels"] {
            copy(ensure(&mut before, "metadata"), &now["metadata"], field);
        }
        let spec = ensure(&mut before, "spec");
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            copy(spec, &now["spec"], field);
        }
        if !(spec["affinity"].is_null() && now["spec"]["affinity"].is_null()) {
            copy(
                ensure(spec, "affinity"),
                &now["spec"]["affinity"],
                "nodeAffinity",
            );
        }
    }
    if !alike(now, &before) {
        immutable(now, &before, &SPEC.child("template"), errors);
    }
}

/// Defaults of a `JobTemplateSpec`: those of its pod template alone.
pub(super) fn default_template(template: &mut Value) {
    let spec = ensure(template, "spec");
    policies::default(spec);
    pod::default_template(ensure(spec, "template"));
}
