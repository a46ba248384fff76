//! Mounts and devices of containers: each names a volume of the pod and a place of its own.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use serde_json::Value;

use super::volume::{Volumes, descending};
use crate::kinds::checks::{Errors, one_of};
use crate::kinds::path::Path;
use crate::kinds::value::{is_true, items, text};

/// Checks the mounts and devices of a container.
pub(super) fn validate(
    container: &Value,
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let devices = items(&container["volumeDevices"]);
    validate_mounts(
        container,
        devices,
        volumes,
        &path.child("volumeMounts"),
        errors,
    );
    validate_devices(devices, volumes, &path.child("volumeDevices"), errors);
}

fn validate_mounts(
    container: &Value,
    devices: &[Value],
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut places = BTreeSet::new();
    let devices: BTreeSet<&str> = devices.iter().map(|d| text(&d["name"])).collect();
    for (i, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        let at = path.index(i);
        let (name, place) = (text(&mount["name"]), text(&mount["mountPath"]));
        if name.is_empty() {
            errors.push(FieldError::required(at.child("name"), ""));
        }
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(at.child("name"), &name.into()));
        }
        if place.is_empty() {
            errors.push(FieldError::required(at.child("mountPath"), ""));
        }
        if !places.insert(place) {
            let text = "must be unique";
            errors.push(FieldError::invalid(
                at.child("mountPath"),
                &place.into(),
                text,
            ));
        }
        if devices.contains(name) {
            let text = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(at.child("name"), &name.into(), text));
        }
        validate_sub_path(mount, &at, path, errors);
    }
}

fn validate_sub_path(mount: &Value, at: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let (plain, expression) = (text(&mount["subPath"]), text(&mount["subPathExpr"]));
    descending(plain, &path.child("subPath"), errors);
    if !plain.is_empty() && !expression.is_empty() {
        let text = "subPathExpr and subPath are mutually exclusive";
        errors.push(FieldError::invalid(
            at.child("subPathExpr"),
            &expression.into(),
            text,
        ));
    }
    descending(expression, &path.child("subPathExpr"), errors);
    if let Some(propagation) = mount["mountPropagation"].as_str() {
        let allowed = ["Bidirectional", "HostToContainer", "None"];
        let path = path.child("mountPropagation");
        one_of(&propagation.into(), &allowed, &path, errors);
    }
    let recursive = text(&mount["recursiveReadOnly"]);
    if matches!(recursive, "IfPossible" | "Enabled") && !is_true(&mount["readOnly"]) {
        errors.push(FieldError::forbidden(
            path.child("recursiveReadOnly"),
            "may only be specified when readOnly is true",
        ));
    }
}

fn validate_devices(
    devices: &[Value],
    volumes: &Volumes<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let (mut seen_names, mut places) = (BTreeSet::new(), BTreeSet::new());
    for (i, device) in devices.iter().enumerate() {
        let at = path.index(i);
        let (name, place) = (text(&device["name"]), text(&device["devicePath"]));
        if name.is_empty() {
            errors.push(FieldError::required(at.child("name"), ""));
        } else if !seen_names.insert(name) {
            errors.push(FieldError::invalid(
                at.child("name"),
                &name.into(),
                "must be unique",
            ));
        }
        match volumes.get(name) {
            Some(v) if v["persistentVolumeClaim"].is_null() && v["ephemeral"].is_null() => {
                let text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(at.child("name"), &name.into(), text));
            }
            Some(_) => {}
            None => errors.push(FieldError::not_found(at.child("name"), &name.into())),
        }
        if place.is_empty() {
            errors.push(FieldError::required(at.child("devicePath"), ""));
        } else if !places.insert(place) {
            errors.push(FieldError::invalid(
                at.child("devicePath"),
                &place.into(),
                "must be unique",
            ));
        }
    }
}
