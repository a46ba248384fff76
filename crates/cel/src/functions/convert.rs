//! Conversions between types.

use super::super::eval::Evaluator;
use super::super::time::{self, Moment};
use super::super::value::{EvalError, Evaluated, Value, fail, no_overload};
use super::read;

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    let [value] = args else {
        return no_overload();
    };
    eval.charge(1)?;
    match name {
        "dyn" => Ok(value.clone()),
        "type" => Ok(Value::Type(value.type_name())),
        "bool" => boolean(value),
        "bytes" => bytes(eval, value),
        "double" => double(value),
        "int" => int(value).map(Value::Int),
        "uint" => uint(value).map(Value::Uint),
        "string" => string(eval, value),
        "timestamp" => match value {
            Value::Timestamp(_) => Ok(value.clone()),
            Value::Int(seconds) => Moment::from_seconds(*seconds).map(Value::Timestamp),
            Value::Text(text) => time::timestamp(text).map(Value::Timestamp),
            _ => no_overload(),
        },
        _ => match value {
            Value::Duration(_) => Ok(value.clone()),
            Value::Int(nanoseconds) => Ok(Value::Duration(*nanoseconds)),
            Value::Text(text) => time::duration(text).map(Value::Duration),
            _ => no_overload(),
        },
    }
}

fn boolean<'a>(value: &Value<'a>) -> Evaluated<'a> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        Value::Text(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => fail("type conversion error from 'string' to 'bool'"),
        },
        _ => no_overload(),
    }
}

fn bytes<'a>(eval: &mut Evaluator<'a>, value: &Value<'a>) -> Evaluated<'a> {
    match value {
        Value::Bytes(_) => Ok(value.clone()),
        Value::Text(text) => Ok(Value::Bytes(read(eval, text)?.as_bytes().into())),
        _ => no_overload(),
    }
}

fn double<'a>(value: &Value<'a>) -> Evaluated<'a> {
    Ok(Value::Double(match value {
        Value::Double(value) => *value,
        Value::Int(value) => *value as f64,
        Value::Uint(value) => *value as f64,
        Value::Text(text) => match text.parse() {
            Ok(value) => value,
            Err(_) => return fail("type conversion error from 'string' to 'double'"),
        },
        _ => return no_overload(),
    }))
}

fn int(value: &Value<'_>) -> Result<i64, EvalError> {
    let overflow = || fail("integer overflow");
    match value {
        Value::Int(value) => Ok(*value),
        Value::Uint(value) => i64::try_from(*value).or_else(|_| overflow()),
        Value::Double(value) if value.abs() < 9.223_372_036_854_775e18 => Ok(*value as i64),
        Value::Double(_) => overflow(),
        Value::Timestamp(time) => Ok(time.seconds()),
        Value::Duration(nanoseconds) => Ok(*nanoseconds),
        Value::Text(text) => match text.parse() {
            Ok(value) => Ok(value),
            Err(_) => fail("type conversion error from 'string' to 'int'"),
        },
        _ => no_overload(),
    }
}

fn uint(value: &Value<'_>) -> Result<u64, EvalError> {
    let overflow = || fail("unsigned integer overflow");
    match value {
        Value::Uint(value) => Ok(*value),
        Value::Int(value) => u64::try_from(*value).or_else(|_| overflow()),
        Value::Double(value) if *value > -1.0 && *value < 1.844_674_407_370_955e19 => {
            Ok(*value as u64)
        }
        Value::Double(_) => overflow(),
        Value::Text(text) => match text.parse() {
            Ok(value) => Ok(value),
            Err(_) => fail("type conversion error from 'string' to 'uint'"),
        },
        _ => no_overload(),
    }
}

fn string<'a>(eval: &mut Evaluator<'a>, value: &Value<'a>) -> Evaluated<'a> {
    Ok(Value::text(match value {
        Value::Text(_) => return Ok(value.clone()),
        Value::Bytes(bytes) => {
            eval.charge(super::super::cost::traversal(bytes.len() as u64))?;
            match std::str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => return fail("invalid UTF-8 in bytes, cannot convert to string"),
            }
        }
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_double(*value),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanoseconds) => time::write_duration(*nanoseconds),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        _ => return no_overload(),
    }))
}

/// A double as Go writes it with `%g`.
pub(super) fn go_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}
