//! Checks single values against their type and brings them into the form in which they are kept.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use serde_json::{Map, Number, Value};

use super::context::Context;
use super::time::{self, TimeError};
use crate::go::json_type;
use crate::quantity::{self, QuantityError};
use crate::types::{Form, Outline, Scalar, Shape, Table, Type, TypeId};

/// Go's decoder does not look at bits that the last character has too many.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Go's error message for a value that is not a quantity at all.
const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Why a text is not a value of its type, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum ScalarError {
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error(transparent)]
    Time(#[from] TimeError),
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
}

/// Takes a value that is neither an object nor an array. `None` when it is `null` or does not fit; the latter is
/// noted in the context.
pub(super) fn accept(context: &mut Context<'_>, ty: TypeId, value: Value) -> Option<Value> {
    let definition = context.table.get(ty);
    if value.is_null() {
        return definition.nullable.then_some(value);
    }
    match &definition.shape {
        Shape::Scalar(scalar) => accept_scalar(context, ty, *scalar, value),
        Shape::Any => accept_any(context, ty, value),
        Shape::Struct(_) | Shape::Map { .. } | Shape::List(_) => {
            reject(context, ty, json_type(&value));
            None
        }
    }
}

/// Notes that a value of another JSON type stands where a type is wanted.
pub(super) fn reject(context: &mut Context<'_>, ty: TypeId, found: &str) {
    match &context.table.get(ty).shape {
        Shape::Scalar(Scalar::Quantity) => context.fail(NO_QUANTITY.to_owned()),
        Shape::Scalar(Scalar::Time | Scalar::MicroTime) => {
            context.fail(parser_mismatch(found, "string"));
        }
        Shape::Scalar(Scalar::IntOrString) => context.fail(parser_mismatch(found, "int32")),
        _ => {
            let wanted = go_type(context.table, ty);
            context.mismatch(found, &wanted);
        }
    }
}

/// A value that is of any type, or of one of some.
fn accept_any(context: &mut Context<'_>, ty: TypeId, value: Value) -> Option<Value> {
    match context.table.form(ty, Outline::of_value(&value)?) {
        Form::Free => Some(value),
        Form::Typed(form) => accept(context, form, value),
        Form::Foreign => {
            foreign(context, ty);
            None
        }
    }
}

/// Notes that a value is none of what may stand here. Only where a boolean may, Go says so; elsewhere the value is as
/// good as absent.
pub(super) fn foreign(context: &mut Context<'_>, ty: TypeId) {
    if let Form::Typed(_) = context.table.form(ty, Outline::Bool) {
        context.fail("boolean or JSON schema expected".to_owned());
    }
}

fn accept_scalar(
    context: &mut Context<'_>,
    ty: TypeId,
    scalar: Scalar,
    value: Value,
) -> Option<Value> {
    let accepted = match (scalar, value) {
        (Scalar::String, value @ Value::String(_))
        | (Scalar::IntOrString, value @ Value::String(_))
        | (Scalar::Bool, value @ Value::Bool(_))
        | (Scalar::Double, value @ Value::Number(_)) => Ok(value),
        (Scalar::Bytes, Value::String(text)) => bytes(text),
        (Scalar::Quantity, Value::String(text)) => quantity(&text),
        (Scalar::Quantity, Value::Number(number)) => quantity(&number.to_string()),
        (Scalar::Time, Value::String(text)) => time_value(time::seconds(&text)),
        (Scalar::MicroTime, Value::String(text)) => time_value(time::micros(&text)),
        (Scalar::Int64, Value::Number(number)) => {
            return integer(context, ty, number, i64::MIN..=i64::MAX);
        }
        (Scalar::Int32 | Scalar::IntOrString, Value::Number(number)) => {
            return integer(context, ty, number, i32::MIN.into()..=i32::MAX.into());
        }
        (_, value) => {
            reject(context, ty, json_type(&value));
            return None;
        }
    };
    accepted
        .map_err(|error| context.fail(error.to_string()))
        .ok()
}

fn integer(
    context: &mut Context<'_>,
    ty: TypeId,
    number: Number,
    range: std::ops::RangeInclusive<i64>,
) -> Option<Value> {
    match number.as_i64() {
        Some(value) if range.contains(&value) => Some(Value::Number(number)),
        _ => {
            reject(context, ty, &format!("number {number}"));
            None
        }
    }
}

fn quantity(text: &str) -> Result<Value, ScalarError> {
    Ok(Value::String(quantity::canonical(text)?))
}

fn time_value(time: Result<String, TimeError>) -> Result<Value, ScalarError> {
    Ok(Value::String(time?))
}

/// Base64 as it is kept: without line breaks, and with the bits that count.
fn bytes(text: String) -> Result<Value, ScalarError> {
    if STANDARD.decode(&text).is_ok() {
        return Ok(Value::String(text));
    }
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match LENIENT.decode(&joined) {
        Ok(bytes) => Ok(Value::String(STANDARD.encode(bytes))),
        Err(error) => Err(ScalarError::Base64(base64_offset(&error, joined.len()))),
    }
}

fn base64_offset(error: &base64::DecodeError, length: usize) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => {
            *at
        }
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => {
            length / 4 * 4
        }
    }
}

/// Types with a parser of their own decode into a plain Go value first, and do not know the field they are in.
fn parser_mismatch(found: &str, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go value of type {wanted}")
}

/// The zero value of a type, which Go has in a list or map where the document says `null`.
pub(crate) fn zero(table: &Table, ty: TypeId) -> Value {
    let Type {
        shape, nullable, ..
    } = table.get(ty);
    if *nullable {
        return Value::Null;
    }
    match shape {
        Shape::Struct(_) | Shape::Map { .. } => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Any => Value::Null,
        Shape::Scalar(scalar) => match scalar {
            Scalar::String | Scalar::Bytes => Value::String(String::new()),
            Scalar::Bool => Value::Bool(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::Double | Scalar::IntOrString => Value::from(0),
            Scalar::Quantity => Value::from("0"),
            Scalar::Time | Scalar::MicroTime => Value::Null,
        },
    }
}

/// A type as Go prints it: `int32`, `v1.PodSpec`, `map[string]string`, `[]v1.Container`.
fn go_type(table: &Table, ty: TypeId) -> String {
    let definition = table.get(ty);
    match &definition.shape {
        Shape::List(list) => format!("[]{}", go_type(table, list.item)),
        Shape::Map { value, .. } => format!("map[string]{}", go_type(table, *value)),
        Shape::Struct(_) | Shape::Any => definition
            .name
            .as_deref()
            .map_or_else(|| "map[string]interface {}".to_owned(), go_name),
        Shape::Scalar(scalar) => match scalar {
            Scalar::String => "string",
            Scalar::Bytes => "[]uint8",
            Scalar::Bool => "bool",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            Scalar::Double => "float64",
            Scalar::Quantity => "resource.Quantity",
            Scalar::IntOrString => "intstr.IntOrString",
            Scalar::Time => "v1.Time",
            Scalar::MicroTime => "v1.MicroTime",
        }
        .to_owned(),
    }
}

/// `v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn go_name(definition: &str) -> String {
    let mut parts = definition.rsplitn(3, '.');
    let name = parts.next().unwrap_or_default();
    let package = parts.next().unwrap_or_default();
    format!("{package}.{name}")
}
