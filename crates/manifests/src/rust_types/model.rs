//! Types of Rust, before they are source.

use super::attribute::Item;

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Text,
    Integer(&'static str),
    Float,
    Boolean,
    IntOrString,
    Condition,
    Any,
    /// An object of unknown fields.
    Object,
    List(Box<Type>),
    Map(Box<Type>),
    /// A struct or an enum of ours.
    Named(String),
}

impl Type {
    /// Whether it is such a type, or has one in it.
    pub(super) fn any(&self, is: fn(&Type) -> bool) -> bool {
        is(self)
            || match self {
                Type::List(inner) | Type::Map(inner) => inner.any(is),
                _ => false,
            }
    }
}

/// A struct.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) marks: Vec<Item>,
    pub(super) fields: Vec<Field>,
    /// Whether it keeps fields that it does not know.
    pub(super) open: bool,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// The name in JSON, where it is not the one that follows from the name.
    pub(super) rename: Option<String>,
    pub(super) description: String,
    pub(super) marks: Vec<Item>,
    pub(super) ty: Type,
    pub(super) optional: bool,
}

/// An enum of texts.
#[derive(Clone, Debug)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) description: String,
    /// Names with the values they stand for; the first is the default.
    pub(super) variants: Vec<(String, String)>,
}

/// A type with a name.
#[derive(Clone, Debug)]
pub(super) enum Definition {
    Struct(Struct),
    Enum(Enum),
}
