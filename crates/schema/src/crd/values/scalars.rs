//! Types, strings, numbers and enums: the rules on single values.

use serde_json::Value;

use super::super::failure::{self, Outcome, invalid, unsupported, wrong_type};
use super::super::numbers::{NumberCheck, is_json_integer};
use super::{Node, Place};
use crate::field::FieldError;
use crate::go::Num;
use crate::rules::{JsonType, Rules};
use kubewright_cel::formats;

/// The JSON type of a value and the number format it is held in.
fn found_type(value: &Value) -> (JsonType, &'static str) {
    match value {
        Value::Bool(_) => (JsonType::Boolean, ""),
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => (JsonType::Integer, "int64"),
            Num::Float(_) => (JsonType::Number, "float64"),
        },
        Value::Array(_) => (JsonType::Array, ""),
        Value::Object(_) => (JsonType::Object, ""),
        Value::String(_) | Value::Null => (JsonType::String, ""),
    }
}

pub(super) fn check_type(place: &Place<'_>, node: Node<'_>) -> Outcome {
    let mut out = Outcome::default();
    match type_error(place, node) {
        Some(error) => out.add(error),
        None => out.matched(),
    }
    out
}

/// A list where a string with a format is declared passes here, as it does in the API server.
fn type_error(place: &Place<'_>, node: Node<'_>) -> Option<FieldError> {
    let types = node.types();
    let expected = || {
        types
            .iter()
            .map(|ty| ty.as_str())
            .collect::<Vec<_>>()
            .join(",")
    };
    if place.value.is_null() {
        let wrong = !types.is_empty() && !node.nullable();
        return wrong.then(|| wrong_type(&place.path, &expected(), "null"));
    }
    let (found, found_format) = found_type(place.value);
    let whole = matches!(place.value, Value::Number(n) if is_json_integer(Num::of(n).as_f64()));
    let compatible = types.contains(&found)
        || found == JsonType::Number && whole && types.contains(&JsonType::Integer)
        || found == JsonType::Integer && types.contains(&JsonType::Number);
    if compatible {
        return None;
    }
    let textual = matches!(place.value, Value::String(_) | Value::Array(_));
    let numeric = types.contains(&JsonType::Number) || types.contains(&JsonType::Integer);
    match node.rules().and_then(|rules| rules.format.as_deref()) {
        Some(format) if !textual => {
            (found_format != format).then(|| wrong_type(&place.path, format, found_format))
        }
        Some(_) if !numeric => None,
        _ => Some(wrong_type(&place.path, &expected(), found.as_str())),
    }
}

pub(super) fn check_scalar(place: &Place<'_>, node: Node<'_>, rules: &Rules, out: &mut Outcome) {
    match place.value {
        Value::String(text) => {
            out.errors.extend(string_error(place, rules, text));
            out.matched();
            let format = rules.format.as_deref();
            let format = format.filter(|f| formats::supported("string", f).is_some());
            if let Some(format) = format {
                if !formats::matches(format, text) {
                    out.add(wrong_type(&place.path, format, text));
                }
                out.matched();
            }
        }
        Value::Number(number) => {
            let check = NumberCheck {
                path: &place.path,
                number: Num::of(number),
                ty: match node.types() {
                    [ty @ (JsonType::Integer | JsonType::Number)] => Some(*ty),
                    _ => None,
                },
                rules,
            };
            out.merge(check.run());
            out.matched();
        }
        _ => {}
    }
}

/// The first rule that a string breaks; the validator stops there.
fn string_error(place: &Place<'_>, rules: &Rules, text: &str) -> Option<FieldError> {
    let path = &place.path;
    let length = text.chars().count() as u64;
    if let Some(max) = rules.max_length.filter(|max| length > *max) {
        return Some(failure::too_long(path, max));
    }
    if let Some(min) = rules.min_length.filter(|min| length < *min) {
        let detail = format!("should be at least {min} chars long");
        return Some(invalid(path, place.value, &detail));
    }
    let pattern = rules.pattern.as_ref()?;
    (!pattern.is_match(text)).then(|| {
        let detail = format!("should match '{}'", pattern.as_str());
        invalid(path, place.value, &detail)
    })
}

pub(super) fn enum_error(place: &Place<'_>, rules: &Rules) -> Option<FieldError> {
    let allowed = rules.one_of_values.as_ref()?;
    (!allowed.iter().any(|value| same(place.value, value)))
        .then(|| unsupported(&place.path, place.value, allowed))
}

/// Equality after conversion to the type of the allowed value: a fraction is cut off for an integer, and null is
/// never an allowed value.
fn same(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) => false,
        (Value::Number(a), Value::Number(b)) => match (Num::of(a), Num::of(b)) {
            (Num::Float(a), Num::Int(b)) => a.trunc() == b as f64,
            (a, b) => a.as_f64() == b.as_f64() || a == b,
        },
        _ => value == allowed,
    }
}
