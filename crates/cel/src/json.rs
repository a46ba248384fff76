//! Reads data of objects as the values that their schema declares.

use std::sync::Arc;

use base64::Engine;
use serde_json::Value as Json;

use super::declaration::{DYNAMIC, Declaration, Form};
use super::time;
use super::value::{EvalError, Evaluated, List, Map, Text, Value, fail};
use crate::declaration::ListKind;

/// The value of JSON with this declaration. Data that does not fit its schema is reported when it is used.
pub(crate) fn value<'a>(json: &'a Json, declaration: &'a Declaration) -> Evaluated<'a> {
    if json.is_null() && !matches!(declaration.form, Form::Hidden) {
        return if declaration.nullable {
            Ok(Value::Null)
        } else {
            fail("invalid data, got null for schema with nullable=false")
        };
    }
    let value = match (&declaration.form, json) {
        (Form::Hidden, _) => Value::Hidden(json),
        (Form::Dynamic, _) => dynamic(json),
        (Form::IntOrString, Json::String(text)) => Value::Text(Text::Borrowed(text)),
        (Form::IntOrString | Form::Int, Json::Number(number)) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => return mismatch(&declaration.form, json),
        },
        (Form::Bool, Json::Bool(value)) => Value::Bool(*value),
        (Form::Double, Json::Number(number)) => match number.as_f64() {
            Some(number) => Value::Double(number),
            None => return mismatch(&declaration.form, json),
        },
        (Form::List { item, kind }, Json::Array(items)) => {
            Value::List(List::Json { items, item, kind })
        }
        (Form::Map(value), Json::Object(entries)) => Value::Map(Map::Json(entries, value)),
        (Form::Object(object), Json::Object(entries)) => Value::Map(Map::Object(entries, object)),
        (form, Json::String(text)) => return string(form, text, json),
        (form, _) => return mismatch(form, json),
    };
    Ok(value)
}

/// The value of JSON that nothing is known of: numbers are integers where they can be.
pub(crate) fn dynamic(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Json {
            items,
            item: &DYNAMIC,
            kind: &ListKind::Atomic,
        }),
        Json::Object(entries) => Value::Map(Map::Json(entries, &DYNAMIC)),
    }
}

/// The JSON that a value is written as.
pub(crate) fn to_json(value: &Value<'_>) -> Result<Json, EvalError> {
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::from(*value),
        Value::Int(value) => Json::from(*value),
        Value::Uint(value) => Json::from(*value),
        Value::Double(value) => Json::from(*value),
        Value::Text(text) => Json::from(&**text),
        Value::Bytes(bytes) => Json::from(base64::engine::general_purpose::STANDARD.encode(bytes)),
        Value::Optional(Some(inner)) => to_json(inner)?,
        Value::Optional(None) => Json::Null,
        Value::Hidden(json) => (*json).clone(),
        Value::Quantity(quantity) => Json::from(quantity.to_string()),
        Value::Ip(address) => Json::from(address.to_string()),
        Value::List(list) => {
            let items: Result<Vec<Json>, EvalError> =
                list.items().map(|item| to_json(&item?)).collect();
            Json::from(items?)
        }
        Value::Map(map) => {
            let mut members = serde_json::Map::new();
            for (key, value) in map.entries() {
                let Value::Text(key) = key else {
                    return fail("only texts can be names of fields");
                };
                members.insert(key.to_string(), to_json(&value?)?);
            }
            Json::Object(members)
        }
        other => return fail(format!("a {} cannot be written as JSON", other.type_name())),
    })
}

/// The value of a property that the schema may not know.
pub(crate) fn field<'a>(
    json: &'a Json,
    declaration: Option<&'a Arc<Declaration>>,
) -> Evaluated<'a> {
    match declaration {
        Some(declaration) => value(json, declaration),
        None => Ok(Value::Hidden(json)),
    }
}

fn string<'a>(form: &Form, text: &'a str, json: &Json) -> Evaluated<'a> {
    match form {
        Form::String => Ok(Value::Text(Text::Borrowed(text))),
        Form::Bytes => match base64::engine::general_purpose::STANDARD.decode(text) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(error) => fail(format!("Invalid byte formatted string {text}: {error}")),
        },
        Form::Duration => match time::duration_of_format(text) {
            Some(duration) => Ok(Value::Duration(duration)),
            None => fail(format!("Invalid duration {text}")),
        },
        Form::Date => match time::date(text) {
            Some(date) => Ok(Value::Timestamp(date)),
            None => fail(format!("Invalid date formatted string {text}")),
        },
        Form::DateTime => match time::date_time(text) {
            Some(time) => Ok(Value::Timestamp(time)),
            None => fail(format!("Invalid date-time formatted string {text}")),
        },
        other => mismatch(other, json),
    }
}

fn mismatch<T>(form: &Form, json: &Json) -> Result<T, EvalError> {
    let expected = match form {
        Form::Object(_) | Form::Map(_) => {
            return fail("invalid data, expected a map for the provided schema with type=object");
        }
        Form::List { .. } => {
            return fail("invalid data, expected an array for the provided schema with type=array");
        }
        Form::IntOrString => {
            return fail(
                "invalid data, expected XIntOrString value to be either a string or integer",
            );
        }
        Form::Bool => "bool",
        Form::Int => "int",
        Form::Double => "float",
        _ => "string",
    };
    fail(format!(
        "invalid data, expected {expected}, got {}",
        go_type(json)
    ))
}

/// The type that Go holds JSON in.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float64",
        Json::Number(_) => "int64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
