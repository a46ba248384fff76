//! Steps from a type into its parts: where a property or an item of a value is specified.

use serde_json::{Map, Value};

use super::path;
use crate::go::sorted;
use crate::rules::Additional;
use crate::types::{Shape, Type, TypeId};

/// What a type says about one part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The part has this type.
    Known(TypeId),
    /// The part itself is allowed, but nothing inside of it is specified.
    Loose,
    /// The part is kept with all that is in it.
    Kept,
    /// There is no such part.
    Unknown,
}

impl Step {
    pub(super) fn known(self) -> Option<TypeId> {
        match self {
            Step::Known(id) => Some(id),
            _ => None,
        }
    }
}

/// The property of a value of this type.
pub(super) fn property(ty: &Type, name: &str) -> Step {
    match &ty.shape {
        Shape::Struct(object) => match object.field(name) {
            Some(field) => Step::Known(field.ty),
            None if additional(ty) != Additional::Unset => Step::Loose,
            None if object.preserve_unknown => Step::Kept,
            None => Step::Unknown,
        },
        Shape::Map { value, .. } => Step::Known(*value),
        Shape::Any => Step::Kept,
        Shape::List(_) | Shape::Scalar(_) => Step::Unknown,
    }
}

/// The properties of an object at `at` whose types are known, by name: type, value and path.
pub(super) fn known_properties<'v>(
    ty: &Type,
    map: &'v Map<String, Value>,
    at: &str,
) -> impl Iterator<Item = (TypeId, &'v Value, String)> {
    let path_of = match ty.shape {
        Shape::Map { .. } => path::key,
        _ => path::child,
    };
    sorted(map).into_iter().filter_map(move |(name, value)| {
        let child = property(ty, name).known()?;
        Some((child, value, path_of(at, name)))
    })
}

/// The items of a value of this type.
pub(super) fn item(ty: &Type) -> Step {
    match &ty.shape {
        Shape::List(list) => Step::Known(list.item),
        Shape::Any => Step::Kept,
        Shape::Struct(object) if object.preserve_unknown => Step::Kept,
        _ => Step::Loose,
    }
}

fn additional(ty: &Type) -> Additional {
    ty.rules
        .as_ref()
        .map_or(Additional::Unset, |rules| rules.additional)
}
