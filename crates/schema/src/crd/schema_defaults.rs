//! Defaults in a schema must themselves be values that the schema allows, without fields it would drop.

use serde_json::Value;

use super::compile::CompiledVersion;
use super::embedded;
use super::failure::NOWHERE;
use super::path::{child, key};
use super::prune::prune_default;
use super::values::{Place, Values};
use crate::field::FieldError;
use crate::types::{Shape, TypeId};

/// What is wrong with the defaults of a schema. Maps are not entered: a default below them never applies alone.
pub(super) fn errors(version: &CompiledVersion, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(version, version.root, path, &mut errors);
    errors
}

/// Recursion follows the schema, whose depth is limited.
fn walk(version: &CompiledVersion, ty: TypeId, path: &str, errors: &mut Vec<FieldError>) {
    if version.is_imported(ty) {
        return;
    }
    let table_type = version.table.get(ty);
    if let Some(default) = &table_type.default {
        check(version, ty, default, &child(path, "default"), errors);
    }
    match &table_type.shape {
        Shape::Struct(object) => {
            for field in object.fields() {
                let path = key(&child(path, "properties"), &field.name);
                walk(version, field.ty, &path, errors);
            }
        }
        Shape::List(list) => walk(version, list.item, &child(path, "items"), errors),
        _ => {}
    }
}

fn check(
    version: &CompiledVersion,
    ty: TypeId,
    default: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let mut pruned = default.clone();
    prune_default(version, &mut pruned, ty);
    if pruned != *default {
        errors.push(FieldError::invalid(
            path,
            default,
            "must not have unknown fields",
        ));
    }
    let found = embedded::errors_at(version, ty, default, path);
    if !found.is_empty() {
        return errors.extend(found);
    }
    let mut found = Values::new(version)
        .check(&Place::new("", ty, default, None))
        .errors;
    if let Some(expressions) = version.expressions.as_ref().filter(|_| found.is_empty()) {
        found = expressions.evaluate_default(version, ty, default);
    }
    errors.extend(found.into_iter().map(|mut error| {
        let field = error.field.trim_start_matches('.');
        error.field = if field.is_empty() || field == NOWHERE {
            path.to_owned()
        } else {
            child(path, field)
        };
        error
    }));
}
