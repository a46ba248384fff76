//! The touches before and after the parts of a schema are resolved: nulls, defaults, types, and keys that are known.

use serde_json::{Map, Value, json};

use super::marks::EXPLICIT_DEFAULT;
use super::scalar;

type Schema = Map<String, Value>;

/// Keys of a schema in the API.
const KEYS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// An `Option` says that there may be a null; in the API it says that it may be left out.
pub(super) fn without_null(schema: &mut Schema) {
    if schema.get("type") == Some(&json!("null")) {
        schema.remove("type");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|ty| ty != "null");
        match types.as_slice() {
            [only] => {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
            several => {
                let mut kinds: Vec<_> = several.iter().filter_map(Value::as_str).collect();
                kinds.sort_unstable();
                let number_or_text = kinds == ["integer", "string"];
                schema.remove("type");
                let key = if number_or_text {
                    "x-kubernetes-int-or-string"
                } else {
                    "x-kubernetes-preserve-unknown-fields"
                };
                schema.insert(key.into(), json!(true));
            }
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(value) = schema.remove("const").filter(|value| !value.is_null()) {
        let ty = match &value {
            Value::String(_) => Some("string"),
            Value::Bool(_) => Some("boolean"),
            Value::Number(number) if number.is_f64() => Some("number"),
            Value::Number(_) => Some("integer"),
            _ => None,
        };
        if let Some(ty) = ty {
            schema.entry("type").or_insert_with(|| json!(ty));
        }
        schema.insert("enum".into(), json!([value]));
    }
}

/// The last touches to a schema whose parts are done.
pub(super) fn finish(schema: &mut Schema) {
    if let Some(Value::Array(examples)) = schema.remove("examples") {
        let first = examples.into_iter().next();
        schema.extend(first.map(|first| ("example".to_owned(), first)));
    }
    scalar::bounds(schema);
    scalar::format(schema);
    scalar::unique(schema);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        if required.is_empty() {
            schema.remove("required");
        }
    }
    if schema.contains_key("x-kubernetes-int-or-string") {
        int_or_string(schema);
    }
    if schema.contains_key("properties") && schema.remove("additionalProperties").is_some() {
        schema.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
    }
    typed(schema);
    keep_known(schema);
}

/// Drops what the API has no key for.
pub(super) fn keep_known(schema: &mut Schema) {
    // The API does not know the key that kube writes for `StructMerge`; this is the one that is meant.
    if let Some(merge) = schema.remove("x-kubernetes-struct-type") {
        schema.entry("x-kubernetes-map-type").or_insert(merge);
    }
    schema.retain(|key, _| KEYS.contains(&key.as_str()));
}

/// Makes a schema one of numbers and texts.
pub(super) fn int_or_string(schema: &mut Schema) {
    schema.remove("type");
    schema.remove("format");
    schema.insert(
        "anyOf".into(),
        json!([{"type": "integer"}, {"type": "string"}]),
    );
}

/// Every part of a structural schema says its type, or that it does not know.
fn typed(schema: &mut Schema) {
    let keys = [
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ];
    if keys.iter().any(|key| schema.contains_key(*key)) {
        return;
    }
    let words = schema.get("enum").and_then(Value::as_array);
    let words =
        words.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string));
    let ty = match () {
        () if schema.contains_key("properties") || schema.contains_key("additionalProperties") => {
            "object"
        }
        () if schema.contains_key("items") => "array",
        () if words => "string",
        () => {
            schema.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
            return;
        }
    };
    schema.insert("type".into(), json!(ty));
}

/// Keeps a default that was asked for, and of others those that say something: what is empty anyway need not be written into
/// every object, and an object's parts have defaults of their own.
pub(super) fn settle_default(schema: &mut Schema) {
    if schema.remove(EXPLICIT_DEFAULT).is_some() {
        return;
    }
    let idle = schema.get("default").is_some_and(|default| match default {
        Value::Null | Value::Object(_) | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(true) => false,
    });
    if idle {
        schema.remove("default");
    }
}
