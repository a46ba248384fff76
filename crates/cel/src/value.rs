//! Values of expressions. Data of an object is not copied: lists, maps and strings point into it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value as Json;

use super::authority::{Inquiry, Verdict};
use super::declaration::{Declaration, Object};
use super::functions::network::Cidr;
use super::functions::semver::Semver;
use super::functions::url::Url;
use super::json;
use super::time::Moment;
use super::types::Opaque;
use crate::declaration::ListKind;
use crate::quantity::Quantity;

/// A value, valid as long as the object and the expression it came from.
#[derive(Clone)]
#[non_exhaustive]
pub enum Value<'a> {
    /// The value `null`, as JSON writes it.
    Null,
    /// Either `true` or `false`.
    Bool(bool),
    /// A signed integer of 64 bits.
    Int(i64),
    /// An unsigned integer of 64 bits.
    Uint(u64),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// A text, borrowed or made while evaluating.
    Text(Text<'a>),
    /// A sequence of bytes.
    Bytes(Rc<[u8]>),
    /// A point in time.
    Timestamp(Moment),
    /// A length of time in nanoseconds.
    Duration(i64),
    /// A list, borrowed or made while evaluating.
    List(List<'a>),
    /// A map or an object.
    Map(Map<'a>),
    /// The name of a type.
    Type(&'static str),
    /// A value that may be missing.
    Optional(Option<Rc<Value<'a>>>),
    /// An IP address, made by `ip()`.
    Ip(IpAddr),
    /// A network with its prefix length, made by `cidr()`.
    Cidr(Cidr),
    /// A URL, made by `url()`.
    Url(Rc<Url>),
    /// A resource quantity, made by `quantity()`.
    Quantity(Rc<Quantity>),
    /// A semantic version, made by `semver()`.
    Semver(Rc<Semver>),
    /// The name of a format that texts are validated against.
    Format(&'static str),
    /// A question about access, as far as it has been put together.
    Inquiry(Inquiry<'a>),
    /// The answer to such a question.
    Verdict(Rc<Verdict>),
    /// Data without a type, which can only be compared.
    Hidden(&'a Json),
}

/// A text of an object, or one that was made.
#[derive(Clone)]
pub enum Text<'a> {
    /// Part of the object or of the expression.
    Borrowed(&'a str),
    /// A text that was made while evaluating.
    Made(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Made(text) => text,
        }
    }
}

/// A list of an object, or one that was made.
#[derive(Clone)]
pub enum List<'a> {
    /// Part of the object, with what the schema says of its items.
    Json {
        /// The items.
        items: &'a [Json],
        /// The type of every item.
        item: &'a Declaration,
        /// How items are identified.
        kind: &'a ListKind,
    },
    /// A list that was made while evaluating.
    Made(Rc<[Value<'a>]>),
}

/// A map of an object, or one that was made.
#[derive(Clone)]
pub enum Map<'a> {
    /// Part of the object, all values of one type.
    Json(&'a serde_json::Map<String, Json>, &'a Declaration),
    /// Part of the object, with the fields that the schema declares.
    Object(&'a serde_json::Map<String, Json>, &'a Object),
    /// Made while evaluating; keys with their values.
    Made(Rc<BTreeMap<Key, (Value<'a>, Value<'a>)>>),
    /// Named results of other expressions; one that failed fails whoever uses it.
    Results(Rc<BTreeMap<Box<str>, Evaluated<'a>>>),
}

/// A key of a map. Numbers are equal across their types.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Either `true` or `false`.
    Bool(bool),
    /// A signed or unsigned integer.
    Number(i128),
    /// A text of Unicode characters.
    Text(Rc<str>),
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// Something that cannot be done, such as reading a field that is not there. `||` and `&&` may make up for it.
    #[error("{0}")]
    Failed(String),
    /// The expression costs more than it may.
    #[error("operation cancelled: actual cost limit exceeded")]
    Budget,
}

/// The outcome of evaluating a part of an expression.
pub type Evaluated<'a> = Result<Value<'a>, EvalError>;

/// A failure with this text.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError::Failed(message.into()))
}

/// The failure of a function that does not take values of these types.
pub(crate) fn no_overload<T>() -> Result<T, EvalError> {
    fail("no such overload")
}

impl<'a> Value<'a> {
    /// Data that nothing is known of.
    ///
    /// # Examples
    /// ```
    /// use kubewright_cel::{Expression, Type, Value, Variable};
    ///
    /// let object = serde_json::json!({"spec": {"replicas": 3}});
    /// let rule = Expression::compile("object.spec.replicas > 2", &[Variable::new("object", Type::Dyn)]).unwrap();
    /// let (result, _) = rule.evaluate(vec![("object", Value::dynamic(&object))], 1000);
    /// assert!(matches!(result, Ok(Value::Bool(true))));
    /// ```
    pub fn dynamic(data: &'a Json) -> Self {
        json::dynamic(data)
    }

    /// Results of other expressions by name.
    pub fn results(results: BTreeMap<Box<str>, Evaluated<'a>>) -> Self {
        Value::Map(Map::Results(Rc::new(results)))
    }

    /// The value as JSON.
    ///
    /// # Errors
    /// When it has parts that JSON has no form for.
    pub fn to_json(&self) -> Result<Json, EvalError> {
        json::to_json(self)
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Value::Text(Text::Made(text.into().into()))
    }

    pub(crate) fn list(items: Vec<Value<'a>>) -> Self {
        Value::List(List::Made(items.into()))
    }

    /// An optional value that is there.
    pub fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Rc::new(value)))
    }

    /// The name that `type(x)` gives.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::Text(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::List(_) => "list",
            Value::Map(Map::Object(..)) => "object",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Ip(_) => Opaque::Ip.name(),
            Value::Cidr(_) => Opaque::Cidr.name(),
            Value::Url(_) => Opaque::Url.name(),
            Value::Quantity(_) => Opaque::Quantity.name(),
            Value::Semver(_) => Opaque::Semver.name(),
            Value::Format(_) => Opaque::Format.name(),
            Value::Inquiry(inquiry) => inquiry.stage.name(),
            Value::Verdict(_) => Opaque::Decision.name(),
            Value::Hidden(_) => "unknown",
        }
    }

    /// How large a value is when costs are counted.
    pub(crate) fn size(&self) -> u64 {
        let size = match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            _ => 1,
        };
        size as u64
    }

    /// The key that a value can be in a map.
    pub(crate) fn key(&self) -> Result<Key, EvalError> {
        Ok(match self {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Number(i128::from(*value)),
            Value::Uint(value) => Key::Number(i128::from(*value)),
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 1e19 => {
                Key::Number(*value as i128)
            }
            Value::Text(text) => Key::Text((**text).into()),
            _ => return fail(format!("unsupported key type: {}", self.type_name())),
        })
    }
}

impl<'a> List<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            List::Json { items, .. } => items.len(),
            List::Made(items) => items.len(),
        }
    }

    /// The item at an index below [`List::len`].
    pub(crate) fn at(&self, index: usize) -> Evaluated<'a> {
        match self {
            List::Json { items, item, .. } => json::value(&items[index], item),
            List::Made(items) => Ok(items[index].clone()),
        }
    }

    /// The items, each of which may fail to be what the schema says.
    pub(crate) fn items(&self) -> impl Iterator<Item = Evaluated<'a>> + '_ {
        (0..self.len()).map(|index| self.at(index))
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Json(entries, _) | Map::Object(entries, _) => entries.len(),
            Map::Made(entries) => entries.len(),
            Map::Results(entries) => entries.len(),
        }
    }

    /// The value of a key, or of the field behind an identifier.
    pub(crate) fn get(&self, key: &Key) -> Option<Evaluated<'a>> {
        match (self, key) {
            (Map::Json(entries, value), Key::Text(key)) => {
                entries.get(&**key).map(|found| json::value(found, value))
            }
            (Map::Object(..) | Map::Results(_), Key::Text(key)) => self.field(key),
            (Map::Made(entries), key) => entries.get(key).map(|(_, value)| Ok(value.clone())),
            _ => None,
        }
    }

    /// [`Map::get`] for a name that is known when compiling.
    pub(crate) fn field(&self, name: &str) -> Option<Evaluated<'a>> {
        match self {
            Map::Object(entries, object) => {
                let property = object.field(name)?;
                let found = entries.get(&*property.name)?;
                Some(json::value(found, &property.declaration))
            }
            Map::Json(entries, value) => entries.get(name).map(|found| json::value(found, value)),
            Map::Made(_) => self.get(&Key::Text(name.into())),
            Map::Results(entries) => entries.get(name).cloned(),
        }
    }

    /// The keys with their values, sorted.
    pub(crate) fn entries(&self) -> Vec<(Value<'a>, Evaluated<'a>)> {
        let borrowed = |entries: &'a serde_json::Map<String, Json>| {
            let mut sorted: Vec<(&'a String, &'a Json)> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            sorted
        };
        let text = |key: &'a String| Value::Text(Text::Borrowed(key));
        match self {
            Map::Json(entries, value) => borrowed(entries)
                .into_iter()
                .map(|(key, found)| (text(key), json::value(found, value)))
                .collect(),
            Map::Object(entries, object) => borrowed(entries)
                .into_iter()
                .map(|(key, found)| (text(key), json::field(found, object.named(key))))
                .collect(),
            Map::Made(entries) => entries
                .values()
                .map(|(key, value)| (key.clone(), Ok(value.clone())))
                .collect(),
            Map::Results(entries) => entries
                .iter()
                .map(|(key, value)| (Value::text(&**key), value.clone()))
                .collect(),
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())
    }
}
