//! Checks a value that is already there, such as the result of a patch, against a type.

use serde_json::Value;

use super::context::Context;
use super::{DecodeError, StrictError, scalar};
use crate::go::json_type;
use crate::types::{Form, Outline, Shape, Struct, Table, TypeId};

/// Brings a value into the form that [`decode`](super::decode) would have given it: unknown fields and nulls are
/// dropped, and empty maps and lists that Go would not write, scalars are checked and made canonical. Returns the
/// unknown fields.
///
/// # Errors
/// When a value does not fit its type or is nested too deeply; the value is then partly changed.
pub fn conform(
    table: &Table,
    ty: TypeId,
    value: &mut Value,
) -> Result<Vec<StrictError>, DecodeError> {
    let mut walk = Walk {
        context: Context::new(table),
    };
    if !walk.conform(ty, value) {
        *value = scalar::zero(table, ty);
    }
    walk.context.finish()
}

struct Walk<'t> {
    context: Context<'t>,
}

impl<'t> Walk<'t> {
    /// Conforms a value in place; `false` means that it is not there: `null`, or it does not fit.
    fn conform(&mut self, ty: TypeId, value: &mut Value) -> bool {
        if let (true, Some(outline)) = (
            value.is_object() || value.is_array(),
            Outline::of_value(value),
        ) {
            match self.context.table.form(ty, outline) {
                Form::Free => {}
                Form::Typed(form) => return self.conform_alone(form, value),
                Form::Foreign => {
                    scalar::foreign(&mut self.context, ty);
                    return false;
                }
            }
        }
        let shape = &self.context.table.get(ty).shape;
        match (shape, &mut *value) {
            (_, Value::Array(_) | Value::Object(_)) if !self.context.descend() => return false,
            (Shape::Struct(s), Value::Object(map)) => {
                self.conform_struct(ty, s, map);
            }
            (Shape::Map { value: inner, .. }, Value::Object(map)) => {
                for (key, value) in map.iter_mut() {
                    let mark = self.context.enter_key(key);
                    self.conform_or_zero(*inner, value);
                    self.context.leave(mark);
                }
            }
            (Shape::List(list), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let mark = self.context.enter_item(index);
                    self.conform_or_zero(list.item, item);
                    self.context.leave(mark);
                }
            }
            (Shape::Any, Value::Array(_) | Value::Object(_)) => self.measure(value),
            (_, Value::Array(_) | Value::Object(_)) => {
                scalar::reject(&mut self.context, ty, json_type(value));
                self.context.ascend();
                return false;
            }
            _ => return self.conform_scalar(ty, value),
        }
        self.context.ascend();
        true
    }

    /// A value that Go decodes by itself, and where it does not tell an empty list from none.
    fn conform_alone(&mut self, ty: TypeId, value: &mut Value) -> bool {
        let alone = self.context.enter_alone();
        let fits = self.conform(ty, value);
        self.context.leave_alone(alone);
        fits && *value != Value::Array(Vec::new())
    }

    fn conform_struct(
        &mut self,
        ty: TypeId,
        s: &'t Struct,
        map: &mut serde_json::Map<String, Value>,
    ) {
        map.retain(|key, value| match s.field(key) {
            Some(field) => {
                let mark = self.context.enter_field(ty, &field.name);
                let there = self.conform(field.ty, value);
                let keep = there && !field.is_left_out(self.context.table, value);
                self.context.leave(mark);
                keep
            }
            None if s.preserve_unknown => true,
            None => {
                self.context.unknown(key);
                false
            }
        });
    }

    fn conform_or_zero(&mut self, ty: TypeId, value: &mut Value) {
        if !self.conform(ty, value) {
            *value = scalar::zero(self.context.table, ty);
        }
    }

    fn conform_scalar(&mut self, ty: TypeId, value: &mut Value) -> bool {
        match scalar::accept(&mut self.context, ty, value.take()) {
            Some(accepted) => {
                *value = accepted;
                true
            }
            None => false,
        }
    }

    /// Makes sure that a value without a type is not nested too deeply.
    fn measure(&mut self, value: &Value) {
        let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
            Value::Array(items) => Box::new(items.iter()),
            Value::Object(map) => Box::new(map.values()),
            _ => return,
        };
        inner.all(|value| {
            if !value.is_array() && !value.is_object() {
                return true;
            }
            let deeper = self.context.descend();
            if deeper {
                self.measure(value);
                self.context.ascend();
            }
            deeper
        });
    }
}
