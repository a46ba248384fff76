//! Reading and editing JSON values whose types are already right, without ever failing when they are not.
//!
//! Reading goes through plain indexing (`object["spec"]["replicas"]`), which gives `null` for what is absent.

use serde_json::{Map, Value};

/// An absent value.
pub(crate) static NULL: Value = Value::Null;

/// The text of a string, empty when absent.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The items of a list, none when absent.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The items of a list for editing, none when absent.
pub(crate) fn items_mut(value: Option<&mut Value>) -> &mut [Value] {
    value
        .and_then(Value::as_array_mut)
        .map(Vec::as_mut_slice)
        .unwrap_or_default()
}

/// The strings of a list, none when absent.
pub(crate) fn strings(value: &Value) -> impl Iterator<Item = &str> {
    items(value).iter().filter_map(Value::as_str)
}

/// The entries of a map, none when absent.
pub(crate) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Whether a value says nothing: absent, or an empty string, list or map.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a value is `true`; absent counts as false.
pub(crate) fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

/// The map behind a value, which becomes an empty one when it is something else.
pub(crate) fn map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was just made a map"),
    }
}

/// A field of an object, which becomes an empty object when absent.
pub(crate) fn ensure<'a>(value: &'a mut Value, field: &str) -> &'a mut Value {
    map(value)
        .entry(field)
        .or_insert_with(|| Value::Object(Map::new()))
}

/// Sets a field that is absent.
pub(crate) fn set_default(value: &mut Value, field: &str, default: impl Into<Value>) {
    map(value).entry(field).or_insert_with(|| default.into());
}

/// Sets a field that is absent or an empty string, as Go's defaults see it.
pub(crate) fn set_default_text(value: &mut Value, field: &str, default: &str) {
    if is_empty(&value[field]) {
        map(value).insert(field.to_owned(), default.into());
    }
}

/// Sets a field.
pub(crate) fn set(value: &mut Value, field: &str, new: impl Into<Value>) {
    map(value).insert(field.to_owned(), new.into());
}

/// Removes a field.
pub(crate) fn remove(value: &mut Value, field: &str) -> Option<Value> {
    value.as_object_mut().and_then(|map| map.remove(field))
}

/// Makes a field of `to` what it is in `from`, present or absent.
pub(crate) fn copy(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => set(to, field, value.clone()),
        None => drop(remove(to, field)),
    }
}

/// Whether two values mean the same: absent, `null`, empty lists and empty maps are alike, as in Go's semantic
/// equality; quantities compare as they are written.
pub(crate) fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            x.iter()
                .all(|(key, value)| alike(value, y.get(key).unwrap_or(&NULL)))
                && y.iter()
                    .all(|(key, value)| x.contains_key(key) || absent_alike(value))
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| alike(a, b))
        }
        (Value::Null, other) | (other, Value::Null) => absent_alike(other),
        _ => a == b,
    }
}

/// Whether a value means the same as an absent one.
fn absent_alike(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_and_absent_are_alike() {
        assert!(alike(&json!({"a": []}), &json!({})));
        assert!(alike(&json!({}), &json!({"a": {}})));
        assert!(alike(&json!({"a": null}), &json!({"b": []})));
        assert!(!alike(&json!({"a": [1]}), &json!({"a": [1, 2]})));
        assert!(!alike(&json!({"a": 0}), &json!({})));
    }

    #[test]
    fn defaults_do_not_overwrite() {
        let mut value = json!({"a": 1, "b": ""});
        set_default(&mut value, "a", 2);
        set_default_text(&mut value, "b", "x");
        set_default(ensure(&mut value, "c"), "d", true);
        assert_eq!(value, json!({"a": 1, "b": "x", "c": {"d": true}}));
    }
}
