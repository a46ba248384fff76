//! Strategic merge patch: a merge patch that knows the type, so that lists merge by the keys of their items.
//!
//! What the type table does not know (custom data, unknown fields) merges as in a JSON merge patch. Directives:
//!
//! - `$patch: replace` or `delete` in an object, and `$patch: delete` or `replace` in an item of a list;
//! - `$retainKeys` names the members that survive;
//! - `$deleteFromPrimitiveList/<field>` takes scalars out of a list;
//! - `$setElementOrder/<field>` orders a list; items that only the server has keep their place among the others.

mod error;
mod list;
mod order;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use error::StrategicError;
use list::ListField;
use order::Order;

use super::merge::drop_nulls;
use super::{MAX_DEPTH, is_within_depth};
use crate::go;
use crate::types::{Patch, Shape, Table, TypeId};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object of type `ty`.
///
/// # Errors
/// When the patch breaks the rules of its directives, or does not fit the object.
pub fn apply(
    table: &Table,
    ty: TypeId,
    current: &Value,
    patch: Value,
) -> Result<Value, StrategicError> {
    if !is_within_depth(&patch, MAX_DEPTH) {
        return Err(StrategicError::TooDeep);
    }
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Object::new(),
        other => return Err(StrategicError::NotAnObject(go::json_type(&other))),
    };
    let original = current.as_object().cloned().unwrap_or_default();
    let merged = Merger { table }.object(original, patch, Some(ty))?;
    Ok(Value::Object(merged))
}

/// A patch as the API server names it in a refusal: `map[metadata:map[labels:invalid]]`.
pub fn display(patch: &Value) -> String {
    go::display(patch)
}

/// Merges along the types of a table. A type of `None` is one that the table does not know.
#[derive(Clone, Copy)]
struct Merger<'t> {
    table: &'t Table,
}

impl<'t> Merger<'t> {
    fn object(
        self,
        mut original: Object,
        mut patch: Object,
        ty: Option<TypeId>,
    ) -> Result<Object, StrategicError> {
        if let Some(directive) = patch.get(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => {
                    patch.remove(DIRECTIVE);
                    Ok(patch)
                }
                Some("delete") => Ok(Object::new()),
                _ => Err(StrategicError::unknown_patch_type(directive, &patch)),
            };
        }
        retain_keys(&mut original, &mut patch)?;
        self.order_lists(&mut original, &mut patch, ty)?;
        delete_from_lists(&mut original, &mut patch)?;
        for (name, value) in patch {
            self.member(&mut original, name, value, ty)?;
        }
        Ok(original)
    }

    fn member(
        self,
        original: &mut Object,
        name: String,
        value: Value,
        ty: Option<TypeId>,
    ) -> Result<(), StrategicError> {
        if value.is_null() {
            original.remove(&name);
            return Ok(());
        }
        let (field_type, patch) = self.field(ty, &name);
        let merged = match (original.get_mut(&name).map(Value::take), value) {
            (Some(Value::Object(_)), Value::Object(value)) if is_replaced(patch) => {
                Some(Value::Object(value))
            }
            (Some(Value::Object(current)), Value::Object(value)) => {
                Some(Value::Object(self.object(current, value, field_type)?))
            }
            (Some(Value::Array(current)), Value::Array(value)) => {
                let field = ListField::new(self, field_type, patch);
                Some(Value::Array(field.merge(current, value)?))
            }
            (_, mut value) => {
                drop_nulls(&mut value);
                without_directives(value)
            }
        };
        match merged {
            Some(merged) => original.insert(name, merged),
            None => original.remove(&name),
        };
        Ok(())
    }

    /// The type and merge behaviour of a member of an object.
    fn field(self, ty: Option<TypeId>, name: &str) -> (Option<TypeId>, Option<&'t Patch>) {
        match ty.map(|ty| &self.table.get(ty).shape) {
            Some(Shape::Struct(fields)) => match fields.field(name) {
                Some(field) => (Some(field.ty), field.patch.as_ref()),
                None => (None, None),
            },
            Some(Shape::Map { value, .. }) => (Some(*value), None),
            _ => (None, None),
        }
    }

    /// Merges the lists that the patch gives an order for, and takes them out of the patch.
    fn order_lists(
        self,
        original: &mut Object,
        patch: &mut Object,
        ty: Option<TypeId>,
    ) -> Result<(), StrategicError> {
        for (name, order) in take_directives(patch, SET_ELEMENT_ORDER) {
            let name = name.ok_or(StrategicError::SetElementOrderFormat)?;
            let order = into_list(order)?;
            let (field_type, strategy) = self.field(ty, &name);
            let field = ListField::new(self, field_type, strategy);
            let current = original.get_mut(&name).map(Value::take);
            let current = current
                .filter(|v| !v.is_null())
                .map(into_list)
                .transpose()?;
            let wanted = patch.remove(&name).map(into_list).transpose()?;
            if current.is_none() && wanted.is_none() {
                continue;
            }
            let (merged, server) = field.merge_in_order(current, wanted, &order)?;
            let wanted = Order::of(&order, field.merge_key())?;
            let ordered = order::arrange(merged, &wanted, &server, field.merge_key())?;
            original.insert(name, Value::Array(ordered));
        }
        Ok(())
    }
}

/// Whether a field is replaced as a whole even though it is an object: its strategy is there, but neither `merge` nor
/// `retainKeys`. The selector of a PodDisruptionBudget is so.
fn is_replaced(patch: Option<&Patch>) -> bool {
    patch.is_some_and(|patch| *patch == Patch::default())
}

/// Takes `<prefix>/<field>` out of a patch; the field is `None` where the slash is missing.
fn take_directives(patch: &mut Object, prefix: &str) -> Vec<(Option<String>, Value)> {
    let keys: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(prefix))
        .cloned()
        .collect();
    keys.into_iter()
        .filter_map(|key| {
            let field = key[prefix.len()..].strip_prefix('/').map(str::to_owned);
            patch.remove(&key).map(|value| (field, value))
        })
        .collect()
}

fn into_list(value: Value) -> Result<Vec<Value>, StrategicError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(StrategicError::NotAList(error::go_type(&other))),
    }
}

/// Drops the members of the original that `$retainKeys` does not name. The patch may set no others.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys.as_array().ok_or(StrategicError::RetainKeysFormat)?;
    let mut keys: Vec<&str> = keys.iter().filter_map(Value::as_str).collect();
    keys.sort_unstable();
    let is_kept = |key: &str| keys.binary_search(&key).is_ok();
    for (key, value) in &*patch {
        let exempt = value.is_null()
            || key.starts_with(DELETE_FROM_LIST)
            || key.starts_with(SET_ELEMENT_ORDER);
        if !exempt && !is_kept(key) {
            return Err(StrategicError::RetainKeysFormat);
        }
    }
    original.retain(|key, _| is_kept(key));
    Ok(())
}

fn delete_from_lists(original: &mut Object, patch: &mut Object) -> Result<(), StrategicError> {
    for (name, unwanted) in take_directives(patch, DELETE_FROM_LIST) {
        let name = name.ok_or(StrategicError::PrimitiveListFormat)?;
        if unwanted.is_null() {
            original.remove(&name);
            continue;
        }
        let (Some(Value::Array(items)), Value::Array(unwanted)) =
            (original.get_mut(&name), unwanted)
        else {
            continue;
        };
        list::delete_scalars(items, &unwanted)?;
    }
    Ok(())
}

/// A value of the patch that has nothing to merge with. Objects with a `$patch` of their own say something about
/// what is not there, so they go; the other directives have nothing to act on.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, _)| !is_directive(key));
            let kept = kept.filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        scalar => Some(scalar),
    }
}

fn is_directive(key: &str) -> bool {
    key == RETAIN_KEYS || key.starts_with(DELETE_FROM_LIST) || key.starts_with(SET_ELEMENT_ORDER)
}
