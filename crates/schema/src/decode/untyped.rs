//! Reads a value without a type: everything is kept, repeated keys are noticed.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::context::Context;

/// Reads any value.
pub(super) struct UntypedSeed<'c, 't> {
    context: &'c mut Context<'t>,
    /// Repeated keys are reported; they are not inside of values that Go keeps as raw bytes.
    report: bool,
}

impl<'c, 't> UntypedSeed<'c, 't> {
    /// Reports repeated keys.
    pub(super) fn strict(context: &'c mut Context<'t>) -> Self {
        Self {
            context,
            report: true,
        }
    }

    /// Does not care for repeated keys.
    pub(super) fn raw(context: &'c mut Context<'t>) -> Self {
        Self {
            context,
            report: false,
        }
    }

    fn again(&mut self) -> UntypedSeed<'_, 't> {
        UntypedSeed {
            context: self.context,
            report: self.report,
        }
    }
}

impl<'de> DeserializeSeed<'de> for UntypedSeed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UntypedSeed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(untyped_integer(value))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        number(value)
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        descend(self.context)?;
        let mut list = Vec::new();
        loop {
            let mark = self.context.enter_item(list.len());
            let item = items.next_element_seed(self.again())?;
            self.context.leave(mark);
            match item {
                Some(item) => list.push(item),
                None => break,
            }
        }
        self.context.ascend();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        descend(self.context)?;
        let mut map = Map::new();
        while let Some(key) = entries.next_key_seed(KeySeed)? {
            if self.report && map.contains_key(&key) {
                self.context.duplicate(&key);
            }
            let mark = self.context.enter_key(&key);
            let value = entries.next_value_seed(self.again())?;
            self.context.leave(mark);
            map.insert(key, value);
        }
        self.context.ascend();
        Ok(Value::Object(map))
    }
}

/// One level down, or an error that ends the walk; the context remembers why.
pub(super) fn descend<E: Error>(context: &mut Context<'_>) -> Result<(), E> {
    if context.descend() {
        Ok(())
    } else {
        Err(E::custom("exceeded max depth"))
    }
}

/// Go keeps integers of 64 bits with a sign; larger ones become floating-point numbers.
fn untyped_integer(value: u64) -> Value {
    match i64::try_from(value) {
        Ok(value) => Value::Number(value.into()),
        Err(_) => Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
    }
}

/// A floating-point number, which must be finite.
pub(super) fn number<E: Error>(value: f64) -> Result<Value, E> {
    Number::from_f64(value)
        .map(Value::Number)
        .ok_or_else(|| E::custom("number out of range"))
}

/// Reads a key as text. YAML keys that look like numbers or booleans become their text, as they do in Go.
pub(super) struct KeySeed;

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_string(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string key")
    }

    fn visit_str<E>(self, key: &str) -> Result<String, E> {
        Ok(key.to_owned())
    }

    fn visit_string<E>(self, key: String) -> Result<String, E> {
        Ok(key)
    }
}
