//! What may change in a pod once it exists: images, deadlines, more tolerations, fewer gates.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::scheduling;
use crate::kinds::checks::{Errors, immutable, invalid_each};
use crate::kinds::path::Path;
use crate::kinds::value::{alike, copy, entries, is_empty, items, items_mut, remove, set, text};

const SPEC: Path<'static> = Path::Root("spec");

const REFUSAL: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks an update of a pod.
pub(super) fn validate(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"], &old["spec"]);
    for list in ["containers", "initContainers"] {
        let (now, before) = (items(&new[list]), items(&old[list]));
        if now.len() != before.len() {
            let text = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(SPEC.child(list), text));
            return;
        }
        validate_images(now, &SPEC.child(list), errors);
    }
    if !validate_deadline(new, old, errors) {
        return;
    }
    validate_tolerations(new, old, errors);
    validate_gates(new, old, errors);
    if alike(new, old) {
        return;
    }
    let mut rest = new.clone();
    restore_mutable(&mut rest, old, errors);
    if !alike(&rest, old) {
        errors.push(FieldError::forbidden(SPEC, REFUSAL));
    }
}

fn validate_images(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (i, container) in containers.iter().enumerate() {
        let image = text(&container["image"]);
        let at = path.index(i);
        if image.is_empty() {
            errors.push(FieldError::required(at.child("image"), ""));
        }
        if image.trim() != image {
            let text = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(at.child("image"), &image.into(), text));
        }
    }
}

/// Deadlines may come closer. Says whether the rest is worth checking.
fn validate_deadline(new: &Value, old: &Value, errors: &mut Errors) -> bool {
    let field = "activeDeadlineSeconds";
    let path = SPEC.child(field);
    match (new[field].as_i64(), old[field].as_i64()) {
        (Some(now), _) if !(0..=i32::MAX.into()).contains(&now) => {
            invalid_each(names::in_range(now, 0, i32::MAX.into()), now, &path, errors);
            false
        }
        (Some(now), Some(before)) if before < now => {
            let text = "must be less than or equal to previous value";
            errors.push(FieldError::invalid(path, &new[field], text));
            false
        }
        (None, Some(_)) => {
            let text = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(path, &Value::Null, text));
            true
        }
        _ => true,
    }
}

fn validate_tolerations(new: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("tolerations");
    let now: BTreeSet<String> = items(&new["tolerations"])
        .iter()
        .map(without_seconds)
        .collect();
    let kept = |before: &Value| now.contains(&without_seconds(before));
    if !items(&old["tolerations"]).iter().all(kept) {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path, text));
        return;
    }
    scheduling::validate_tolerations(&new["tolerations"], &path, errors);
}

/// What identifies a toleration: all of it but how long it lasts.
fn without_seconds(toleration: &Value) -> String {
    let mut rest = toleration.clone();
    remove(&mut rest, "tolerationSeconds");
    rest.to_string()
}

fn validate_gates(new: &Value, old: &Value, errors: &mut Errors) {
    let before: BTreeSet<&str> = items(&old["schedulingGates"])
        .iter()
        .map(|gate| text(&gate["name"]))
        .collect();
    let path = SPEC.child("schedulingGates");
    for (i, gate) in items(&new["schedulingGates"]).iter().enumerate() {
        let name = text(&gate["name"]);
        if !before.contains(name) {
            let at = path.index(i);
            let text = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(at.child("name"), &text));
        }
    }
}

/// Puts everything back that may change, so that what still differs may not.
fn restore_mutable(rest: &mut Value, old: &Value, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let before = items(&old[list]);
        for (container, before) in items_mut(rest.get_mut(list)).iter_mut().zip(before) {
            copy(container, before, "image");
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(rest, old, field);
    }
    let period = "terminationGracePeriodSeconds";
    if old[period].as_i64().is_some_and(|p| p < 0) && rest[period].as_i64() == Some(1) {
        copy(rest, old, period);
    }
    if !items(&old["schedulingGates"]).is_empty() {
        restore_node_choice(rest, old, errors);
    }
}

/// A pod with scheduling gates may still get a narrower choice of nodes.
fn restore_node_choice(rest: &mut Value, old: &Value, errors: &mut Errors) {
    let (now, before) = (&rest["nodeSelector"], &old["nodeSelector"]);
    if !entries(before).all(|(key, value)| now.get(key) == Some(value)) {
        let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(SPEC.child("nodeSelector"), now, text));
    }
    copy(rest, old, "nodeSelector");
    let before = old["affinity"]["nodeAffinity"].clone();
    if is_empty(&before) && !rest["affinity"].is_null() {
        if let Some(affinity) = rest["affinity"].as_object_mut() {
            affinity.remove("nodeAffinity");
        }
    } else if !alike(&rest["affinity"]["nodeAffinity"], &before) && rest["affinity"].is_object() {
        set(&mut rest["affinity"], "nodeAffinity", before);
    }
}

/// Checks a write of a pod's status.
pub(super) fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root("status");
    immutable(
        &new["status"]["qosClass"],
        &old["status"]["qosClass"],
        &path.child("qosClass"),
        errors,
    );
}
