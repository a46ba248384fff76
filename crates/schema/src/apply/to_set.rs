//! The set of all fields that an object mentions.

use std::collections::BTreeMap;

use serde_json::Value;

use super::form::{Form, Items, Typed};
use super::path::PathElement;
use super::set::Set;

/// All fields that an object has as it is written: leaves, items of lists and keys of maps. An object with declared
/// fields counts only when it is empty or null.
pub fn to_field_set(typed: Typed<'_>, value: &Value) -> Set {
    below(typed.form(value), value).unwrap_or_default()
}

/// The fields below a value; nothing when it is a leaf.
fn below(form: Form<'_>, value: &Value) -> Option<Set> {
    let mut set = Set::new();
    match form {
        Form::Leaf => return None,
        Form::List(items) => add_items(&items, value, &mut set),
        Form::Object(members) => {
            for (name, value) in value.as_object()? {
                let inner = below(members.member(name).0.form(value), value);
                let is_empty = value.is_null() || value.as_object().is_some_and(|o| o.is_empty());
                let member = inner.is_none() || is_empty || !members.declares(name);
                set.put(PathElement::field(name), member, inner.unwrap_or_default());
            }
        }
    }
    Some(set)
}

fn add_items(items: &Items<'_>, value: &Value, set: &mut Set) {
    let mut by_name: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in value.as_array().into_iter().flatten() {
        if let Ok(name) = items.name(item) {
            by_name.entry(name).or_default().push(item);
        }
    }
    for (name, same) in by_name {
        let inner = match same[..] {
            [item] => below(items.item.form(item), item).unwrap_or_default(),
            _ => Set::new(),
        };
        set.put(name, true, inner);
    }
}
