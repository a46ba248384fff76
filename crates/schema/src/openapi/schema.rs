//! Writes types of the table as OpenAPI schemas.
//!
//! Types with a name are referred to; lists, maps and scalars without one are written where they stand, so nothing
//! recurses deeper than lists in lists.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;

use super::Dialect;
use super::descriptions::About;
use super::operation::GroupVersionKind;
use crate::types::{Field, List, ListKind, Patch, Scalar, Shape, Struct, Table, Type, TypeId};

/// A definition: the schema of a named type.
pub(super) struct Definition<'a> {
    pub(super) table: &'a Table,
    pub(super) dialect: Dialect,
    pub(super) id: TypeId,
    /// The kinds that the type is.
    pub(super) kinds: &'a [GroupVersionKind<'a>],
    /// The descriptions of the type and its fields.
    pub(super) about: Option<About<'a>>,
}

/// `{"$ref": "#/components/schemas/…"}`
pub(super) struct Reference<'a> {
    pub(super) dialect: Dialect,
    pub(super) name: &'a str,
}

/// A type where it is used: a reference if it has a name.
struct Use<'a> {
    table: &'a Table,
    dialect: Dialect,
    ty: &'a Type,
}

/// A field of a struct: its type and what the field adds to it.
struct Property<'a> {
    usage: Use<'a>,
    field: &'a Field,
    about: Option<About<'a>>,
}

struct Properties<'a> {
    table: &'a Table,
    dialect: Dialect,
    fields: &'a [&'a Field],
    about: Option<About<'a>>,
}

impl Serialize for Reference<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Target<'a>(&'a Reference<'a>);
        impl fmt::Display for Target<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.dialect.prefix())?;
                f.write_str(self.0.name)
            }
        }
        impl Serialize for Target<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("$ref", &Target(self))?;
        map.end()
    }
}

impl Serialize for Definition<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ty = self.table.get(self.id);
        let mut map = serializer.serialize_map(None)?;
        if let Some(text) = self.about.and_then(About::itself) {
            map.serialize_entry("description", &text)?;
        }
        match (&ty.shape, &ty.name) {
            (Shape::Struct(s), _) => {
                write_struct(&mut map, self.table, self.dialect, s, self.about)?;
            }
            // Raw extensions and the like are objects; the JSON types of CRD schemas are anything.
            (Shape::Any, Some(name)) if name.starts_with("io.k8s.apimachinery.") => {
                map.serialize_entry("type", "object")?;
            }
            _ => write_shape(&mut map, self.table, self.dialect, &ty.shape)?,
        }
        if !self.kinds.is_empty() {
            map.serialize_entry("x-kubernetes-group-version-kind", self.kinds)?;
        }
        map.end()
    }
}

impl Serialize for Use<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let dialect = self.dialect;
        let Some(name) = &self.ty.name else {
            let mut map = serializer.serialize_map(None)?;
            write_zero(&mut map, dialect, &self.ty.shape)?;
            write_shape(&mut map, self.table, dialect, &self.ty.shape)?;
            return map.end();
        };
        let reference = Reference { dialect, name };
        if dialect == Dialect::V2 || !matches!(self.ty.shape, Shape::Struct(_)) {
            return reference.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("allOf", &[reference])?;
        write_zero(&mut map, dialect, &self.ty.shape)?;
        map.end()
    }
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|field| {
            let usage = Use {
                table: self.table,
                dialect: self.dialect,
                ty: self.table.get(field.ty),
            };
            let about = self.about;
            (
                &*field.name,
                Property {
                    usage,
                    field,
                    about,
                },
            )
        }))
    }
}

impl Serialize for Property<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(text) = self.about.and_then(|about| about.field(&self.field.name)) {
            map.serialize_entry("description", &text)?;
        }
        if self.field.always {
            write_zero(&mut map, self.usage.dialect, &self.usage.ty.shape)?;
        }
        match &self.usage.ty.name {
            Some(name) => self.write_reference(&mut map, name)?,
            None => write_shape(
                &mut map,
                self.usage.table,
                self.usage.dialect,
                &self.usage.ty.shape,
            )?,
        }
        if let Some(patch) = &self.field.patch {
            write_patch(&mut map, patch)?;
        }
        map.end()
    }
}

impl Property<'_> {
    /// Version 3 allows nothing beside a `$ref`, so it is wrapped in `allOf`; version 2 readers do not know that.
    fn write_reference<M: SerializeMap>(&self, map: &mut M, name: &str) -> Result<(), M::Error> {
        let Use { table, dialect, ty } = self.usage;
        let reference = Reference { dialect, name };
        match dialect {
            Dialect::V3 => {
                map.serialize_entry("allOf", &[reference])?;
            }
            Dialect::V2 => {
                let prefix = dialect.prefix();
                map.serialize_entry("$ref", &format!("{prefix}{name}"))?;
            }
        }
        if let Shape::Struct(used) = &ty.shape
            && atomic_by_name(table, name).is_some_and(|atomic| atomic != used.atomic)
        {
            write_map_type(map, used.atomic)?;
        }
        Ok(())
    }
}

/// The value that Go has where none was set, which version 3 calls the default: of structs, texts, numbers and booleans.
fn write_zero<M: SerializeMap>(
    map: &mut M,
    dialect: Dialect,
    shape: &Shape,
) -> Result<(), M::Error> {
    let zero = match shape {
        _ if dialect == Dialect::V2 => return Ok(()),
        Shape::Struct(_) => json!({}),
        Shape::Scalar(Scalar::String) => json!(""),
        Shape::Scalar(Scalar::Bool) => json!(false),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Double) => json!(0),
        _ => return Ok(()),
    };
    map.serialize_entry("default", &zero)
}

/// Whether the definition behind a name is atomic; a field may say otherwise of its own use.
fn atomic_by_name(table: &Table, name: &str) -> Option<bool> {
    match &table.get(table.named(name)?).shape {
        Shape::Struct(s) => Some(s.atomic),
        _ => None,
    }
}

fn write_map_type<M: SerializeMap>(map: &mut M, atomic: bool) -> Result<(), M::Error> {
    let word = if atomic { "atomic" } else { "granular" };
    map.serialize_entry("x-kubernetes-map-type", word)
}

fn write_shape<M: SerializeMap>(
    map: &mut M,
    table: &Table,
    dialect: Dialect,
    shape: &Shape,
) -> Result<(), M::Error> {
    match shape {
        Shape::Struct(s) => write_struct(map, table, dialect, s, None),
        Shape::Map { value, atomic } => {
            let ty = table.get(*value);
            map.serialize_entry("type", "object")?;
            map.serialize_entry("additionalProperties", &Use { table, dialect, ty })?;
            if *atomic {
                write_map_type(map, true)?;
            }
            Ok(())
        }
        Shape::List(list) => write_list(map, table, dialect, list),
        Shape::Scalar(scalar) => write_scalar(map, dialect, *scalar),
        Shape::Any => Ok(()),
    }
}

fn write_struct<M: SerializeMap>(
    map: &mut M,
    table: &Table,
    dialect: Dialect,
    s: &Struct,
    about: Option<About<'_>>,
) -> Result<(), M::Error> {
    let mut fields: Vec<&Field> = s.fields().iter().collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    map.serialize_entry("type", "object")?;
    if !fields.is_empty() {
        let properties = Properties {
            table,
            dialect,
            fields: &fields,
            about,
        };
        map.serialize_entry("properties", &properties)?;
    }
    let required: Vec<&str> = fields
        .iter()
        .filter(|field| field.required)
        .map(|field| &*field.name)
        .collect();
    if !required.is_empty() {
        map.serialize_entry("required", &required)?;
    }
    if s.atomic {
        write_map_type(map, true)?;
    }
    Ok(())
}

fn write_list<M: SerializeMap>(
    map: &mut M,
    table: &Table,
    dialect: Dialect,
    list: &List,
) -> Result<(), M::Error> {
    let ty = table.get(list.item);
    map.serialize_entry("type", "array")?;
    map.serialize_entry("items", &Use { table, dialect, ty })?;
    match &list.kind {
        ListKind::Atomic => map.serialize_entry("x-kubernetes-list-type", "atomic"),
        ListKind::Set => map.serialize_entry("x-kubernetes-list-type", "set"),
        ListKind::Map(keys) => {
            map.serialize_entry("x-kubernetes-list-type", "map")?;
            map.serialize_entry("x-kubernetes-list-map-keys", keys)
        }
    }
}

fn write_scalar<M: SerializeMap>(
    map: &mut M,
    dialect: Dialect,
    scalar: Scalar,
) -> Result<(), M::Error> {
    let (ty, format) = match (scalar, dialect) {
        (Scalar::String, _) => ("string", None),
        (Scalar::Bytes, _) => ("string", Some("byte")),
        (Scalar::Bool, _) => ("boolean", None),
        (Scalar::Int32, _) => ("integer", Some("int32")),
        (Scalar::Int64, _) => ("integer", Some("int64")),
        (Scalar::Double, _) => ("number", Some("double")),
        (Scalar::Time | Scalar::MicroTime, _) => ("string", Some("date-time")),
        (Scalar::Quantity, Dialect::V2) => ("string", None),
        (Scalar::IntOrString, Dialect::V2) => ("string", Some("int-or-string")),
        (Scalar::Quantity, Dialect::V3) => return write_one_of(map, ["string", "number"]),
        (Scalar::IntOrString, Dialect::V3) => {
            map.serialize_entry("format", "int-or-string")?;
            return write_one_of(map, ["integer", "string"]);
        }
    };
    map.serialize_entry("type", ty)?;
    match format {
        Some(format) => map.serialize_entry("format", format),
        None => Ok(()),
    }
}

fn write_one_of<M: SerializeMap>(map: &mut M, types: [&str; 2]) -> Result<(), M::Error> {
    let schemas = types.map(|ty| json!({ "type": ty }));
    map.serialize_entry("oneOf", &schemas)
}

fn write_patch<M: SerializeMap>(map: &mut M, patch: &Patch) -> Result<(), M::Error> {
    let strategy = match (patch.merge, patch.retain_keys) {
        (true, true) => Some("merge,retainKeys"),
        (true, false) => Some("merge"),
        (false, true) => Some("retainKeys"),
        (false, false) => None,
    };
    if let Some(key) = &patch.merge_key {
        map.serialize_entry("x-kubernetes-patch-merge-key", key)?;
    }
    match strategy {
        Some(strategy) => map.serialize_entry("x-kubernetes-patch-strategy", strategy),
        None => Ok(()),
    }
}
