//! Storage: persistent volumes, claims on them, and the classes and drivers that provide them.

mod claim;
mod class;
mod volume;

pub(super) use claim::{
    PERSISTENT_VOLUME_CLAIM, default as default_claim, validate_spec as validate_claim_spec,
};
pub(super) use class::{
    CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, STORAGE_CLASS, VOLUME_ATTACHMENT,
    VOLUME_ATTRIBUTES_CLASS,
};
pub(super) use volume::PERSISTENT_VOLUME;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use kubewright_schema::quantity::Quantity;
use serde_json::Value;

use super::checks::{Errors, invalid_each, one_of, one_of_if_set};
use super::path::Path;
use super::pod;
use super::value::{strings, text};

/// Checks access modes, of which there must be one.
fn validate_access_modes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const MODES: [&str; 4] = [
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOnce",
        "ReadWriteOncePod",
    ];
    let path = path.child("accessModes");
    let (mut single, mut other) = (false, false);
    for mode in strings(&spec["accessModes"]) {
        one_of(&mode.into(), &MODES, &path, errors);
        single |= mode == "ReadWriteOncePod";
        other |= mode != "ReadWriteOncePod" && MODES.contains(&mode);
    }
    if single && other {
        let text = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, text));
    }
}

/// Checks the class of storage and the mode of a volume or claim.
fn validate_class_and_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let class = text(&spec["storageClassName"]);
    if !class.is_empty() {
        invalid_each(
            names::dns1123_subdomain(class),
            class,
            &path.child("storageClassName"),
            errors,
        );
    }
    let modes = ["Block", "Filesystem"];
    one_of_if_set(
        &spec["volumeMode"],
        &modes,
        &path.child("volumeMode"),
        errors,
    );
}

/// Checks that a size is there and above zero.
fn validate_size(size: &Value, path: &Path<'_>, errors: &mut Errors) {
    if size.is_null() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    if Quantity::parse(text(size)).is_ok_and(|size| !size.is_positive()) {
        errors.push(FieldError::invalid(path, size, "must be greater than zero"));
    } else {
        pod::validate_quantity(size, path, errors);
    }
}

#[cfg(test)]
mod tests;
