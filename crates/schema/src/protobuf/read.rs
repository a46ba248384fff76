//! Reads messages into values, by the type table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ProtobufError;
use super::envelope::text;
use super::special::{self, Loose, Precision};
use super::wire::{Fields, Payload, varint};
use crate::decode::{self, MAX_DEPTH};
use crate::types::message::{Entry, Message};
use crate::types::{Field, Scalar, Shape, Struct, Table, TypeId};

/// Reads a value of a struct type.
pub(super) fn message(table: &Table, ty: TypeId, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let reader = Reader { table, depth: 0 };
    reader.message(ty, bytes, Map::new()).map(Value::Object)
}

type Object = Map<String, Value>;

/// A reader at some depth of nested messages.
#[derive(Clone, Copy)]
struct Reader<'t> {
    table: &'t Table,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn deeper(self) -> Result<Self, ProtobufError> {
        if self.depth >= MAX_DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        let depth = self.depth + 1;
        Ok(Self { depth, ..self })
    }

    /// Reads a message on top of what is already there: a message that comes in parts is put together.
    fn message(
        self,
        ty: TypeId,
        bytes: &[u8],
        mut object: Object,
    ) -> Result<Object, ProtobufError> {
        if let Shape::Struct(s) = &self.table.get(ty).shape {
            self.fields(s, s.message(), bytes, &mut object)?;
        }
        Ok(object)
    }

    fn fields(
        self,
        s: &'t Struct,
        message: &'t Message,
        bytes: &[u8],
        object: &mut Object,
    ) -> Result<(), ProtobufError> {
        let reader = self.deeper()?;
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match message.get(number) {
                // Newer than this table, or gone from it.
                None => {}
                Some(Entry::Inlined(inner)) => {
                    let bytes = bytes_of(payload, "")?;
                    reader.fields(s, inner, bytes, object)?;
                }
                Some(Entry::Field(position)) => {
                    let field = &s.fields()[usize::from(*position)];
                    reader.field(field, s.is_wrapped(*position), payload, object)?;
                }
            }
        }
        Ok(())
    }

    fn field(
        self,
        field: &Field,
        wrapped: bool,
        payload: Payload<'_>,
        object: &mut Object,
    ) -> Result<(), ProtobufError> {
        let name = &*field.name;
        let value = match &self.table.get(field.ty).shape {
            Shape::Map { value, .. } => {
                let bytes = bytes_of(payload, name)?;
                let map = object.entry(name).or_insert_with(|| Object::new().into());
                let Value::Object(map) = map else {
                    return Ok(());
                };
                return self.map_entry(*value, bytes, name, map);
            }
            Shape::List(_) if wrapped => Some(self.wrapped(field.ty, payload, name)?),
            Shape::List(list) => {
                let items = object
                    .entry(name)
                    .or_insert_with(|| Vec::<Value>::new().into());
                let Value::Array(items) = items else {
                    return Ok(());
                };
                return self.item(list.item, payload, name, items);
            }
            Shape::Struct(_) => {
                let before = match object.remove(name) {
                    Some(Value::Object(before)) => before,
                    _ => Object::new(),
                };
                let bytes = bytes_of(payload, name)?;
                Some(self.message(field.ty, bytes, before)?.into())
            }
            _ => self.value(field.ty, payload, name)?,
        };
        match value {
            Some(value) if !(field.omit_zero && is_zero(&value)) => {
                object.insert(name.to_owned(), value);
            }
            _ => drop(object.remove(name)),
        }
        Ok(())
    }

    /// Adds an item to a list. Numbers may also come many in one field.
    fn item(
        self,
        ty: TypeId,
        payload: Payload<'_>,
        name: &str,
        items: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        let number = matches!(
            self.table.get(ty).shape,
            Shape::Scalar(Scalar::Bool | Scalar::Int32 | Scalar::Int64)
        );
        if let (true, Payload::Bytes(mut rest)) = (number, payload) {
            while !rest.is_empty() {
                let (value, after) = varint(rest)?;
                items.extend(self.value(ty, Payload::Varint(value), name)?);
                rest = after;
            }
            return Ok(());
        }
        let value = self.value(ty, payload, name)?;
        items.push(value.unwrap_or(Value::Null));
        Ok(())
    }

    /// A list in a message of its own.
    fn wrapped(self, ty: TypeId, payload: Payload<'_>, name: &str) -> Result<Value, ProtobufError> {
        let mut items = Vec::new();
        if let Shape::List(list) = &self.table.get(ty).shape {
            let reader = self.deeper()?;
            let mut fields = Fields::new(bytes_of(payload, name)?);
            while let Some((number, payload)) = fields.next()? {
                if number == 1 {
                    reader.item(list.item, payload, name, &mut items)?;
                }
            }
        }
        Ok(items.into())
    }

    fn map_entry(
        self,
        ty: TypeId,
        bytes: &[u8],
        name: &str,
        map: &mut Object,
    ) -> Result<(), ProtobufError> {
        let reader = self.deeper()?;
        let (mut key, mut value) = (String::new(), None);
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match number {
                1 => key = text(bytes_of(payload, name)?),
                2 => value = reader.value(ty, payload, name)?,
                _ => {}
            }
        }
        let value = value.unwrap_or_else(|| decode::zero(self.table, ty));
        map.insert(key, value);
        Ok(())
    }

    /// One value. Nothing when it is there but stands for nothing, as a time of no length does.
    fn value(
        self,
        ty: TypeId,
        payload: Payload<'_>,
        name: &str,
    ) -> Result<Option<Value>, ProtobufError> {
        match &self.table.get(ty).shape {
            Shape::Scalar(scalar) => self.scalar(*scalar, payload, name),
            Shape::Struct(_) => {
                let bytes = bytes_of(payload, name)?;
                Ok(Some(self.message(ty, bytes, Map::new())?.into()))
            }
            // Lists inside maps are always in messages of their own; maps are only fields.
            Shape::List(_) => self.wrapped(ty, payload, name).map(Some),
            Shape::Map { .. } => Ok(None),
            Shape::Any => self.loose(ty, bytes_of(payload, name)?),
        }
    }

    fn scalar(
        self,
        scalar: Scalar,
        payload: Payload<'_>,
        name: &str,
    ) -> Result<Option<Value>, ProtobufError> {
        let value = match (scalar, payload) {
            (Scalar::Bool, Payload::Varint(value)) => Value::Bool(value != 0),
            // Go cuts numbers that are too large, and so does this.
            (Scalar::Int32, Payload::Varint(value)) => Value::from(value as i32),
            (Scalar::Int64, Payload::Varint(value)) => Value::from(value as i64),
            (Scalar::Double, Payload::Fixed64(bits)) => special::double(f64::from_bits(bits))?,
            (Scalar::Bool | Scalar::Int32 | Scalar::Int64 | Scalar::Double, _) => {
                return Err(wrong_wire_type(payload, name));
            }
            (Scalar::String, _) => Value::String(text(bytes_of(payload, name)?)),
            (Scalar::Bytes, _) => Value::String(STANDARD.encode(bytes_of(payload, name)?)),
            (Scalar::Quantity, _) => special::quantity(bytes_of(payload, name)?)?,
            (Scalar::IntOrString, _) => special::int_or_string(bytes_of(payload, name)?)?,
            (Scalar::Time, _) => {
                return special::time(bytes_of(payload, name)?, Precision::Seconds);
            }
            (Scalar::MicroTime, _) => {
                return special::time(bytes_of(payload, name)?, Precision::Microseconds);
            }
        };
        Ok(Some(value))
    }

    /// A value without a shape.
    fn loose(self, ty: TypeId, bytes: &[u8]) -> Result<Option<Value>, ProtobufError> {
        let loose = match Loose::of(self.table, ty) {
            Some(Loose::Json) => return special::json(bytes),
            Some(loose) => loose,
            None => return Ok(None),
        };
        let Some(schema) = special::schema(self.table) else {
            return Ok(None);
        };
        let reader = self.deeper()?;
        let (mut single, mut many, mut allowed) = (None, Vec::new(), false);
        let mut fields = Fields::new(bytes);
        while let Some((number, payload)) = fields.next()? {
            match (loose, number) {
                (Loose::SchemaOrBool, 1) => allowed = matches!(payload, Payload::Varint(1..)),
                (Loose::SchemaOrBool, 2) | (_, 1) => {
                    single = reader.value(schema, payload, "Schema")?;
                }
                (Loose::SchemaOrStrings, 2) => {
                    many.extend(reader.scalar(Scalar::String, payload, "Property")?);
                }
                (_, 2) => many.extend(reader.value(schema, payload, "JSONSchemas")?),
                _ => {}
            }
        }
        Ok(match loose {
            Loose::SchemaOrBool => single.or(Some(Value::Bool(allowed))),
            _ if !many.is_empty() => Some(many.into()),
            _ => single,
        })
    }
}

/// What Go's `omitempty` leaves out.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

pub(super) fn bytes_of<'a>(payload: Payload<'a>, name: &str) -> Result<&'a [u8], ProtobufError> {
    match payload {
        Payload::Bytes(bytes) => Ok(bytes),
        _ => Err(wrong_wire_type(payload, name)),
    }
}

pub(super) fn wrong_wire_type(payload: Payload<'_>, name: &str) -> ProtobufError {
    let mut field = name.to_owned();
    if let Some(first) = field.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    ProtobufError::WrongWireType {
        wire_type: payload.wire_type(),
        field,
    }
}
