//! Embedded resources are Kubernetes objects: they need an `apiVersion` and a `kind` that can be ones.

use serde_json::{Map, Value};

use super::compile::CompiledVersion;
use super::{path, step};
use crate::field::FieldError;
use crate::go::json_type;
use crate::names;
use crate::types::{Shape, TypeId};

/// What is wrong with the embedded resources of an object. The object itself is checked elsewhere.
pub(super) fn errors(version: &CompiledVersion, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(version, version.root, object, "", &mut errors);
    errors
}

/// The same for a value of a type inside the schema, which may be an embedded resource itself.
pub(super) fn errors_at(
    version: &CompiledVersion,
    ty: TypeId,
    value: &Value,
    at: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(version, ty, value, at, &mut errors);
    errors
}

/// Recursion follows the schema, whose depth is limited.
fn walk(
    version: &CompiledVersion,
    id: TypeId,
    value: &Value,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    if version.is_imported(id) {
        return;
    }
    let ty = version.table.get(id);
    match value {
        Value::Object(map) => {
            if matches!(&ty.shape, Shape::Struct(s) if s.embedded_resource) && id != version.root {
                check(map, at, errors);
            }
            for (child, value, at) in step::known_properties(ty, map, at) {
                walk(version, child, value, &at, errors);
            }
        }
        Value::Array(items) => {
            if let Some(child) = step::item(ty).known() {
                for (i, item) in items.iter().enumerate() {
                    walk(version, child, item, &path::index(at, i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check(map: &Map<String, Value>, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = path::child(at, name);
        match map.get(name) {
            None => errors.push(FieldError::required(field, "")),
            Some(value) => match value.as_str() {
                None => errors.push(FieldError::invalid(field, value, "must be a string")),
                Some("") => errors.push(FieldError::invalid(field, value, "must not be empty")),
                Some(text) => {
                    let detail = if name == "kind" {
                        kind_error(text)
                    } else {
                        api_version_error(text)
                    };
                    errors.extend(detail.map(|detail| FieldError::invalid(field, value, &detail)));
                }
            },
        }
    }
    if let Some(metadata) = map.get("metadata")
        && !(metadata.is_object() || metadata.is_null())
    {
        let detail = format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            json_type(metadata)
        );
        errors.push(FieldError::invalid(
            path::child(at, "metadata"),
            metadata,
            &detail,
        ));
    }
}

fn kind_error(kind: &str) -> Option<String> {
    let faults = names::dns1035_label(&kind.to_lowercase());
    (!faults.is_empty()).then(|| {
        format!(
            "may have mixed case, but should otherwise match: {}",
            faults.join(",")
        )
    })
}

fn api_version_error(api_version: &str) -> Option<String> {
    (api_version.matches('/').count() > 1)
        .then(|| format!("unexpected GroupVersion string: {api_version}"))
}
