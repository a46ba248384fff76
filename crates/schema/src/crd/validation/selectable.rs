//! Selectable fields point to scalars of the schema, not too many and none twice.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::failure::too_many;
use super::super::field_path::{self, Brackets};
use super::super::path::{child, index};
use super::super::schema::Schema;
use super::version::Context;
use crate::field::FieldError;

const MAX_FIELDS: usize = 8;

/// What is wrong with the selectable fields of a version.
pub(super) fn errors(
    version: &Value,
    schema: &Value,
    context: &Context,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let fields = version["selectableFields"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if fields.is_empty() {
        return;
    }
    if !schema.is_object() {
        let detail = if at.starts_with("spec.selectableFields") {
            "may only be set when validations.schema is included"
        } else {
            "may only be set when `version.schema.openAPIV3Schema` is not included"
        };
        return errors.push(FieldError::invalid(at, &json!(""), detail));
    }
    let mut unique = HashSet::new();
    for (i, field) in fields.iter().enumerate() {
        let path = field["jsonPath"].as_str().unwrap_or("");
        let at = child(&index(at, i), "jsonPath");
        field_errors(path, Schema(schema), &at, &mut unique, errors);
    }
    let before = context
        .old_versions
        .iter()
        .find(|old| old["name"] == version["name"]);
    let unchanged =
        before.is_some_and(|old| old["selectableFields"] == version["selectableFields"]);
    if unique.len() > MAX_FIELDS && !unchanged {
        errors.push(too_many(at, unique.len(), MAX_FIELDS as u64));
    }
}

fn field_errors(
    path: &str,
    schema: Schema<'_>,
    at: &str,
    unique: &mut HashSet<String>,
    errors: &mut Vec<FieldError>,
) {
    if path.is_empty() {
        return errors.push(FieldError::required(at, ""));
    }
    let (resolved, found) = match field_path::resolve(path, schema, Brackets::Forbidden) {
        Ok(found) => found,
        Err(reason) => {
            let detail = format!("is an invalid path: {reason}");
            return errors.push(FieldError::invalid(at, &json!(path), &detail));
        }
    };
    if resolved.split(['.', '[']).next() == Some("metadata") {
        let detail = "must not point to fields in metadata";
        errors.push(FieldError::invalid(at, &json!(path), detail));
    }
    if !matches!(found.ty(), "string" | "boolean" | "integer") {
        let detail = "must point to a field of type string, boolean or integer. \
                      Enum string fields and strings with formats are allowed.";
        errors.push(FieldError::invalid(at, &json!(path), detail));
    }
    if !unique.insert(resolved) {
        errors.push(FieldError::duplicate(at, &json!(path)));
    }
}
