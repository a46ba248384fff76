//! What changes from one object to another, as sets of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::form::{Form, Items, Members, Typed};
use super::path::PathElement;
use super::set::Set;
use super::value::equal;

/// What changes from one object to another. No field is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Fields that only the old object has.
    pub removed: Set,
    /// Fields with another value.
    pub modified: Set,
    /// Fields that only the new object has.
    pub added: Set,
}

impl Comparison {
    /// Whether the objects are the same.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Fields that the new object has and the old one has not, or not so.
    pub(super) fn taken(&self) -> Set {
        let mut taken = self.added.clone();
        taken.absorb(self.modified.clone());
        taken
    }

    pub(super) fn into_taken(self) -> Set {
        let mut taken = self.added;
        taken.absorb(self.modified);
        taken
    }
}

/// Compares two objects of one type. Fields that Go never leaves out count as being there in built-in types.
pub fn compare(typed: Typed<'_>, old: &Value, new: &Value) -> Comparison {
    let changes = walk(typed, Some(old), Some(new));
    Comparison {
        removed: changes.removed.below,
        modified: changes.modified.below,
        added: changes.added.below,
    }
}

/// One of the three sets, seen from one field.
#[derive(Default)]
struct Part {
    /// The field itself is in the set.
    member: bool,
    below: Set,
}

/// What changes of one field.
#[derive(Default)]
struct Changes {
    removed: Part,
    modified: Part,
    added: Part,
}

impl Changes {
    /// Adds what changes of a field below this one.
    fn put(&mut self, element: impl Fn() -> PathElement, inner: Changes) {
        let parts = [
            (&mut self.removed, inner.removed),
            (&mut self.modified, inner.modified),
            (&mut self.added, inner.added),
        ];
        for (outer, inner) in parts {
            if inner.member || !inner.below.is_empty() {
                outer.below.put(element(), inner.member, inner.below);
            }
        }
    }

    fn unite(&mut self, other: Changes) {
        let parts = [
            (&mut self.removed, other.removed),
            (&mut self.modified, other.modified),
            (&mut self.added, other.added),
        ];
        for (mine, other) in parts {
            mine.member |= other.member;
            mine.below.absorb(other.below);
        }
    }

    /// The field is one value.
    fn leaf(old: Option<&Value>, new: Option<&Value>) -> Self {
        let mut changes = Changes::default();
        match (old, new) {
            (None, _) => changes.added.member = true,
            (_, None) => changes.removed.member = true,
            (Some(old), Some(new)) => changes.modified.member = !equal(old, new),
        }
        changes
    }
}

/// Compares one field; at least one side has it.
fn walk(typed: Typed<'_>, old: Option<&Value>, new: Option<&Value>) -> Changes {
    let one = new.or(old).unwrap_or(&Value::Null);
    let mut changes = as_form(typed.form(one), old, new);
    // A value that turns from a scalar into an object without a type is both at once.
    if let (Some(before), Some(after)) = (old, new)
        && kind(before).is_some_and(|before| kind(after).is_some_and(|after| before != after))
    {
        changes.unite(as_form(typed.form(before), old, new));
    }
    changes
}

/// Which values can be compared part by part; null goes with all.
fn kind(value: &Value) -> Option<u8> {
    match value {
        Value::Null => None,
        Value::Object(_) => Some(0),
        Value::Array(_) => Some(1),
        _ => Some(2),
    }
}

fn as_form(form: Form<'_>, old: Option<&Value>, new: Option<&Value>) -> Changes {
    let mut changes = match form {
        Form::Leaf => return Changes::leaf(old, new),
        Form::List(items) => {
            let (before, after) = (list(old), list(new));
            if before.is_empty() && after.is_empty() {
                return Changes::leaf(old, new);
            }
            compare_items(&items, before, after)
        }
        Form::Object(members) => {
            let (before, after) = (object(old), object(new));
            if is_empty(members, before) && is_empty(members, after) {
                return Changes::leaf(old, new);
            }
            compare_members(members, before, after)
        }
    };
    changes.added.member |= old.is_none();
    changes.removed.member |= new.is_none();
    changes
}

/// The fields of an object.
type Fields = Map<String, Value>;

fn object(value: Option<&Value>) -> Option<&Fields> {
    value.and_then(Value::as_object)
}

/// Whether an object is absent or has no field, not even one that is implied.
fn is_empty(members: Members<'_>, object: Option<&Fields>) -> bool {
    object.is_none_or(|fields| fields.is_empty() && members.implied().next().is_none())
}

fn list(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map_or(&[], |items| items.as_slice())
}

fn compare_members(members: Members<'_>, old: Option<&Fields>, new: Option<&Fields>) -> Changes {
    let mut changes = Changes::default();
    let mut visit = |name: &str, typed, before, after| {
        let inner = walk(typed, before, after);
        changes.put(|| PathElement::field(name), inner);
    };
    for (name, after) in new.into_iter().flatten() {
        let known = old.and_then(|old| old.get(name));
        // Most of an object is as it was, and to see that takes no types.
        if known == Some(after) {
            continue;
        }
        let (typed, implied) = members.member(name);
        let before = known.or_else(|| old.and(implied));
        visit(name, typed, before, Some(after));
    }
    for (name, before) in old.into_iter().flatten() {
        if new.is_none_or(|new| !new.contains_key(name)) {
            let (typed, implied) = members.member(name);
            visit(name, typed, Some(before), new.and(implied));
        }
    }
    // What both sides imply is the same on both.
    if old.is_some() != new.is_some() {
        let given = |name: &str| old.or(new).is_some_and(|fields| fields.contains_key(name));
        for (name, typed, zero) in members.implied() {
            if !given(name) {
                visit(name, typed, old.and(Some(zero)), new.and(Some(zero)));
            }
        }
    }
    changes
}

fn compare_items(items: &Items<'_>, old: &[Value], new: &[Value]) -> Changes {
    let mut changes = Changes::default();
    if old == new {
        return changes;
    }
    let mut sides: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in old {
        if let Ok(name) = items.name(item) {
            sides.entry(name).or_default().0.push(item);
        }
    }
    for item in new {
        if let Ok(name) = items.name(item) {
            sides.entry(name).or_default().1.push(item);
        }
    }
    for (name, (before, after)) in sides {
        let inner = compare_same_name(items.item, &before, &after);
        changes.put(|| name.clone(), inner);
    }
    changes
}

/// Items of one name. Items that share their name are one value together, because nothing tells them apart.
fn compare_same_name(item: Typed<'_>, old: &[&Value], new: &[&Value]) -> Changes {
    match (old, new) {
        ([], [new]) => walk(item, None, Some(new)),
        ([old], []) => walk(item, Some(old), None),
        ([old], [new]) => walk(item, Some(old), Some(new)),
        ([_, _, ..], [_, _, ..]) => {
            let same = old.len() == new.len() && old.iter().zip(new).all(|(a, b)| equal(a, b));
            let mut changes = Changes::default();
            changes.modified.member = !same;
            changes
        }
        ([_, _, ..], _) => {
            let mut changes = match new {
                [new] => walk(item, None, Some(new)),
                _ => Changes::default(),
            };
            changes.removed.member = true;
            changes
        }
        (_, [_, _, ..]) => {
            let mut changes = match old {
                [old] => walk(item, Some(old), None),
                _ => Changes::default(),
            };
            changes.added.member = true;
            changes
        }
        ([], []) => Changes::default(),
    }
}
