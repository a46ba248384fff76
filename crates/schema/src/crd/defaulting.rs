//! Defaulting of custom resources: absent fields take the schema's default, stray nulls go away.

use serde_json::{Map, Value};

use super::compile::CompiledVersion;
use super::step::{self, Step};
use crate::types::{Shape, Type, TypeId};

/// Applies the defaults of the schema. An explicit `null` where the schema does not allow it counts as absent: it
/// takes the default, or is dropped if the schema has no default. Doing it twice changes nothing more.
pub fn default(version: &CompiledVersion, object: &mut Value) {
    drop_nulls(version, object, version.root);
    apply(version, object, version.root);
}

/// Drops nulls that are neither allowed nor replaced by a default. Recursion follows the schema.
fn drop_nulls(version: &CompiledVersion, value: &mut Value, ty: TypeId) {
    let ty = version.table.get(ty);
    match value {
        Value::Object(map) => {
            map.retain(|name, value| {
                let Some(child) = own(version, step::property(ty, name)) else {
                    return true;
                };
                let child_type = version.table.get(child);
                if value.is_null() && !child_type.nullable && child_type.default.is_none() {
                    return false;
                }
                drop_nulls(version, value, child);
                true
            });
        }
        Value::Array(items) => {
            if let Some(child) = own(version, step::item(ty)) {
                items.iter_mut().for_each(|v| drop_nulls(version, v, child));
            }
        }
        _ => {}
    }
}

fn apply(version: &CompiledVersion, value: &mut Value, ty: TypeId) {
    let ty = version.table.get(ty);
    match value {
        Value::Object(map) => {
            insert_defaults(version, map, ty);
            for (name, value) in map.iter_mut() {
                if let Some(child) = own(version, step::property(ty, name)) {
                    replace_null(version, value, child);
                    apply(version, value, child);
                }
            }
        }
        Value::Array(items) => {
            let Some(child) = own(version, step::item(ty)) else {
                return;
            };
            for value in items {
                replace_null(version, value, child);
                apply(version, value, child);
            }
        }
        _ => {}
    }
}

fn insert_defaults(version: &CompiledVersion, map: &mut Map<String, Value>, ty: &Type) {
    let Shape::Struct(object) = &ty.shape else {
        return;
    };
    for field in object.fields() {
        if let Some(default) = &version.table.get(field.ty).default
            && !map.contains_key(&*field.name)
        {
            map.insert(field.name.to_string(), default.clone());
        }
    }
}

fn replace_null(version: &CompiledVersion, value: &mut Value, ty: TypeId) {
    let ty = version.table.get(ty);
    if value.is_null()
        && !ty.nullable
        && let Some(default) = &ty.default
    {
        *value = default.clone();
    }
}

/// A part that the schema itself specifies. Built-in types have no defaults and keep their nulls.
fn own(version: &CompiledVersion, step: Step) -> Option<TypeId> {
    step.known().filter(|id| !version.is_imported(*id))
}
