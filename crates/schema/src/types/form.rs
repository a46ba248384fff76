//! Types that are one of several: a boolean or a schema, a schema or a list of schemas.

use serde_json::Value;

use super::{Scalar, Shape, Table, TypeId};

/// What a JSON value is at first sight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outline {
    /// A JSON object, whatever its fields.
    Object,
    /// A JSON array, whatever its items.
    Array,
    /// Either `true` or `false`.
    Bool,
    /// A string or a number.
    Single,
}

/// What a value is where the table says [`Shape::Any`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whatever it is: nothing is known.
    Free,
    /// A value of this type.
    Typed(TypeId),
    /// None of what may stand there.
    Foreign,
}

impl Outline {
    /// Of a value; `null` has none.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Null => return None,
            Value::Object(_) => Outline::Object,
            Value::Array(_) => Outline::Array,
            Value::Bool(_) => Outline::Bool,
            Value::String(_) | Value::Number(_) => Outline::Single,
        })
    }

    /// Of the values of a shape, where all have the same.
    fn of(shape: &Shape) -> Option<Self> {
        Some(match shape {
            Shape::Any => return None,
            Shape::Struct(_) | Shape::Map { .. } => Outline::Object,
            Shape::List(_) => Outline::Array,
            Shape::Scalar(Scalar::Bool) => Outline::Bool,
            Shape::Scalar(_) => Outline::Single,
        })
    }
}

impl Table {
    /// What a value is where the table says [`Shape::Any`]: `JSONSchemaPropsOrBool` is a boolean or a
    /// `JSONSchemaProps`, and nothing else.
    pub(crate) fn form(&self, any: TypeId, outline: Outline) -> Form {
        let forms = self.forms(any);
        let fitting = forms
            .iter()
            .find(|form| Outline::of(&self.get(**form).shape) == Some(outline));
        match fitting {
            Some(form) => Form::Typed(*form),
            None if forms.is_empty() => Form::Free,
            None => Form::Foreign,
        }
    }

    /// The types that values of a type of shape [`Shape::Any`] have; none when they have whatever type.
    pub(crate) fn forms(&self, any: TypeId) -> &[TypeId] {
        let found = self.forms.iter().find(|(ty, _)| *ty == any);
        found.map_or(&[], |(_, forms)| forms)
    }

    pub(crate) fn set_forms(&mut self, any: TypeId, forms: Vec<TypeId>) {
        self.forms.push((any, forms));
    }
}
