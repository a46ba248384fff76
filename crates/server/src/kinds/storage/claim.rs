//! PersistentVolumeClaims.

use kubewright_schema::FieldError;
use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use super::{validate_access_modes, validate_class_and_mode, validate_size};
use crate::kinds::checks::{Errors, immutable};
use crate::kinds::path::Path;
use crate::kinds::strategy::{FieldLabels, Strategy};
use crate::kinds::value::{
    alike, copy, ensure, is_empty, items, set, set_default, set_default_text, text,
};
use crate::kinds::{pod, selector};

pub(crate) static PERSISTENT_VOLUME_CLAIM: Strategy = Strategy {
    has_status: true,
    returns_deleted_object: true,
    field_labels: FieldLabels::Generic,
    default,
    create: |object, _| {
        copy_data_source(object);
        set(object, "status", json!({"phase": "Pending"}));
    },
    update: |new, _| copy_data_source(new),
    validate: |object, errors| validate_spec(&object["spec"], &Path::Root("spec"), errors),
    validate_update,
    ..Strategy::PLAIN
};

/// Defaults of a claim, on its own or inside a StatefulSet.
pub(crate) fn default(claim: &mut Value) {
    set_default_text(ensure(claim, "status"), "phase", "Pending");
    let spec = ensure(claim, "spec");
    set_default(spec, "volumeMode", "Filesystem");
    let resources = ensure(spec, "resources");
    for list in ["limits", "requests"] {
        pod::default_resource_list(resources.get_mut(list));
    }
}

/// The old and the new name for where data comes from say the same.
fn copy_data_source(claim: &mut Value) {
    let spec = ensure(claim, "spec");
    let (old, new) = (spec["dataSource"].clone(), spec["dataSourceRef"].clone());
    if !old.is_null() && new.is_null() {
        set(spec, "dataSourceRef", old);
    } else if old.is_null() && !new.is_null() && is_empty(&new["namespace"]) {
        set(spec, "dataSource", new);
    }
}

/// Checks the spec of a claim.
pub(crate) fn validate_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if items(&spec["accessModes"]).is_empty() {
        let text = "at least 1 access mode is required";
        errors.push(FieldError::required(path.child("accessModes"), text));
    }
    selector::validate(&spec["selector"], &path.child("selector"), errors);
    validate_access_modes(spec, path, errors);
    let resources = path.child("resources");
    validate_size(
        &spec["resources"]["requests"]["storage"],
        &resources.key("storage"),
        errors,
    );
    validate_class_and_mode(spec, path, errors);
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if source.is_null() {
            continue;
        }
        let path = path.child(field);
        for part in ["name", "kind"] {
            if is_empty(&source[part]) {
                errors.push(FieldError::required(path.child(part), ""));
            }
        }
        if is_empty(&source["apiGroup"]) && text(&source["kind"]) != "PersistentVolumeClaim" {
            let text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(path, &source["kind"], text));
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root("spec");
    let (mut rest, mut before) = (new["spec"].clone(), old["spec"].clone());
    if is_empty(&before["volumeName"]) {
        copy(&mut before, &rest, "volumeName");
    }
    if before["storageClassName"].is_null() {
        copy(&mut before, &rest, "storageClassName");
    }
    let size = |object: &Value| object["spec"]["resources"]["requests"]["storage"].clone();
    if text(&new["status"]["phase"]) == "Bound" {
        copy(&mut rest, &before, "volumeAttributesClassName");
        if !rest["resources"]["requests"].is_null() {
            set(&mut rest["resources"]["requests"], "storage", size(old));
        }
    }
    if !alike(&rest, &before) {
        let text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(path, text));
    }
    let quantity = |value: &Value| Quantity::parse(text(value)).unwrap_or_default();
    let (now, was) = (quantity(&size(new)), quantity(&size(old)));
    if now < was && now <= quantity(&old["status"]["capacity"]["storage"]) {
        let text = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(
            path.child("resources.requests.storage"),
            text,
        ));
    }
    let (mode, before) = (&new["spec"]["volumeMode"], &old["spec"]["volumeMode"]);
    immutable(mode, before, &Path::Root("volumeMode"), errors);
}
