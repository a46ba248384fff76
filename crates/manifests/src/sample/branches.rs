//! Takes one branch of `oneOf` and `anyOf`, and all of `allOf`, into the schema they belong to.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The most branches that a `oneOf` or `anyOf` in the schema has. Only on schemas of checked depth.
pub(super) fn most(schema: &Value) -> usize {
    let own = ["oneOf", "anyOf"]
        .iter()
        .map(|key| branches(schema, key).len());
    let own = own.max().unwrap_or(0);
    let below = match schema {
        Value::Object(map) => map.values().map(most).max(),
        Value::Array(items) => items.iter().map(most).max(),
        _ => None,
    };
    own.max(below.unwrap_or(0))
}

/// The schema with one of its branches in it.
pub(super) fn take(schema: &Value, branch: usize) -> Cow<'_, Value> {
    let combined = ["allOf", "anyOf", "oneOf"]
        .iter()
        .any(|key| !branches(schema, key).is_empty());
    if !combined || schema["x-kubernetes-int-or-string"] == true {
        return Cow::Borrowed(schema);
    }
    let mut merged = schema.clone();
    for part in branches(schema, "allOf") {
        overlay(&mut merged, part);
    }
    for key in ["oneOf", "anyOf"] {
        let branches = branches(schema, key);
        if !branches.is_empty() {
            overlay(&mut merged, &branches[branch % branches.len()]);
        }
    }
    Cow::Owned(merged)
}

fn branches<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn overlay(base: &mut Value, extra: &Value) {
    let (Some(base), Some(extra)) = (base.as_object_mut(), extra.as_object()) else {
        return;
    };
    for (key, value) in extra {
        match key.as_str() {
            "required" => add_required(base, value),
            "properties" => overlay_properties(base, value),
            "minimum" | "minLength" | "minItems" | "minProperties" => {
                tighten(base, key, value, f64::max)
            }
            "maximum" | "maxLength" | "maxItems" | "maxProperties" => {
                tighten(base, key, value, f64::min)
            }
            "not" | "oneOf" | "anyOf" | "allOf" => {}
            _ => {
                base.insert(key.clone(), value.clone());
            }
        }
    }
}

fn add_required(base: &mut Map<String, Value>, names: &Value) {
    let required = base
        .entry("required")
        .or_insert_with(|| Value::Array(Vec::new()));
    if let (Some(required), Some(names)) = (required.as_array_mut(), names.as_array()) {
        for name in names {
            if !required.contains(name) {
                required.push(name.clone());
            }
        }
    }
}

fn overlay_properties(base: &mut Map<String, Value>, properties: &Value) {
    let own = base
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let (Some(own), Some(properties)) = (own.as_object_mut(), properties.as_object()) {
        for (name, schema) in properties {
            let own = own.entry(name).or_insert_with(|| Value::Object(Map::new()));
            overlay(own, schema);
        }
    }
}

fn tighten(base: &mut Map<String, Value>, key: &str, value: &Value, choose: fn(f64, f64) -> f64) {
    let own = base.get(key).and_then(Value::as_f64);
    let chosen = match (own, value.as_f64()) {
        (Some(own), Some(new)) if choose(own, new) == own => return,
        _ => value.clone(),
    };
    base.insert(key.to_owned(), chosen);
}
