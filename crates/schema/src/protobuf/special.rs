//! Types whose protobuf message looks nothing like their JSON.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde_json::Value;

use super::ProtobufError;
use super::envelope::text;
use super::read::{bytes_of, wrong_wire_type};
use super::wire::{Fields, Payload, put_bytes, put_message, put_number};
use crate::decode::{self, Format};
use crate::encode;
use crate::types::{Scalar, Table, TypeId};

/// Package of the types that are part of a CRD's schema.
const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";

/// How a value without a shape lies in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loose {
    /// Any JSON, as text in field 1.
    Json,
    /// A schema in field 1, or schemas in field 2.
    SchemaOrArray,
    /// A boolean in field 1, or a schema in field 2.
    SchemaOrBool,
    /// A schema in field 1, or strings in field 2.
    SchemaOrStrings,
}

impl Loose {
    /// How values of a type lie; nothing when the type is not part of any message.
    pub(super) fn of(table: &Table, ty: TypeId) -> Option<Self> {
        let name = table.get(ty).name.as_deref()?;
        match name.rsplit('.').next()? {
            "JSON" | "RawExtension" | "FieldsV1" => Some(Loose::Json),
            "JSONSchemaPropsOrArray" => Some(Loose::SchemaOrArray),
            "JSONSchemaPropsOrBool" => Some(Loose::SchemaOrBool),
            "JSONSchemaPropsOrStringArray" => Some(Loose::SchemaOrStrings),
            _ => None,
        }
    }
}

/// The type of the schemas in those messages.
pub(super) fn schema(table: &Table) -> Option<TypeId> {
    table.named(&format!("{APIEXTENSIONS}JSONSchemaProps"))
}

/// Where Unix time begins. A date on the calendar, because a `Timestamp` ends a day before the year 9999 does.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// How exactly a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Microseconds,
}

/// A time as JSON has it. `None` when JSON cannot.
fn time_text(seconds: i64, nanoseconds: i32, precision: Precision) -> Option<String> {
    let since = match precision {
        Precision::Seconds => SignedDuration::from_secs(seconds),
        Precision::Microseconds => {
            let seconds = SignedDuration::from_secs(seconds);
            seconds.checked_add(SignedDuration::from_nanos(nanoseconds.into()))?
        }
    };
    let at = EPOCH.checked_add(since).ok().filter(|at| at.year() >= 0)?;
    Some(match precision {
        Precision::Seconds => format!("{at}Z"),
        Precision::Microseconds => format!("{at:.6}Z"),
    })
}

/// Seconds and nanoseconds of a time in JSON; the latter count forward.
fn time_parts(value: &Value) -> Option<(i64, i32)> {
    // Times are in UTC here: they were written so when they were read.
    let at: DateTime = value.as_str()?.strip_suffix('Z')?.parse().ok()?;
    let since = at.duration_since(EPOCH);
    let (seconds, nanoseconds) = (since.as_secs(), since.subsec_nanos());
    Some(if nanoseconds < 0 {
        (seconds - 1, nanoseconds + 1_000_000_000)
    } else {
        (seconds, nanoseconds)
    })
}

/// A number as it would have been read from JSON, where a whole number has no fraction.
pub(super) fn double(value: f64) -> Result<Value, ProtobufError> {
    if value.fract() == 0.0 && value.abs() < i64::MAX as f64 {
        return Ok(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value)
        .map(Value::Number)
        .ok_or(ProtobufError::Unrepresentable(
            "json: unsupported value: not a finite number",
        ))
}

pub(super) fn json(message: &[u8]) -> Result<Option<Value>, ProtobufError> {
    let raw = first_bytes(message)?.unwrap_or_default();
    if raw.is_empty() {
        return Ok(None);
    }
    let parsed = decode::parse(raw, Format::Json).map_err(ProtobufError::Json)?;
    Ok(Some(parsed.value).filter(|value| !value.is_null()))
}

pub(super) fn quantity(message: &[u8]) -> Result<Value, ProtobufError> {
    let quantity = first_bytes(message)?.map_or_else(|| "0".to_owned(), text);
    Ok(Value::String(quantity))
}

pub(super) fn int_or_string(message: &[u8]) -> Result<Value, ProtobufError> {
    let (mut kind, mut number, mut string) = (0, 0, String::new());
    let mut fields = Fields::new(message);
    while let Some((field, payload)) = fields.next()? {
        match (field, payload) {
            (1, Payload::Varint(value)) => kind = value,
            (2, Payload::Varint(value)) => number = value as i32,
            (3, Payload::Bytes(bytes)) => string = text(bytes),
            (1..=3, _) => return Err(wrong_wire_type(payload, "IntOrString")),
            _ => {}
        }
    }
    match kind {
        0 => Ok(Value::from(number)),
        1 => Ok(Value::String(string)),
        _ => Err(ProtobufError::Unrepresentable(
            "impossible IntOrString.Type",
        )),
    }
}

pub(super) fn time(message: &[u8], precision: Precision) -> Result<Option<Value>, ProtobufError> {
    if message.is_empty() {
        return Ok(None);
    }
    let (mut seconds, mut nanoseconds) = (0, 0);
    let mut fields = Fields::new(message);
    while let Some((field, payload)) = fields.next()? {
        match (field, payload) {
            (1, Payload::Varint(value)) => seconds = value as i64,
            (2, Payload::Varint(value)) => nanoseconds = value as i32,
            (1 | 2, _) => return Err(wrong_wire_type(payload, "Time")),
            _ => {}
        }
    }
    time_text(seconds, nanoseconds, precision)
        .map(|text| Some(Value::String(text)))
        .ok_or(ProtobufError::Unrepresentable(
            "Time.MarshalJSON: year outside of range [0,9999]",
        ))
}

/// The bytes in field 1 of a message.
fn first_bytes(message: &[u8]) -> Result<Option<&[u8]>, ProtobufError> {
    let mut found = None;
    let mut fields = Fields::new(message);
    while let Some((number, payload)) = fields.next()? {
        if number == 1 {
            found = Some(bytes_of(payload, "Raw")?);
        }
    }
    Ok(found)
}

/// Any JSON, as text in a message.
pub(super) fn put_json(number: u32, value: &Value, out: &mut Vec<u8>) {
    put_message(number, out, |out| {
        let mut json = Vec::new();
        encode::write_untyped(value, &mut json);
        put_bytes(1, &json, out);
    });
}

pub(super) fn put_int_or_string(number: u32, value: &Value, out: &mut Vec<u8>) {
    put_message(number, out, |out| match value {
        Value::String(text) => {
            put_number(1, 1, out);
            put_number(2, 0, out);
            put_bytes(3, text.as_bytes(), out);
        }
        value => {
            put_number(1, 0, out);
            put_number(2, value.as_i64().unwrap_or_default() as u64, out);
            put_bytes(3, b"", out);
        }
    });
}

/// A time that is not set is a message of no length, so the epoch is written out.
pub(super) fn put_time(number: u32, scalar: Scalar, value: &Value, out: &mut Vec<u8>) {
    let Some((seconds, nanoseconds)) = time_parts(value) else {
        return;
    };
    let nanoseconds = match scalar {
        Scalar::MicroTime => nanoseconds / 1000 * 1000,
        _ => 0,
    };
    put_message(number, out, |out| {
        put_number(1, seconds as u64, out);
        put_number(2, nanoseconds as u64, out);
    });
}
