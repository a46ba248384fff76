//! Reads a value as a type of the table, in one pass over the document.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::context::Context;
use super::scalar;
use super::untyped::{KeySeed, UntypedSeed, descend, number};
use crate::types::{Form, Outline, Shape, Struct, TypeId};

/// Reads a value of one type; `None` stands for a value that is not there: `null`, or one that does not fit.
pub(super) struct TypedSeed<'c, 't> {
    context: &'c mut Context<'t>,
    ty: TypeId,
}

impl<'c, 't> TypedSeed<'c, 't> {
    /// Reads the whole document as a type.
    pub(super) fn root(context: &'c mut Context<'t>, ty: TypeId) -> Self {
        Self { context, ty }
    }

    fn shape(&self) -> &'t Shape {
        &self.context.table.get(self.ty).shape
    }

    fn accept(self, value: Value) -> Option<Value> {
        scalar::accept(self.context, self.ty, value)
    }

    fn inner(&mut self, ty: TypeId) -> TypedSeed<'_, 't> {
        TypedSeed {
            context: self.context,
            ty,
        }
    }
}

impl<'de> DeserializeSeed<'de> for TypedSeed<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TypedSeed<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.accept(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        self.visit_unit()
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.accept(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.accept(Value::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.accept(Value::Number(value.into())))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Self::Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        let value = number(value)?;
        Ok(self.accept(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(self.accept(Value::String(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        match self.shape() {
            Shape::List(list) => self.visit_list(list.item, items),
            Shape::Any => self.visit_any_list(items),
            _ => {
                scalar::reject(self.context, self.ty, "array");
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        match self.shape() {
            Shape::Struct(s) => self.visit_struct(s, entries),
            Shape::Map { value, .. } => self.visit_entries(*value, entries),
            Shape::Any => self.visit_any(entries),
            Shape::List(_) | Shape::Scalar(_) => {
                scalar::reject(self.context, self.ty, "object");
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }
    }
}

impl<'t> TypedSeed<'_, 't> {
    fn visit_any<'de, A: MapAccess<'de>>(
        mut self,
        mut entries: A,
    ) -> Result<Option<Value>, A::Error> {
        match self.context.table.form(self.ty, Outline::Object) {
            Form::Free => UntypedSeed::raw(self.context).visit_map(entries).map(Some),
            Form::Typed(object) => {
                let alone = self.context.enter_alone();
                let value = self.inner(object).visit_map(entries);
                self.context.leave_alone(alone);
                value
            }
            Form::Foreign => {
                scalar::foreign(self.context, self.ty);
                while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }
    }

    fn visit_any_list<'de, A: SeqAccess<'de>>(
        mut self,
        mut items: A,
    ) -> Result<Option<Value>, A::Error> {
        match self.context.table.form(self.ty, Outline::Array) {
            Form::Free => UntypedSeed::raw(self.context).visit_seq(items).map(Some),
            Form::Typed(list) => {
                let alone = self.context.enter_alone();
                let value = self.inner(list).visit_seq(items);
                self.context.leave_alone(alone);
                // Go does not tell an empty list from none here.
                value.map(|value| value.filter(|list| *list != Value::Array(Vec::new())))
            }
            Form::Foreign => {
                scalar::foreign(self.context, self.ty);
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(None)
            }
        }
    }

    fn visit_list<'de, A: SeqAccess<'de>>(
        mut self,
        item: TypeId,
        mut items: A,
    ) -> Result<Option<Value>, A::Error> {
        descend(self.context)?;
        let mut list = Vec::new();
        loop {
            let mark = self.context.enter_item(list.len());
            let value = items.next_element_seed(self.inner(item))?;
            self.context.leave(mark);
            match value {
                Some(value) => list.push(value.unwrap_or_else(|| self.zero(item))),
                None => break,
            }
        }
        self.context.ascend();
        Ok(Some(Value::Array(list)))
    }

    fn visit_entries<'de, A: MapAccess<'de>>(
        mut self,
        ty: TypeId,
        mut entries: A,
    ) -> Result<Option<Value>, A::Error> {
        descend(self.context)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(KeySeed)? {
            if map.contains_key(&key) {
                self.context.duplicate(&key);
            }
            let mark = self.context.enter_key(&key);
            let value = entries.next_value_seed(self.inner(ty))?;
            self.context.leave(mark);
            map.insert(key, value.unwrap_or_else(|| self.zero(ty)));
        }
        self.context.ascend();
        Ok(Some(Value::Object(map)))
    }

    fn visit_struct<'de, A: MapAccess<'de>>(
        mut self,
        s: &'t Struct,
        mut entries: A,
    ) -> Result<Option<Value>, A::Error> {
        descend(self.context)?;
        let mut map = Map::new();
        let mut seen = Seen::default();
        while let Some(key) = entries.next_key_seed(FieldSeed(s))? {
            match key {
                Key::Known(position) => {
                    if seen.again(position) {
                        self.context.duplicate(&s.fields()[position].name);
                    }
                    self.visit_field(s, position, &mut map, &mut entries)?;
                }
                Key::Unknown(key) if s.preserve_unknown => {
                    let mark = self.context.enter_key(&key);
                    let seed = UntypedSeed::strict(self.context);
                    let value = entries.next_value_seed(seed)?;
                    self.context.leave(mark);
                    if map.insert(key.clone(), value).is_some() {
                        self.context.duplicate(&key);
                    }
                }
                Key::Unknown(key) => {
                    self.context.unknown(&key);
                    entries.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.context.ascend();
        Ok(Some(Value::Object(map)))
    }

    fn visit_field<'de, A: MapAccess<'de>>(
        &mut self,
        s: &'t Struct,
        position: usize,
        map: &mut Map<String, Value>,
        entries: &mut A,
    ) -> Result<(), A::Error> {
        let field = &s.fields()[position];
        let mark = self.context.enter_field(self.ty, &field.name);
        let value = entries.next_value_seed(self.inner(field.ty))?;
        self.context.leave(mark);
        match value {
            Some(value) if !field.is_left_out(self.context.table, &value) => {
                map.insert(field.name.to_string(), value)
            }
            _ => map.remove(&*field.name),
        };
        Ok(())
    }

    /// What Go has in a list or map where the document says `null`.
    fn zero(&self, ty: TypeId) -> Value {
        scalar::zero(self.context.table, ty)
    }
}

/// Which fields of a struct have been read.
#[derive(Default)]
struct Seen {
    /// One bit for each of the first fields; built-in structs have no more.
    first: u128,
    rest: Vec<usize>,
}

impl Seen {
    /// Notes a field, and says whether it was noted before.
    fn again(&mut self, position: usize) -> bool {
        if position < 128 {
            let bit = 1 << position;
            let again = self.first & bit != 0;
            self.first |= bit;
            again
        } else {
            let again = self.rest.contains(&position);
            self.rest.push(position);
            again
        }
    }
}

enum Key {
    /// Position of the field in its struct.
    Known(usize),
    Unknown(String),
}

/// Reads a key of a struct without keeping its text when the field is known.
struct FieldSeed<'t>(&'t Struct);

impl<'de> DeserializeSeed<'de> for FieldSeed<'_> {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldSeed<'_> {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        Ok(match self.0.position(key) {
            Some(position) => Key::Known(position),
            None => Key::Unknown(key.to_owned()),
        })
    }
}
