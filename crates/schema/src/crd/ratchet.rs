//! Correlates new values with old ones: what has not changed is not held against an update.

use std::collections::HashMap;

use serde_json::Value;

use super::compile::CompiledVersion;
use super::step;
use crate::types::{ListKind, Shape, TypeId};

/// The items of an old list by their keys. Only lists of type `map` correlate item by item.
pub(super) struct OldItems<'a> {
    keys: &'a [Box<str>],
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(super) fn new<'v>(
        version: &'v CompiledVersion,
        list: TypeId,
        old: Option<&'v Value>,
    ) -> OldItems<'v> {
        let mut found = OldItems {
            keys: &[],
            by_key: HashMap::new(),
        };
        if let Shape::List(list) = &version.table.get(list).shape
            && let ListKind::Map(keys) = &list.kind
            && let Some(Value::Array(items)) = old
        {
            found.keys = keys;
            for item in items {
                if let Some(key) = key_of(keys, item) {
                    found.by_key.entry(key).or_insert(item);
                }
            }
        }
        found
    }

    /// The old item with the keys of a new one.
    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.by_key.is_empty() {
            return None;
        }
        self.by_key.get(&key_of(self.keys, item)?).copied()
    }
}

fn key_of(keys: &[Box<str>], item: &Value) -> Option<String> {
    let item = item.as_object()?;
    let key: Vec<&Value> = keys.iter().filter_map(|key| item.get(&**key)).collect();
    serde_json::to_string(&key).ok()
}

/// Whether a value equals the old one. Lists of type `map` may change their order; properties that the schema does
/// not specify make a value count as changed, as in the API server.
pub(super) fn unchanged(version: &CompiledVersion, ty: TypeId, new: &Value, old: &Value) -> bool {
    let table_type = version.table.get(ty);
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let imported = version.is_imported(ty);
            let same = |(name, value): (&String, &Value)| {
                old.get(name)
                    .is_some_and(|old| match step::property(table_type, name).known() {
                        Some(child) => unchanged(version, child, value, old),
                        None => imported && value == old,
                    })
            };
            new.len() == old.len() && new.iter().all(same)
        }
        (Value::Array(new_items), Value::Array(old_items)) => {
            if new_items.len() != old_items.len() {
                return false;
            }
            let items = OldItems::new(version, ty, Some(old));
            match step::item(table_type).known() {
                Some(child) if !items.keys.is_empty() => new_items.iter().all(|item| {
                    items
                        .find(item)
                        .is_some_and(|old| unchanged(version, child, item, old))
                }),
                _ => new_items == old_items,
            }
        }
        _ => new == old,
    }
}
