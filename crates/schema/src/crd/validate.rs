//! Validation of custom resources: the schema's rules, the scale paths, embedded resources, list types and expressions.
//!
//! Texts are those of the API server. It walks properties in random order; we walk them by name. On an update
//! errors are ignored where a value equals the old one it correlates with.

use serde_json::Value;

use super::compile::CompiledVersion;
use super::failure::NOWHERE;
use super::values::{Place, Values};
use super::{embedded, list_type, scale};
use crate::field::{FieldError, Reason};
use crate::types::Shape;

/// Validates an object, against the old one on an update. `metadata` are the errors that were found in the object's
/// metadata; they come first. When the schema has `x-kubernetes-validations` and an error makes it pointless to
/// evaluate them, the last error says so; otherwise what they find comes last.
pub fn validate(
    version: &CompiledVersion,
    new: &Value,
    old: Option<&Value>,
    metadata: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = metadata;
    errors.extend(schema_errors(version, new, old));
    errors.extend(scale::spec_errors(version.scale.as_ref(), new));
    errors.extend(scale::status_errors(version.scale.as_ref(), new));
    errors.extend(embedded::errors(version, new));
    finish(version, new, old, errors)
}

/// Validates an update of the `status` subresource, where only the status is new.
pub fn validate_status(
    version: &CompiledVersion,
    new: &Value,
    old: &Value,
    metadata: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = metadata;
    if let (Some(status), Shape::Struct(root)) =
        (new.get("status"), &version.table.get(version.root).shape)
        && let Some(field) = root.field("status")
    {
        let place = Place::new("status", field.ty, status, old.get("status"));
        let found = Values::new(version).check(&place).errors.into_iter();
        errors.extend(found.map(|mut error| {
            if error.field == NOWHERE {
                error.field = "status".to_owned();
            }
            error
        }));
    }
    errors.extend(scale::status_errors(version.scale.as_ref(), new));
    finish(version, new, Some(old), errors)
}

/// Whether an error makes it pointless to evaluate `x-kubernetes-validations`: a wrong type, a missing or
/// unsupported value, or something too long.
pub fn blocks_expressions(errors: &[FieldError]) -> bool {
    errors.iter().any(|error| {
        matches!(
            error.reason,
            Reason::NotSupported
                | Reason::Required
                | Reason::TooLong
                | Reason::TooMany
                | Reason::TypeInvalid
        )
    })
}

fn schema_errors(version: &CompiledVersion, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let place = Place::new("", version.root, new, old);
    let mut errors = Values::new(version).check(&place).errors;
    let of_root = errors.iter_mut().filter(|error| error.field.is_empty());
    of_root.for_each(|error| error.field = NOWHERE.to_owned());
    errors
}

/// List types are ratcheted as a whole: an object that already broke them may go on doing so.
fn finish(
    version: &CompiledVersion,
    new: &Value,
    old: Option<&Value>,
    mut errors: Vec<FieldError>,
) -> Vec<FieldError> {
    if old.is_none_or(|old| list_type::errors(version, old).is_empty()) {
        errors.extend(list_type::errors(version, new));
    }
    let Some(expressions) = &version.expressions else {
        return errors;
    };
    if blocks_expressions(&errors) {
        errors.push(FieldError::invalid(
            NOWHERE,
            &Value::Null,
            "some validation rules were not checked because the object was invalid; \
             correct the existing errors to complete validation",
        ));
    } else {
        errors.extend(expressions.evaluate(version, new, old));
    }
    errors
}
