//! The `scale` subresource: where a custom resource keeps what a `Scale` shows, and whether it can be shown.

use serde_json::{Map, Value, json};

use super::definition::Scale;
use super::failure::invalid_printed;
use crate::field::FieldError;
use crate::go;

/// Why an object has no scale, or cannot be scaled. `Display` is the text that the API server gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// A part has another type than it should.
    #[error(".{path} accessor error: {value} is of the type {found}, expected {expected}")]
    Type {
        /// Where the part is, without the leading dot.
        path: String,
        /// The part, printed as Go prints it.
        value: String,
        /// The Go type that it has.
        found: &'static str,
        /// The Go type that it should have.
        expected: &'static str,
    },
    /// Something on the way to the desired replicas is not an object.
    #[error("value cannot be set because .{path} is not a map[string]interface{{}}, but {found}")]
    NotAnObject {
        /// Where the desired replicas are, without the leading dot.
        path: String,
        /// The Go type of what is on the way.
        found: &'static str,
    },
    /// The object does not say how many replicas it wants.
    #[error("the spec replicas field {0:?} does not exist")]
    Missing(String),
}

impl Scale {
    /// The `Scale` of an object.
    ///
    /// # Errors
    /// When the desired replicas are not there, or any part is of another type.
    pub fn read(&self, object: &Value) -> Result<Value, ScaleError> {
        let replicas = |path| read(path, object, "int64", Value::is_i64);
        let missing = || ScaleError::Missing(self.spec_replicas_path.clone());
        let wanted = replicas(&self.spec_replicas_path)?.ok_or_else(missing)?;
        let mut status =
            json!({"replicas": replicas(&self.status_replicas_path)?.unwrap_or(&json!(0))});
        if let Some(path) = &self.label_selector_path
            && let Some(selector) = read(path, object, "string", Value::is_string)?
            && selector != ""
        {
            status["selector"] = selector.clone();
        }
        let mut metadata = Map::new();
        for name in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "creationTimestamp",
        ] {
            let value = object
                .get("metadata")
                .and_then(|metadata| metadata.get(name));
            metadata.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        Ok(json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": metadata,
            "spec": {"replicas": wanted},
            "status": status,
        }))
    }

    /// Sets how many replicas an object wants.
    ///
    /// # Errors
    /// When something on the way is not an object.
    pub fn write(&self, object: &mut Value, replicas: i32) -> Result<(), ScaleError> {
        let path = self.spec_replicas_path.trim_start_matches('.');
        let mut place = object;
        for name in path.split('.') {
            let found = go::type_name(place);
            let map = place
                .as_object_mut()
                .ok_or_else(|| ScaleError::NotAnObject {
                    path: path.to_owned(),
                    found,
                })?;
            place = map.entry(name).or_insert_with(|| json!({}));
        }
        *place = json!(replicas);
        Ok(())
    }
}

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
        && let Err(error) = read(path, object, "string", Value::is_string)
    {
        let detail = error.to_string();
        errors.push(FieldError::invalid(path, &Value::from(""), &detail));
    }
    errors
}

fn replicas_error(path: &str, object: &Value) -> Option<FieldError> {
    let replicas = match read(path, object, "int64", Value::is_i64) {
        Ok(value) => value.and_then(Value::as_i64).unwrap_or(0),
        Err(error) => return Some(invalid_printed(path, "0", &error.to_string())),
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
    expected: &'static str,
    accept: impl Fn(&Value) -> bool,
) -> Result<Option<&'a Value>, ScaleError> {
    let names: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let mismatch = |names: &[&str], value: &Value, expected| ScaleError::Type {
        path: names.join("."),
        value: go::display(value),
        found: go::type_name(value),
        expected,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale {
            spec_replicas_path: ".spec.num".to_owned(),
            status_replicas_path: ".status.num".to_owned(),
            label_selector_path: Some(".status.selector".to_owned()),
        }
    }

    #[test]
    fn scale_shows_the_parts_of_an_object() {
        let mut object = json!({
            "metadata": {"name": "b1", "namespace": "default", "uid": "u", "resourceVersion": "5569", "generation": 1},
            "spec": {"mode": "a", "num": 5},
        });
        let expect = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "b1", "namespace": "default", "uid": "u", "resourceVersion": "5569"},
            "spec": {"replicas": 5}, "status": {"replicas": 0},
        });
        assert_eq!(scale().read(&object), Ok(expect));
        object["status"] = json!({"num": 3, "selector": "a=b"});
        let shown = scale().read(&object).expect("has a scale");
        assert_eq!(shown["status"], json!({"replicas": 3, "selector": "a=b"}));
    }

    #[test]
    fn scale_sets_the_wanted_replicas() {
        let mut object = json!({"metadata": {"name": "b1"}});
        scale().write(&mut object, 6).expect("can be scaled");
        assert_eq!(object["spec"], json!({"num": 6}));
        object["spec"] = json!("text");
        assert!(scale().write(&mut object, 6).is_err());
    }

    #[test]
    fn scale_needs_the_wanted_replicas() {
        let error = scale()
            .read(&json!({"spec": {}}))
            .expect_err("has no scale");
        assert_eq!(
            error.to_string(),
            "the spec replicas field \".spec.num\" does not exist"
        );
        let error = scale()
            .read(&json!({"spec": {"num": "x"}}))
            .expect_err("has no scale");
        assert_eq!(
            error.to_string(),
            ".spec.num accessor error: x is of the type string, expected int64"
        );
    }
}
