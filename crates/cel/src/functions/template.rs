//! `"%s has %d".format([…])`.

use super::super::eval::{Evaluator, MAX_TEXT};
use super::super::time;
use super::super::value::{EvalError, Evaluated, List, Value, fail, no_overload};
use super::convert::go_double;
use super::strings::made;

/// Most digits after the point.
const MAX_PRECISION: usize = 100;

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, args: &[Value<'a>]) -> Evaluated<'a> {
    let [Value::Text(template), Value::List(list)] = args else {
        return no_overload();
    };
    made(eval, template.len())?;
    let mut out = String::new();
    let mut next = 0;
    let mut rest: &str = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (precision, clause, after) = clause(rest)?;
        rest = after;
        let value = argument(list, next)?;
        next += 1;
        write(eval, clause, precision, &value, &mut out)?;
        made(eval, out.len())?;
    }
    out.push_str(rest);
    Ok(Value::text(out))
}

fn argument<'a>(list: &List<'a>, at: usize) -> Evaluated<'a> {
    if at >= list.len() {
        return fail(format!("index {at} out of range"));
    }
    list.at(at)
}

/// The precision and the letter of a clause, and what comes after it.
fn clause(rest: &str) -> Result<(Option<usize>, char, &str), EvalError> {
    let end = || fail("unexpected end of string");
    let (precision, rest) = match rest.strip_prefix('.') {
        None => (None, rest),
        Some(after) => {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let precision = after[..digits].parse().unwrap_or(usize::MAX);
            if digits == 0 || precision > MAX_PRECISION {
                return fail("error while parsing precision: out of range");
            }
            (Some(precision), &after[digits..])
        }
    };
    match rest.chars().next() {
        Some(letter) => Ok((precision, letter, &rest[letter.len_utf8()..])),
        None => end(),
    }
}

fn write<'a>(
    eval: &mut Evaluator<'a>,
    clause: char,
    precision: Option<usize>,
    value: &Value<'a>,
    out: &mut String,
) -> Result<(), EvalError> {
    let wrong = |what: &str| {
        fail(format!(
            "error during formatting: {what} clause can only be used on other types, was given {}",
            value.type_name()
        ))
    };
    let text = match (clause, value) {
        ('s', value) => return write_text(eval, value, out, 0),
        ('d', Value::Int(value)) => value.to_string(),
        ('d', Value::Uint(value)) => value.to_string(),
        ('f', value) => match number(value) {
            Some(number) => format!("{number:.*}", precision.unwrap_or(6)),
            None => return wrong("fixed-point"),
        },
        ('e', value) => match number(value) {
            Some(number) => scientific(number, precision.unwrap_or(6)),
            None => return wrong("scientific"),
        },
        ('b', Value::Bool(value)) => u8::from(*value).to_string(),
        ('b', Value::Int(value)) => radix(*value, |n| format!("{n:b}")),
        ('b', Value::Uint(value)) => format!("{value:b}"),
        ('o', Value::Int(value)) => radix(*value, |n| format!("{n:o}")),
        ('o', Value::Uint(value)) => format!("{value:o}"),
        ('x', Value::Int(value)) => radix(*value, |n| format!("{n:x}")),
        ('X', Value::Int(value)) => radix(*value, |n| format!("{n:X}")),
        ('x', Value::Uint(value)) => format!("{value:x}"),
        ('X', Value::Uint(value)) => format!("{value:X}"),
        ('x' | 'X', Value::Text(text)) => hex(text.as_bytes(), clause),
        ('x' | 'X', Value::Bytes(bytes)) => hex(bytes, clause),
        ('d' | 'b' | 'o' | 'x' | 'X', _) => return wrong("integer"),
        _ => {
            return fail(format!(
                "could not parse formatting clause: unrecognized formatting clause {clause:?}"
            ));
        }
    };
    out.push_str(&text);
    Ok(())
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(*value as f64),
        Value::Uint(value) => Some(*value as f64),
        _ => None,
    }
}

fn radix(value: i64, write: impl Fn(u64) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{}", write(value.unsigned_abs()))
}

fn hex(bytes: &[u8], clause: char) -> String {
    let write = |byte: &u8| {
        if clause == 'x' {
            format!("{byte:02x}")
        } else {
            format!("{byte:02X}")
        }
    };
    bytes.iter().map(write).collect()
}

fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// A value as `%s` writes it; texts inside of lists and maps are quoted.
fn write_text<'a>(
    eval: &mut Evaluator<'a>,
    value: &Value<'a>,
    out: &mut String,
    depth: u32,
) -> Result<(), EvalError> {
    eval.work(1)?;
    if out.len() > MAX_TEXT || depth > 64 {
        return Err(EvalError::Budget);
    }
    match value {
        Value::Text(text) => {
            made(eval, text.len())?;
            let quote = if depth > 0 { "\"" } else { "" };
            out.push_str(quote);
            out.push_str(text);
            out.push_str(quote);
        }
        Value::List(list) => {
            out.push('[');
            for (at, item) in list.items().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_text(eval, &item?, out, depth + 1)?;
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push('{');
            for (at, (key, item)) in map.entries().into_iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_text(eval, &key, out, depth + 1)?;
                out.push_str(": ");
                write_text(eval, &item?, out, depth + 1)?;
            }
            out.push('}');
        }
        other => out.push_str(&scalar(other)?),
    }
    Ok(())
}

fn scalar(value: &Value<'_>) -> Result<String, EvalError> {
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_double(*value),
        Value::Timestamp(time) => time.to_string(),
        Value::Duration(nanoseconds) => time::write_duration(*nanoseconds),
        Value::Type(name) => (*name).to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => {
            return fail(format!(
                "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, \
                 maps, lists, types, durations, and timestamps, was given {}",
                other.type_name()
            ));
        }
    })
}
