//! When values are equal, and which of two comes first.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value as Json;

use super::eval::Evaluator;
use super::value::{EvalError, List, Map, Value, no_overload};
use crate::declaration::ListKind;

/// Whether two values are equal. Values of different kinds are not, except numbers.
pub(crate) fn equal<'a>(
    eval: &mut Evaluator<'a>,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<bool, EvalError> {
    eval.work(1)?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => {
            eval.work(a.len().min(b.len()) as u64 / 16)?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::Ip(a), Value::Ip(b)) => a == b,
        (Value::Cidr(a), Value::Cidr(b)) => a == b,
        (Value::Url(a), Value::Url(b)) => a == b,
        (Value::Quantity(a), Value::Quantity(b)) => a == b,
        (Value::Semver(a), Value::Semver(b)) => a == b,
        (Value::Format(a), Value::Format(b)) => a == b,
        (Value::Hidden(a), Value::Hidden(b)) => {
            eval.work(weight(a, 64) + weight(b, 64))?;
            a == b
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => equal(eval, a, b)?,
            _ => false,
        },
        (Value::List(a), Value::List(b)) => lists(eval, a, b)?,
        (Value::Map(a), Value::Map(b)) => maps(eval, a, b)?,
        _ => numbers(left, right) == Some(Ordering::Equal),
    })
}

/// How much there is to compare in data without a type.
fn weight(json: &Json, depth: u32) -> u64 {
    match json {
        Json::Array(items) if depth > 0 => {
            items.iter().map(|i| weight(i, depth - 1)).sum::<u64>() + 1
        }
        Json::Object(map) if depth > 0 => {
            map.values().map(|i| weight(i, depth - 1)).sum::<u64>() + 1
        }
        Json::String(text) => text.len() as u64 / 16 + 1,
        _ => 1,
    }
}

/// Lists of type `set` and `map` are equal whatever the order of their items.
fn lists<'a>(
    eval: &mut Evaluator<'a>,
    left: &List<'a>,
    right: &List<'a>,
) -> Result<bool, EvalError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    let kind = |list: &List<'a>| match list {
        List::Json { kind, .. } => Some(*kind),
        List::Made(_) => None,
    };
    match kind(left).or_else(|| kind(right)) {
        Some(ListKind::Set) => {
            for item in left.items() {
                if !contains(eval, right, &item?)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Some(ListKind::Map(keys)) => {
            if let (List::Json { items: a, .. }, List::Json { items: b, .. }) = (left, right) {
                return keyed(eval, keys, (left, a), (right, b));
            }
        }
        _ => {}
    }
    for (a, b) in left.items().zip(right.items()) {
        if !equal(eval, &a?, &b?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn keyed<'a>(
    eval: &mut Evaluator<'a>,
    keys: &[Box<str>],
    (left, left_items): (&List<'a>, &'a [Json]),
    (right, right_items): (&List<'a>, &'a [Json]),
) -> Result<bool, EvalError> {
    let key = |item: &Json| -> String {
        let parts: Vec<&Json> = keys.iter().map(|key| &item[&**key]).collect();
        serde_json::to_string(&parts).unwrap_or_default()
    };
    eval.work((left_items.len() + right_items.len()) as u64)?;
    let places: HashMap<String, usize> = right_items
        .iter()
        .enumerate()
        .map(|(at, item)| (key(item), at))
        .collect();
    for (at, item) in left_items.iter().enumerate() {
        let Some(other) = places.get(&key(item)) else {
            return Ok(false);
        };
        if !equal(eval, &left.at(at)?, &right.at(*other)?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps<'a>(eval: &mut Evaluator<'a>, left: &Map<'a>, right: &Map<'a>) -> Result<bool, EvalError> {
    if left.len() != right.len() {
        return Ok(false);
    }
    eval.work(left.len() as u64)?;
    let (left, right) = (left.entries(), right.entries());
    // Both are sorted, and keys that differ make the maps differ.
    for ((left_key, left_value), (right_key, right_value)) in left.into_iter().zip(right) {
        if left_key.key()? != right_key.key()? || !equal(eval, &left_value?, &right_value?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a list has an item that equals a value.
pub(crate) fn contains<'a>(
    eval: &mut Evaluator<'a>,
    list: &List<'a>,
    value: &Value<'a>,
) -> Result<bool, EvalError> {
    for item in list.items() {
        if equal(eval, &item?, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which of two values comes first.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>) -> Result<Option<Ordering>, EvalError> {
    Ok(match (left, right) {
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
        _ => match (number(left), number(right)) {
            (Some(_), Some(_)) => numbers(left, right),
            _ => return no_overload(),
        },
    })
}

fn number(value: &Value<'_>) -> Option<()> {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_)).then_some(())
}

/// Compares numbers across their types, exactly.
fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Ordering> {
    let integer = |value: &Value<'_>| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (left, right) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => with_double(*a, integer(b)?),
        (a, Value::Double(b)) => with_double(*b, integer(a)?).map(Ordering::reverse),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

fn with_double(double: f64, integer: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Outside of this the double is beyond every integer there is.
    if double.abs() >= 1e30 {
        return double.partial_cmp(&0.0);
    }
    let whole = double.floor();
    Some((whole as i128).cmp(&integer).then(if double > whole {
        Ordering::Greater
    } else {
        Ordering::Equal
    }))
}
