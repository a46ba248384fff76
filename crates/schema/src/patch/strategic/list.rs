//! Merging of lists: scalars by value, objects by their merge key.

use std::collections::{HashMap, HashSet};
use std::mem;

use serde_json::Value;

use super::error::{go_type, print_list};
use super::order::{self, Order, identity};
use super::{DIRECTIVE, Merger, StrategicError, without_directives};
use crate::patch::merge::drop_nulls;
use crate::types::{Patch, Shape, TypeId};

/// A field with a list in it, and how it merges.
pub(super) struct ListField<'t> {
    merger: Merger<'t>,
    item: Option<TypeId>,
    merges: bool,
    merge_key: Option<&'t str>,
}

/// What the items of a list are.
#[derive(PartialEq, Eq)]
enum Items {
    None,
    Scalars,
    Objects,
}

impl<'t> ListField<'t> {
    pub(super) fn new(merger: Merger<'t>, ty: Option<TypeId>, patch: Option<&'t Patch>) -> Self {
        let item = match ty.map(|ty| &merger.table.get(ty).shape) {
            Some(Shape::List(list)) => Some(list.item),
            _ => None,
        };
        Self {
            merger,
            item,
            merges: patch.is_some_and(|patch| patch.merge),
            merge_key: patch.and_then(|patch| patch.merge_key.as_deref()),
        }
    }

    pub(super) fn merge_key(&self) -> Option<&'t str> {
        self.merge_key
    }

    /// Merges a list of the patch into the current one, or replaces it where the field does not merge.
    pub(super) fn merge(
        &self,
        current: Vec<Value>,
        patch: Vec<Value>,
    ) -> Result<Vec<Value>, StrategicError> {
        if !self.merges {
            return Ok(patch);
        }
        match item_kind(&current, &patch)? {
            Items::None => Ok(current),
            Items::Scalars => self.merge_scalars(current, &patch),
            Items::Objects => self.merge_objects(current, patch),
        }
    }

    /// Merges a list that comes with `$setElementOrder`, and tells the order of the server.
    pub(super) fn merge_in_order(
        &self,
        current: Option<Vec<Value>>,
        patch: Option<Vec<Value>>,
        order: &[Value],
    ) -> Result<(Vec<Value>, Order), StrategicError> {
        let mut items = patch.clone().unwrap_or_default();
        items.retain(|item| item.get(DIRECTIVE).is_none());
        let wanted = order::identities(&items, self.merge_key)?;
        order::check(&wanted, &items, order, self.merge_key)?;
        let before = order::identities(current.as_deref().unwrap_or_default(), self.merge_key)?;
        let merged = match (current, patch) {
            (Some(current), Some(patch)) => self.merge(current, patch)?,
            (Some(current), None) => current,
            (None, _) => items.into_iter().filter_map(without_directives).collect(),
        };
        let server = Order::after_merge(before, wanted, &Order::of(&merged, self.merge_key)?);
        Ok((merged, server))
    }

    fn merge_scalars(
        &self,
        mut current: Vec<Value>,
        patch: &[Value],
    ) -> Result<Vec<Value>, StrategicError> {
        let server = Order::of(&current, None)?;
        current.extend_from_slice(patch);
        let mut seen = HashSet::new();
        current.retain(|item| seen.insert(item.to_string()));
        order::arrange(current, &Order::of(patch, None)?, &server, None)
    }

    fn merge_objects(
        &self,
        mut current: Vec<Value>,
        mut patch: Vec<Value>,
    ) -> Result<Vec<Value>, StrategicError> {
        let key = self.merge_key.ok_or(StrategicError::NoDeclaredMergeKey)?;
        let directives = take_directives(&mut patch, key)?;
        if directives.replace {
            current = mem::take(&mut patch);
        } else if !directives.deleted.is_empty() {
            let gone = |item: &Value| {
                identity(item, Some(key)).is_ok_and(|id| directives.deleted.contains(&id))
            };
            current.retain(|item| !gone(item));
        }
        let wanted = Order::of(&patch, Some(key))?;
        let server = Order::of(&current, Some(key))?;
        let merged = self.merge_items(current, patch, key)?;
        order::arrange(merged, &wanted, &server, Some(key))
    }

    /// Merges each item into the first one with the same key, or appends it.
    fn merge_items(
        &self,
        mut current: Vec<Value>,
        patch: Vec<Value>,
        key: &str,
    ) -> Result<Vec<Value>, StrategicError> {
        let mut positions = HashMap::new();
        for (at, item) in current.iter().enumerate() {
            positions.entry(identity(item, Some(key))?).or_insert(at);
        }
        for mut item in patch {
            let id = identity(&item, Some(key))?;
            if let Some(at) = positions.get(&id) {
                let merged = self.merge_item(current[*at].take(), item)?;
                current[*at] = merged;
                continue;
            }
            positions.insert(id, current.len());
            drop_nulls(&mut item);
            current.push(item);
        }
        Ok(current)
    }

    fn merge_item(&self, current: Value, patch: Value) -> Result<Value, StrategicError> {
        match (current, patch) {
            (Value::Object(current), Value::Object(patch)) => {
                let merged = self.merger.object(current, patch, self.item)?;
                Ok(Value::Object(merged))
            }
            (_, other) => Err(StrategicError::NotAMap(go_type(&other))),
        }
    }
}

/// What the items with `$patch` in a list ask for.
#[derive(Default)]
struct Directives {
    replace: bool,
    deleted: HashSet<String>,
}

fn take_directives(patch: &mut Vec<Value>, key: &str) -> Result<Directives, StrategicError> {
    let mut directives = Directives::default();
    for item in &*patch {
        let Some(members) = item.as_object() else {
            continue;
        };
        let Some(directive) = members.get(DIRECTIVE) else {
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                directives.deleted.insert(identity(item, Some(key))?);
            }
            Some("replace") => directives.replace = true,
            Some("merge") => return Err(StrategicError::MergeDirective),
            _ => return Err(StrategicError::unknown_patch_type(directive, members)),
        }
    }
    patch.retain(|item| item.get(DIRECTIVE).is_none());
    Ok(directives)
}

/// Takes the unwanted scalars out of a list.
pub(super) fn delete_scalars(
    items: &mut Vec<Value>,
    unwanted: &[Value],
) -> Result<(), StrategicError> {
    if item_kind(items, unwanted)? == Items::Objects {
        return Err(StrategicError::PrimitiveListFormat);
    }
    let unwanted: HashSet<String> = unwanted.iter().map(Value::to_string).collect();
    items.retain(|item| !unwanted.contains(&item.to_string()));
    Ok(())
}

/// All items of both lists must be of one JSON type, and not lists themselves.
fn item_kind(current: &[Value], patch: &[Value]) -> Result<Items, StrategicError> {
    let mut items = current.iter().chain(patch);
    let Some(first) = items.next() else {
        return Ok(Items::None);
    };
    if first.is_array() {
        return Err(StrategicError::ListOfLists);
    }
    let kind = mem::discriminant(first);
    if first.is_null() || items.any(|item| mem::discriminant(item) != kind) {
        let lists = format!("[{} {}]", print_list(current), print_list(patch));
        return Err(StrategicError::MixedItems(lists));
    }
    Ok(if first.is_object() {
        Items::Objects
    } else {
        Items::Scalars
    })
}
