//! The parts of an object that its `scale` subresource shows must be what a `Scale` can hold.

use serde_json::Value;

use super::definition::Scale;
use super::failure::invalid_printed;
use super::go;
use crate::field::FieldError;

/// What is wrong with the desired number of replicas.
pub(super) fn spec_errors(scale: Option<&Scale>, object: &Value) -> Vec<FieldError> {
    let path = scale.map(|scale| scale.spec_replicas_path.as_str());
    path.and_then(|path| replicas_error(path, object))
        .into_iter()
        .collect()
}

/// What is wrong with the observed number of replicas, and with the selector.
pub(super) fn status_errors(scale: Option<&Scale>, object: &Value) -> Vec<FieldError> {
    let Some(scale) = scale else {
        return Vec::new();
    };
    let mut errors: Vec<FieldError> = replicas_error(&scale.status_replicas_path, object)
        .into_iter()
        .collect();
    if let Some(path) = &scale.label_selector_path
        && let Err(detail) = read(path, object, "string", Value::is_string)
    {
        errors.push(FieldError::invalid(path, &Value::from(""), &detail));
    }
    errors
}

fn replicas_error(path: &str, object: &Value) -> Option<FieldError> {
    let replicas = match read(path, object, "int64", Value::is_i64) {
        Ok(value) => value.and_then(Value::as_i64).unwrap_or(0),
        Err(detail) => return Some(invalid_printed(path, "0", &detail)),
    };
    let detail = if replicas < 0 {
        "should be a non-negative integer".to_owned()
    } else if replicas > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return None;
    };
    Some(invalid_printed(path, &replicas.to_string(), &detail))
}

/// Follows a path of plain names. A value that is not there is fine, one of another type is not.
fn read<'a>(
    path: &str,
    object: &'a Value,
    expected: &str,
    accept: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, String> {
    let names: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let mismatch = |names: &[&str], value: &Value, expected: &str| {
        let (shown, ty) = (go::display(value), go::type_name(value));
        format!(
            ".{} accessor error: {shown} is of the type {ty}, expected {expected}",
            names.join(".")
        )
    };
    let mut value = object;
    for (i, name) in names.iter().enumerate() {
        match value {
            Value::Object(map) => match map.get(*name) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(mismatch(&names[..=i], other, "map[string]interface{}")),
        }
    }
    if accept(value) {
        Ok(Some(value))
    } else {
        Err(mismatch(&names, value, expected))
    }
}
