//! Takes fields out of an object, or everything but them.

use serde_json::{Map, Value};

use super::form::{Form, Items, Members, Typed};
use super::set::{Node, Set};

/// The object without the fields of a set. A field goes with all that is below it.
pub fn remove_items(typed: Typed<'_>, value: &Value, set: &Set) -> Value {
    remove(typed, value, set).unwrap_or_else(|| Value::Object(Map::new()))
}

/// The object with nothing but the fields of a set, and with the objects and items that hold them.
pub fn extract_items(typed: Typed<'_>, value: &Value, set: &Set) -> Value {
    extract(typed, value, set)
}

/// What is left of a value when fields below it are taken out.
fn remove(typed: Typed<'_>, value: &Value, set: &Set) -> Option<Value> {
    match typed.form(value) {
        Form::Leaf if value.is_array() || value.is_object() => None,
        Form::Leaf => Some(value.clone()),
        Form::List(items) => {
            let left = remove_from_list(&items, value.as_array()?, set);
            (!left.is_empty()).then_some(Value::Array(left))
        }
        Form::Object(members) => {
            let left = remove_from_object(members, value.as_object()?, set);
            (!left.is_empty()).then_some(Value::Object(left))
        }
    }
}

fn remove_from_list(items: &Items<'_>, list: &[Value], set: &Set) -> Vec<Value> {
    let mut left = Vec::with_capacity(list.len());
    for item in list {
        match items.name(item).ok().and_then(|name| set.get(&name)) {
            None => left.push(item.clone()),
            Some(node) if node.member => {}
            Some(node) => left.extend(remove(items.item, item, &node.below)),
        }
    }
    left
}

fn remove_from_object(
    members: Members<'_>,
    object: &Map<String, Value>,
    set: &Set,
) -> Map<String, Value> {
    let mut left = Map::new();
    for (name, value) in object {
        let value = match set.get_field(name) {
            None => value.clone(),
            Some(node) if node.member => continue,
            Some(node) => remove(members.member(name).0, value, &node.below)
                .unwrap_or_else(|| emptied(members, value)),
        };
        left.insert(name.clone(), value);
    }
    left
}

/// What stands for a field that has nothing left and that nobody removed. Go leaves empty objects and lists out,
/// but a custom resource must not have a null where its schema wants an object.
fn emptied(members: Members<'_>, value: &Value) -> Value {
    match value {
        Value::Object(_) if !members.is_builtin() => Value::Object(Map::new()),
        Value::Array(_) if !members.is_builtin() => Value::Array(Vec::new()),
        _ => Value::Null,
    }
}

fn extract(typed: Typed<'_>, value: &Value, set: &Set) -> Value {
    match (typed.form(value), value) {
        (Form::List(items), Value::Array(list)) => {
            let taken = list.iter().filter_map(|item| {
                let name = items.name(item).ok()?;
                Some(extract_node(items.item, item, set.get(&name)?))
            });
            Value::Array(taken.collect())
        }
        (Form::Object(members), Value::Object(object)) => {
            let taken = object.iter().filter_map(|(name, value)| {
                let node = set.get_field(name)?;
                let value = extract_node(members.member(name).0, value, node);
                Some((name.clone(), value))
            });
            Value::Object(taken.collect())
        }
        _ => value.clone(),
    }
}

fn extract_node(typed: Typed<'_>, value: &Value, node: &Node) -> Value {
    if node.below.is_empty() && !matches!(typed.form(value), Form::Object(_)) {
        value.clone()
    } else {
        extract(typed, value, &node.below)
    }
}
