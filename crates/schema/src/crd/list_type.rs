//! The promise of `x-kubernetes-list-type`: sets have no item twice, maps no key twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::compile::CompiledVersion;
use super::path;
use super::step;
use crate::field::FieldError;
use crate::types::{ListKind, Shape, TypeId};

/// Items that stand twice in the sets and maps of an object.
pub(super) fn errors(version: &CompiledVersion, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(version, version.root, object, "", &mut errors);
    errors
}

/// Recursion follows the schema, whose depth is limited.
fn walk(
    version: &CompiledVersion,
    ty: TypeId,
    value: &Value,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    if version.is_imported(ty) {
        return;
    }
    let ty = version.table.get(ty);
    match value {
        Value::Object(map) => {
            for (child, value, at) in step::known_properties(ty, map, at) {
                walk(version, child, value, &at, errors);
            }
        }
        Value::Array(items) => {
            let Shape::List(list) = &ty.shape else {
                return;
            };
            match &list.kind {
                ListKind::Set => errors.extend(
                    repeated(items.iter())
                        .map(|i| FieldError::duplicate(path::index(at, i), &items[i])),
                ),
                ListKind::Map(keys) => map_errors(keys, items, at, errors),
                ListKind::Atomic => {}
            }
            for (i, item) in items.iter().enumerate() {
                walk(version, list.item, item, &path::index(at, i), errors);
            }
        }
        _ => {}
    }
}

fn map_errors(keys: &[Box<str>], items: &[Value], at: &str, errors: &mut Vec<FieldError>) {
    let odd = items
        .iter()
        .position(|item| !item.is_object() && !item.is_null());
    if let Some(i) = odd {
        let detail = "must be an object for an array of list-type map";
        return errors.push(FieldError::invalid(path::index(at, i), &items[i], detail));
    }
    let keys: Vec<Value> = items.iter().map(|item| key(keys, item)).collect();
    errors
        .extend(repeated(keys.iter()).map(|i| FieldError::duplicate(path::index(at, i), &keys[i])));
}

/// The keys of an item as an object; keys that are not there are left out.
fn key(keys: &[Box<str>], item: &Value) -> Value {
    let names = keys.iter().map(|key| &**key);
    let entry = |name: &str| Some((name.to_owned(), item.get(name)?.clone()));
    Value::Object(names.filter_map(entry).collect::<Map<_, _>>())
}

/// The second place of every value that occurs more than once.
fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = usize> {
    let mut times: HashMap<String, u32> = HashMap::new();
    let mut second = Vec::new();
    for (i, value) in values.enumerate() {
        let count = times.entry(value.to_string()).or_default();
        *count = count.saturating_add(1);
        if *count == 2 {
            second.push(i);
        }
    }
    second.into_iter()
}
