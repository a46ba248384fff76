//! Writes values as messages, by the type table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::special::{self, Loose};
use super::wire::{put_bytes, put_double, put_message, put_number};
use crate::decode;
use crate::types::message::{Entry, Message};
use crate::types::{Scalar, Shape, Struct, Table, TypeId};

/// Appends the message of a value of a struct type.
pub(super) fn message(table: &Table, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
    let writer = Writer { table };
    if let (Shape::Struct(s), Value::Object(map)) = (&table.get(ty).shape, value) {
        writer.fields(s, s.message(), map, out);
    }
}

#[derive(Clone, Copy)]
struct Writer<'t> {
    table: &'t Table,
}

impl Writer<'_> {
    fn fields(self, s: &Struct, message: &Message, map: &Map<String, Value>, out: &mut Vec<u8>) {
        for (number, entry) in message.entries() {
            match entry {
                Entry::Field(position) => {
                    let field = &s.fields()[usize::from(*position)];
                    match map.get(&*field.name) {
                        None | Some(Value::Null) => {}
                        Some(value) if s.is_wrapped(*position) && value.is_array() => {
                            self.wrapped(*number, field.ty, value, out);
                        }
                        Some(value) => self.value(*number, field.ty, value, out),
                    }
                }
                Entry::Inlined(inner) => {
                    let start = out.len();
                    if put_message(*number, out, |out| self.fields(s, inner, map, out)) == 0 {
                        out.truncate(start);
                    }
                }
            }
        }
    }

    /// Writes a field: many of it for lists and maps. In a list, `null` is the zero value of its type.
    fn value(self, number: u32, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
        match (&self.table.get(ty).shape, value) {
            (Shape::Struct(_), Value::Object(_)) => {
                put_message(number, out, |out| message(self.table, ty, value, out));
            }
            (Shape::Map { value: inner, .. }, Value::Object(map)) => {
                for entry in map {
                    self.entry(number, entry, *inner, out);
                }
            }
            (Shape::List(list), Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Null => {
                            let zero = decode::zero(self.table, list.item);
                            self.value(number, list.item, &zero, out);
                        }
                        item => self.value(number, list.item, item, out),
                    }
                }
            }
            (Shape::Any, value) => self.loose(number, ty, value, out),
            (Shape::Scalar(scalar), value) => self.scalar(number, *scalar, value, out),
            _ => {}
        }
    }

    fn entry(self, number: u32, entry: (&String, &Value), ty: TypeId, out: &mut Vec<u8>) {
        let (key, value) = entry;
        put_message(number, out, |out| {
            put_bytes(1, key.as_bytes(), out);
            match (&self.table.get(ty).shape, value) {
                // A time that is not set.
                (_, Value::Null) => put_bytes(2, b"", out),
                (Shape::List(_), value) => self.wrapped(2, ty, value, out),
                (_, value) => self.value(2, ty, value, out),
            }
        });
    }

    fn wrapped(self, number: u32, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
        put_message(number, out, |out| self.value(1, ty, value, out));
    }

    fn scalar(self, number: u32, scalar: Scalar, value: &Value, out: &mut Vec<u8>) {
        match (scalar, value) {
            (Scalar::String, Value::String(text)) => put_bytes(number, text.as_bytes(), out),
            (Scalar::Bytes, Value::String(text)) => {
                if let Ok(bytes) = STANDARD.decode(text) {
                    put_bytes(number, &bytes, out);
                }
            }
            (Scalar::Bool, Value::Bool(value)) => put_number(number, (*value).into(), out),
            (Scalar::Int32 | Scalar::Int64, value) => {
                if let Some(value) = value.as_i64() {
                    put_number(number, value as u64, out);
                }
            }
            (Scalar::Double, value) => {
                if let Some(value) = value.as_f64() {
                    put_double(number, value, out);
                }
            }
            (Scalar::Quantity, Value::String(text)) => {
                put_message(number, out, |out| put_bytes(1, text.as_bytes(), out));
            }
            (Scalar::IntOrString, value) => special::put_int_or_string(number, value, out),
            (Scalar::Time | Scalar::MicroTime, value) => {
                special::put_time(number, scalar, value, out)
            }
            _ => {}
        }
    }

    fn loose(self, number: u32, ty: TypeId, value: &Value, out: &mut Vec<u8>) {
        let loose = match Loose::of(self.table, ty) {
            Some(Loose::Json) => return special::put_json(number, value, out),
            Some(loose) => loose,
            None => return,
        };
        let Some(schema) = special::schema(self.table) else {
            return;
        };
        put_message(number, out, |out| match (loose, value) {
            (Loose::SchemaOrBool, Value::Bool(allowed)) => put_number(1, (*allowed).into(), out),
            (Loose::SchemaOrBool, schema_value) => {
                put_number(1, 1, out);
                self.value(2, schema, schema_value, out);
            }
            (_, Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::String(text) => put_bytes(2, text.as_bytes(), out),
                        item => self.value(2, schema, item, out),
                    }
                }
            }
            (_, schema_value) => self.value(1, schema, schema_value, out),
        });
    }
}
