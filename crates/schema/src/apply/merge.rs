//! Merges what a manager wants into what is there. Nothing is removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::form::{Form, Items, Members, Typed};
use super::path::PathElement;

/// Merges a configuration into a live object. Where both have a leaf, the configuration's counts; items of lists
/// with names are in the order of the configuration, with items that only the live object has where they were.
pub fn merge(typed: Typed<'_>, live: &Value, config: &Value) -> Value {
    walk(typed, Some(live), Some(config)).unwrap_or_else(|| Value::Object(Map::new()))
}

/// Merges one field; nothing when nothing is left of it.
fn walk(typed: Typed<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let leaf = || config.or(live).cloned();
    match typed.form(config.or(live)?) {
        Form::Leaf => leaf(),
        Form::List(items) => {
            let (live, config) = (list(live), list(config));
            if live.is_empty() && config.is_empty() {
                return leaf();
            }
            match merge_items(&items, live, config) {
                Some(merged) => (!merged.is_empty()).then_some(Value::Array(merged)),
                None => leaf(),
            }
        }
        Form::Object(members) => {
            let (before, wanted) = (object(live), object(config));
            if before.is_none() && wanted.is_none() {
                return leaf();
            }
            let merged = merge_members(members, before, wanted);
            (!merged.is_empty()).then_some(Value::Object(merged))
        }
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map_or(&[], |items| items.as_slice())
}

/// An object that is not empty.
fn object(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value
        .and_then(Value::as_object)
        .filter(|object| !object.is_empty())
}

fn merge_members(
    members: Members<'_>,
    live: Option<&Map<String, Value>>,
    config: Option<&Map<String, Value>>,
) -> Map<String, Value> {
    let mut merged = Map::new();
    for (name, value) in live.into_iter().flatten() {
        let wanted = config.and_then(|config| config.get(name));
        if let Some(value) = walk(members.member(name).0, Some(value), wanted) {
            merged.insert(name.clone(), value);
        }
    }
    for (name, value) in config.into_iter().flatten() {
        if live.is_none_or(|live| !live.contains_key(name))
            && let Some(value) = walk(members.member(name).0, None, Some(value))
        {
            merged.insert(name.clone(), value);
        }
    }
    merged
}

/// Items with their names.
struct Named<'a> {
    items: Vec<(PathElement, &'a Value)>,
    /// Items by name; none where a name stands for several, which are then not merged with anything.
    by_name: BTreeMap<PathElement, Option<&'a Value>>,
}

impl<'a> Named<'a> {
    /// Nothing when an item has no name.
    fn new(items: &Items<'_>, list: &'a [Value]) -> Option<Self> {
        let mut named = Named {
            items: Vec::with_capacity(list.len()),
            by_name: BTreeMap::new(),
        };
        for item in list {
            let name = items.name(item).ok()?;
            named
                .by_name
                .entry(name.clone())
                .and_modify(|same| *same = None)
                .or_insert(Some(item));
            named.items.push((name, item));
        }
        Some(named)
    }

    fn has(&self, name: &PathElement) -> bool {
        self.by_name.contains_key(name)
    }

    fn get(&self, name: &PathElement) -> Option<&'a Value> {
        self.by_name.get(name).copied().flatten()
    }
}

/// Merges two lists by going through both at once: items of both in the order of `config`, and items of one alone
/// where their list has them relative to those. A list that has items without a name is one value: nothing.
fn merge_items(items: &Items<'_>, live: &[Value], config: &[Value]) -> Option<Vec<Value>> {
    let (live, config) = (Named::new(items, live)?, Named::new(items, config)?);
    let shared = config.items.iter().map(|(name, _)| name);
    let mut shared = shared.filter(|name| live.has(name)).peekable();
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    let mut merged = Vec::with_capacity(live.items.len().max(config.items.len()));
    let mut add = |live, config| merged.extend(walk(items.item, live, config));
    let (mut l, mut c) = (0, 0);
    while l < live.items.len() || c < config.items.len() {
        if let (Some((name, _)), Some((wanted, item))) = (live.items.get(l), config.items.get(c)) {
            if name == wanted {
                done.insert(wanted);
                add(live.get(name), Some(*item));
                (l, c) = (l + 1, c + 1);
                shared.next();
                continue;
            }
            // An item of both lists, but not the next one that the configuration wants.
            if config.has(name) && shared.peek().is_some_and(|next| *next != name) {
                l += 1;
                continue;
            }
        }
        if let Some((name, item)) = live.items.get(l) {
            if !config.has(name) {
                add(Some(*item), None);
                l += 1;
                continue;
            }
            if done.contains(name) {
                l += 1;
            }
        }
        if let Some((name, item)) = config.items.get(c) {
            done.insert(name);
            add(live.get(name), Some(*item));
            c += 1;
            if shared.peek() == Some(&name) {
                shared.next();
            }
        }
    }
    Some(merged)
}
