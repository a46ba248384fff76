//! Encoding: writes values as the compact JSON that the API server serves and stores.
//!
//! Built-in kinds are written in the order of their Go structs, and structs that Go cannot leave out are added when
//! they are empty; custom resources are written with sorted keys. Strings are escaped as Go does for HTML. Nothing
//! else is added, and nothing is left out of structs but nulls and empty maps and lists that may be absent.
//!
//! Values are expected to come from [`decode`](crate::decode), which limits how deep they are nested.

mod text;

pub use text::{key as write_key, string as write_string};

use std::io::Write;

use serde_json::{Map, Number, Value};

use crate::types::{Field, Form, Outline, Scalar, Shape, Struct, Table, TypeId};

/// Where things are in an encoded object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Encoded {
    /// Offset in the output of the value of `metadata.resourceVersion`, just inside its quotes.
    pub version_at: Option<usize>,
}

/// Appends an object of a type to `out`, with a `metadata.resourceVersion` even when the object has none.
pub fn encode(table: &Table, ty: TypeId, value: &Value, out: &mut Vec<u8>) -> Encoded {
    let mut writer = Typed::new(table, out);
    writer.versioned = true;
    writer.value(ty, value);
    Encoded {
        version_at: writer.version_at,
    }
}

/// Appends a custom resource to `out`, with a `metadata.resourceVersion` even when its metadata has none.
pub fn encode_untyped(value: &Value, out: &mut Vec<u8>) -> Encoded {
    let mut version_at = None;
    match value {
        Value::Object(object) => entries(object, out, |key, value, out| {
            text::key(key, out);
            match (key, value) {
                ("metadata", Value::Object(metadata)) => {
                    version_at = untyped_metadata(metadata, out);
                }
                _ => write_untyped(value, out),
            }
        }),
        _ => write_untyped(value, out),
    }
    Encoded { version_at }
}

/// Appends a value of a type to `out` without adding a resource version: for answers that are not stored objects.
pub fn write(table: &Table, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    Typed::new(table, out).value(ty, value);
}

/// Appends any value to `out`, with sorted keys.
pub fn write_untyped(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(value) => number(value, out),
        Value::String(value) => text::string(value, out),
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_untyped(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => entries(map, out, |key, value, out| {
            text::key(key, out);
            write_untyped(value, out);
        }),
    }
}

/// Writes an object in the order of its keys; `entry` writes one of them.
fn entries<'a>(
    map: &'a Map<String, Value>,
    out: &mut Vec<u8>,
    mut entry: impl FnMut(&'a str, &'a Value, &mut Vec<u8>),
) {
    out.push(b'{');
    let mut next = |key: &'a String, value: &'a Value, out: &mut Vec<u8>| {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        entry(key, value, out);
    };
    // A map that keeps the order of insertion is possible where another crate asks serde_json for it.
    if map.keys().is_sorted() {
        map.iter().for_each(|(key, value)| next(key, value, out));
    } else {
        let mut sorted: Vec<(&String, &Value)> = map.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        sorted
            .into_iter()
            .for_each(|(key, value)| next(key, value, out));
    }
    out.push(b'}');
}

const VERSION: &str = "resourceVersion";

fn untyped_metadata(metadata: &Map<String, Value>, out: &mut Vec<u8>) -> Option<usize> {
    let mut version_at = None;
    let has_version = metadata.contains_key(VERSION);
    entries(metadata, out, |key, value, out| {
        if !has_version && version_at.is_none() && key > VERSION {
            version_at = Some(empty_version(out));
            out.push(b',');
        }
        text::key(key, out);
        if key == VERSION {
            version_at = value.is_string().then_some(out.len() + 1);
        }
        write_untyped(value, out);
    });
    if !has_version && version_at.is_none() {
        out.pop();
        if !metadata.is_empty() {
            out.push(b',');
        }
        version_at = Some(empty_version(out));
        out.push(b'}');
    }
    version_at
}

fn empty_version(out: &mut Vec<u8>) -> usize {
    text::key(VERSION, out);
    out.extend_from_slice(b"\"\"");
    out.len() - 1
}

fn number(value: &Number, out: &mut Vec<u8>) {
    let written = match (value.as_i64(), value.as_u64(), value.as_f64()) {
        (Some(value), _, _) => write!(out, "{value}"),
        (_, Some(value), _) => write!(out, "{value}"),
        (_, _, value) => return text::float(value.unwrap_or_default(), out),
    };
    written.expect("writing to memory does not fail");
}

/// A field to be written: its place among the fields, its name, its value unless it is only there because Go
/// always writes it.
type Pending<'v> = (u16, &'v str, Option<&'v Value>);

struct Typed<'v, 'o> {
    table: &'v Table,
    out: &'o mut Vec<u8>,
    /// Fields of the structs that are being written, innermost last. Kept here so that structs do not allocate.
    pending: Vec<Pending<'v>>,
    depth: usize,
    /// Whether `metadata.resourceVersion` is written in any case.
    versioned: bool,
    version_at: Option<usize>,
}

impl<'v, 'o> Typed<'v, 'o> {
    fn new(table: &'v Table, out: &'o mut Vec<u8>) -> Self {
        Self {
            table,
            out,
            pending: Vec::with_capacity(32),
            depth: 0,
            versioned: false,
            version_at: None,
        }
    }

    fn value(&mut self, ty: TypeId, value: &'v Value) {
        let table = self.table;
        match (&table.get(ty).shape, value) {
            (Shape::Struct(s), Value::Object(map)) => self.structure(s, Some(map), Role::Other),
            (Shape::Map { value: inner, .. }, Value::Object(map)) => {
                self.map(*inner, map);
            }
            (Shape::List(list), Value::Array(items)) => {
                self.out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.value(list.item, item);
                }
                self.out.push(b']');
            }
            (Shape::Any, Value::Object(_)) => self.form(ty, Outline::Object, value),
            (Shape::Any, Value::Array(_)) => self.form(ty, Outline::Array, value),
            _ => write_untyped(value, self.out),
        }
    }

    /// A value that is one of several types, or of none that is known.
    fn form(&mut self, ty: TypeId, outline: Outline, value: &'v Value) {
        match self.table.form(ty, outline) {
            Form::Typed(form) => self.value(form, value),
            Form::Free | Form::Foreign => write_untyped(value, self.out),
        }
    }

    fn map(&mut self, inner: TypeId, map: &'v Map<String, Value>) {
        let (table, pending) = (self.table, &mut self.pending);
        let untyped = match table.get(inner).shape {
            Shape::Scalar(_) => true,
            Shape::Any => table.form(inner, Outline::Object) == Form::Free,
            _ => false,
        };
        if untyped {
            return entries(map, self.out, |key, value, out| {
                text::key(key, out);
                write_untyped(value, out);
            });
        }
        let start = pending.len();
        pending.extend(map.iter().map(|(key, value)| (0, &**key, Some(value))));
        self.write_pending(start, |writer, (_, key, value)| {
            text::key(key, writer.out);
            if let Some(value) = value {
                writer.value(inner, value);
            }
        });
    }

    /// Writes a struct; without a map, what Go writes when nothing is set.
    fn structure(&mut self, s: &'v Struct, map: Option<&'v Map<String, Value>>, role: Role) {
        self.depth += 1;
        let start = self.pending.len();
        for (key, value) in map.into_iter().flatten() {
            let position = s.position(key);
            let field = position.map(|at| &s.fields()[at]);
            if !value.is_null() && !self.is_left_out(field, value) {
                let position = position.map_or(u16::MAX, |at| at as u16);
                self.pending.push((position, key, Some(value)));
            }
        }
        for (position, field) in s.fields().iter().enumerate() {
            let wanted = field.always || (role == Role::Metadata && &*field.name == VERSION);
            if wanted && map.is_none_or(|map| map.get(&*field.name).is_none_or(Value::is_null)) {
                self.pending.push((position as u16, &field.name, None));
            }
        }
        self.write_pending(start, |writer, (position, key, value)| {
            match s.fields().get(usize::from(position)) {
                Some(field) => writer.field(field, value, role),
                None => {
                    text::key(key, writer.out);
                    write_untyped(value.unwrap_or(&Value::Null), writer.out);
                }
            }
        });
        self.depth -= 1;
    }

    fn is_left_out(&self, field: Option<&Field>, value: &Value) -> bool {
        field.is_some_and(|field| field.is_left_out(self.table, value))
    }

    /// Writes what has been pending since `start` as an object, in order.
    fn write_pending(&mut self, start: usize, mut entry: impl FnMut(&mut Self, Pending<'v>)) {
        self.pending[start..].sort_unstable_by_key(|(position, key, _)| (*position, *key));
        self.out.push(b'{');
        for at in start..self.pending.len() {
            if at > start {
                self.out.push(b',');
            }
            entry(self, self.pending[at]);
        }
        self.out.push(b'}');
        self.pending.truncate(start);
    }

    fn field(&mut self, field: &'v Field, value: Option<&'v Value>, role: Role) {
        text::key(&field.name, self.out);
        let shape = &self.table.get(field.ty).shape;
        match (shape, value) {
            (Shape::Struct(s), None) => self.structure(s, None, self.role_of(field)),
            (Shape::Struct(s), Some(Value::Object(map))) => {
                self.structure(s, Some(map), self.role_of(field));
            }
            (Shape::Scalar(Scalar::String), value)
                if role == Role::Metadata && &*field.name == VERSION =>
            {
                self.version_at = Some(self.out.len() + 1);
                text::string(value.and_then(Value::as_str).unwrap_or_default(), self.out);
            }
            (_, Some(value)) => self.value(field.ty, value),
            (shape, None) => self.out.extend_from_slice(zero(shape)),
        }
    }

    fn role_of(&self, field: &Field) -> Role {
        let name = self.table.get(field.ty).name.as_deref();
        let metadata = self.versioned
            && self.depth == 1
            && &*field.name == "metadata"
            && name.is_some_and(|name| name.ends_with(".ObjectMeta"));
        if metadata {
            Role::Metadata
        } else {
            Role::Other
        }
    }
}

/// What Go writes for a value that was never set: the zero of its type, `null` for what Go has no value for.
fn zero(shape: &Shape) -> &'static [u8] {
    match shape {
        Shape::Scalar(Scalar::String) => b"\"\"",
        Shape::Scalar(Scalar::Bool) => b"false",
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString) => b"0",
        Shape::Scalar(Scalar::Quantity) => b"\"0\"",
        _ => b"null",
    }
}

/// What a struct is in the object that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The metadata of the object, which holds the version.
    Metadata,
    Other,
}

#[cfg(test)]
mod tests;
