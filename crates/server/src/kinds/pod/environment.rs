//! Environment variables of containers and where their values come from.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use crate::kinds::checks::{Errors, invalid_each};
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, items, text};

/// Fields of the pod that a variable may show.
const FIELD_PATHS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// Resources of a container that a variable may show.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Checks `env` and `envFrom` of a container.
pub(super) fn validate(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let env = path.child("env");
    for (i, variable) in items(&container["env"]).iter().enumerate() {
        let path = env.index(i);
        match text(&variable["name"]) {
            "" => errors.push(FieldError::required(path.child("name"), "")),
            name => {
                let complaints = names::relaxed_env_var_name(name);
                invalid_each(complaints, name, &path.child("name"), errors);
            }
        }
        validate_value_from(variable, &path.child("valueFrom"), errors);
    }
    validate_env_from(&container["envFrom"], &path.child("envFrom"), errors);
}

fn validate_value_from(variable: &Value, path: &Path<'_>, errors: &mut Errors) {
    let from = &variable["valueFrom"];
    if from.is_null() {
        return;
    }
    let mut sources = 0;
    for kind in [
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "fileKeyRef",
    ] {
        let source = &from[kind];
        if source.is_null() {
            continue;
        }
        sources += 1;
        let path = path.child(kind);
        match kind {
            "fieldRef" => validate_field(source, &path, errors),
            "resourceFieldRef" => validate_resource(source, &path, errors),
            "configMapKeyRef" | "secretKeyRef" => validate_key(source, &path, errors),
            _ => {}
        }
    }
    let complaint = if sources == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
    } else if !is_empty(&variable["value"]) {
        "may not be specified when `value` is not empty"
    } else if sources > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, &"".into(), complaint));
}

fn validate_field(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = text(&source["fieldPath"]);
    if is_empty(&source["apiVersion"]) {
        errors.push(FieldError::required(path.child("apiVersion"), ""));
    } else if field.is_empty() {
        errors.push(FieldError::required(path.child("fieldPath"), ""));
    } else if let Some((map, key)) = subscript(field) {
        match map {
            "metadata.annotations" => {
                let key = key.to_ascii_lowercase();
                invalid_each(names::qualified_name(&key), key.as_str(), path, errors);
            }
            "metadata.labels" => invalid_each(names::qualified_name(key), key, path, errors),
            _ => {
                let text = format!(
                    "error converting fieldPath: field label does not support subscript: {field}"
                );
                errors.push(FieldError::invalid(
                    path.child("fieldPath"),
                    &field.into(),
                    &text,
                ));
            }
        }
    } else if matches!(field, "metadata.annotations" | "metadata.labels") {
        let path = path.child("fieldPath");
        errors.push(FieldError::not_supported(path, &field.into(), &FIELD_PATHS));
    } else if !FIELD_PATHS.contains(&field) {
        let text = format!("error converting fieldPath: field label not supported: {field}");
        errors.push(FieldError::invalid(
            path.child("fieldPath"),
            &field.into(),
            &text,
        ));
    }
}

/// `metadata.labels['key']` as its two parts.
fn subscript(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['")
}

fn validate_resource(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let resource = text(&source["resource"]);
    let huge = ["limits.hugepages-", "requests.hugepages-"];
    if resource.is_empty() {
        errors.push(FieldError::required(path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !huge.iter().any(|p| resource.starts_with(p)) {
        let path = path.child("resource");
        errors.push(FieldError::not_supported(
            path,
            &resource.into(),
            &RESOURCES,
        ));
    }
}

fn validate_key(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(&source["name"]);
    invalid_each(
        names::dns1123_subdomain(name),
        name,
        &path.child("name"),
        errors,
    );
    match text(&source["key"]) {
        "" => errors.push(FieldError::required(path.child("key"), "")),
        key => invalid_each(names::config_map_key(key), key, &path.child("key"), errors),
    }
}

fn validate_env_from(list: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, source) in items(list).iter().enumerate() {
        let at = path.index(i);
        let prefix = text(&source["prefix"]);
        if !prefix.is_empty() {
            let complaints = names::relaxed_env_var_name(prefix);
            invalid_each(complaints, prefix, &at.child("prefix"), errors);
        }
        let mut sources = 0;
        for kind in ["configMapRef", "secretRef"] {
            if source[kind].is_null() {
                continue;
            }
            sources += 1;
            let name = text(&source[kind]["name"]);
            let kind_path = at.child(kind);
            invalid_each(
                names::dns1123_subdomain(name),
                name,
                &kind_path.child("name"),
                errors,
            );
        }
        match sources {
            0 => errors.push(FieldError::invalid(
                path,
                &"".into(),
                "must specify one of: `configMapRef` or `secretRef`",
            )),
            1 => {}
            _ => errors.push(FieldError::invalid(
                path,
                &"".into(),
                "may not have more than one field specified at a time",
            )),
        }
    }
}
