//! Arithmetic, comparison, membership and indexing.

use std::cmp::Ordering;

use super::super::cost::traversal;
use super::super::equal::{self, compare, equal};
use super::super::eval::{Evaluator, MAX_TEXT};
use super::super::value::{EvalError, Evaluated, List, Map, Value, fail, no_overload};

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match args {
        [operand] => {
            eval.charge(1)?;
            unary(name, operand)
        }
        [left, right] => match name {
            "_==_" => equality(eval, left, right).map(Value::Bool),
            "_!=_" => equality(eval, left, right).map(|same| Value::Bool(!same)),
            "_<_" | "_<=_" | "_>_" | "_>=_" => ordering(eval, name, left, right),
            "@in" => member(eval, left, right),
            "_[_]" => {
                eval.charge(1)?;
                index(left, right)
            }
            "_[?_]" => {
                eval.charge(1)?;
                optional_index(left, right)
            }
            _ => arithmetic(eval, name, left, right),
        },
        _ => no_overload(),
    }
}

fn unary<'a>(name: &str, operand: &Value<'a>) -> Evaluated<'a> {
    match (name, operand) {
        ("!_", Value::Bool(value)) => Ok(Value::Bool(!value)),
        ("-_", Value::Int(value)) => checked(value.checked_neg()).map(Value::Int),
        ("-_", Value::Double(value)) => Ok(Value::Double(-value)),
        _ => no_overload(),
    }
}

fn checked<T>(result: Option<T>) -> Result<T, EvalError> {
    result.map_or_else(|| fail("integer overflow"), Ok)
}

fn unsigned<T>(result: Option<T>) -> Result<T, EvalError> {
    result.map_or_else(|| fail("unsigned integer overflow"), Ok)
}

/// Charges at least what the API server does for comparing values of these sizes.
fn equality<'a>(
    eval: &mut Evaluator<'a>,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Result<bool, EvalError> {
    let before = eval.spent();
    let same = equal(eval, left, right)?;
    let least = traversal(left.size().min(right.size()));
    eval.charge(least.saturating_sub(eval.spent() - before))?;
    Ok(same)
}

fn ordering<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Evaluated<'a> {
    eval.charge(traversal(left.size().min(right.size())))?;
    let order = compare(left, right)?;
    let holds = |wanted: fn(Ordering) -> bool| order.is_some_and(wanted);
    Ok(Value::Bool(match name {
        "_<_" => holds(Ordering::is_lt),
        "_<=_" => holds(Ordering::is_le),
        "_>_" => holds(Ordering::is_gt),
        _ => holds(Ordering::is_ge),
    }))
}

fn member<'a>(eval: &mut Evaluator<'a>, value: &Value<'a>, range: &Value<'a>) -> Evaluated<'a> {
    match range {
        Value::List(list) => {
            eval.charge(list.len() as u64)?;
            equal::contains(eval, list, value).map(Value::Bool)
        }
        Value::Map(map) => {
            eval.charge(1)?;
            let key = value.key();
            Ok(Value::Bool(key.is_ok_and(|key| map.get(&key).is_some())))
        }
        _ => no_overload(),
    }
}

fn index<'a>(container: &Value<'a>, key: &Value<'a>) -> Evaluated<'a> {
    match container {
        Value::List(list) => {
            let at = list_index(key)?;
            match usize::try_from(at).ok().filter(|at| *at < list.len()) {
                Some(at) => list.at(at),
                None => fail(format!("index out of bounds: {at}")),
            }
        }
        Value::Map(map) => match map.get(&key.key()?) {
            Some(value) => value,
            None => fail(format!("no such key: {}", shown_key(key))),
        },
        Value::Optional(_) => optional_index(container, key),
        _ => no_overload(),
    }
}

fn optional_index<'a>(container: &Value<'a>, key: &Value<'a>) -> Evaluated<'a> {
    let found = match container {
        Value::List(list) => {
            let at = usize::try_from(list_index(key)?).ok();
            at.filter(|at| *at < list.len()).map(|at| list.at(at))
        }
        Value::Map(map) => map.get(&key.key()?),
        Value::Optional(Some(inner)) => return optional_index(inner, key),
        Value::Optional(None) => None,
        _ => return no_overload(),
    };
    Ok(match found {
        Some(value) => Value::some(value?),
        None => Value::Optional(None),
    })
}

fn list_index(key: &Value<'_>) -> Result<i64, EvalError> {
    match key {
        Value::Int(at) => Ok(*at),
        Value::Uint(at) => Ok(i64::try_from(*at).unwrap_or(i64::MAX)),
        Value::Double(at) if at.fract() == 0.0 => Ok(*at as i64),
        other => fail(format!(
            "unsupported index type '{}' in list",
            other.type_name()
        )),
    }
}

fn shown_key(key: &Value<'_>) -> String {
    match key {
        Value::Text(text) => text.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.type_name().to_owned(),
    }
}

fn arithmetic<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Evaluated<'a> {
    match (left, right) {
        (Value::Text(_) | Value::Bytes(_) | Value::List(_), _) => {
            return if name == "_+_" {
                concatenation(eval, left, right)
            } else {
                no_overload()
            };
        }
        _ => eval.charge(1)?,
    }
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => integers(name, *a, *b),
        (Value::Uint(a), Value::Uint(b)) => naturals(name, *a, *b),
        (Value::Double(a), Value::Double(b)) => doubles(name, *a, *b),
        _ => times(name, left, right),
    }
}

fn integers<'a>(name: &str, a: i64, b: i64) -> Evaluated<'a> {
    let result = match name {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return fail("division by zero"),
        "_%_" if b == 0 => return fail("modulus by zero"),
        "_/_" => a.checked_div(b),
        "_%_" => a.checked_rem(b),
        _ => return no_overload(),
    };
    checked(result).map(Value::Int)
}

fn naturals<'a>(name: &str, a: u64, b: u64) -> Evaluated<'a> {
    let result = match name {
        "_+_" => a.checked_add(b),
        "_-_" => a.checked_sub(b),
        "_*_" => a.checked_mul(b),
        "_/_" if b == 0 => return fail("division by zero"),
        "_%_" if b == 0 => return fail("modulus by zero"),
        "_/_" => a.checked_div(b),
        "_%_" => a.checked_rem(b),
        _ => return no_overload(),
    };
    unsigned(result).map(Value::Uint)
}

fn doubles<'a>(name: &str, a: f64, b: f64) -> Evaluated<'a> {
    Ok(Value::Double(match name {
        "_+_" => a + b,
        "_-_" => a - b,
        "_*_" => a * b,
        "_/_" => a / b,
        _ => return no_overload(),
    }))
}

fn times<'a>(name: &str, left: &Value<'a>, right: &Value<'a>) -> Evaluated<'a> {
    let duration = |result: Option<i64>| {
        result.map_or_else(
            || fail("duration overflow"),
            |value| Ok(Value::Duration(value)),
        )
    };
    match (name, left, right) {
        ("_+_", Value::Duration(a), Value::Duration(b)) => duration(a.checked_add(*b)),
        ("_-_", Value::Duration(a), Value::Duration(b)) => duration(a.checked_sub(*b)),
        ("_+_", Value::Timestamp(time), Value::Duration(by))
        | ("_+_", Value::Duration(by), Value::Timestamp(time)) => {
            time.plus(*by).map(Value::Timestamp)
        }
        ("_-_", Value::Timestamp(time), Value::Duration(by)) => {
            time.minus(*by).map(Value::Timestamp)
        }
        ("_-_", Value::Timestamp(a), Value::Timestamp(b)) => a.since(*b).map(Value::Duration),
        _ => no_overload(),
    }
}

fn concatenation<'a>(
    eval: &mut Evaluator<'a>,
    left: &Value<'a>,
    right: &Value<'a>,
) -> Evaluated<'a> {
    let size = left.size().saturating_add(right.size());
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => {
            eval.charge(traversal(size))?;
            if size > MAX_TEXT as u64 {
                return Err(EvalError::Budget);
            }
            Ok(Value::text([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            eval.charge(traversal(size))?;
            if size > MAX_TEXT as u64 {
                return Err(EvalError::Budget);
            }
            Ok(Value::Bytes([&**a, &**b].concat().into()))
        }
        (Value::List(a), Value::List(b)) => {
            eval.charge(1)?;
            eval.work(size)?;
            joined(eval, a, b)
        }
        _ => no_overload(),
    }
}

/// Adding to a set leaves out what it has already; adding to a list of type `map` replaces items with the same keys.
fn joined<'a>(eval: &mut Evaluator<'a>, a: &List<'a>, b: &List<'a>) -> Evaluated<'a> {
    use crate::declaration::ListKind;
    let mut items = a.items().collect::<Result<Vec<_>, _>>()?;
    match a {
        List::Json {
            kind: ListKind::Set,
            ..
        } => {
            for item in b.items() {
                let item = item?;
                if !equal::contains(eval, a, &item)? {
                    items.push(item);
                }
            }
        }
        List::Json {
            kind: ListKind::Map(keys),
            ..
        } => {
            let before = items.len();
            for item in b.items() {
                let item = item?;
                match same_keys(eval, keys, &items[..before], &item)? {
                    Some(at) => items[at] = item,
                    None => items.push(item),
                }
            }
        }
        _ => {
            for item in b.items() {
                items.push(item?);
            }
        }
    }
    Ok(Value::list(items))
}

fn same_keys<'a>(
    eval: &mut Evaluator<'a>,
    keys: &[Box<str>],
    items: &[Value<'a>],
    wanted: &Value<'a>,
) -> Result<Option<usize>, EvalError> {
    let key = |value: &Value<'a>, name: &str| match value {
        Value::Map(Map::Object(entries, _)) => entries.get(name),
        _ => None,
    };
    for (at, item) in items.iter().enumerate() {
        eval.work(keys.len() as u64)?;
        if keys.iter().all(|name| key(item, name) == key(wanted, name)) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}
