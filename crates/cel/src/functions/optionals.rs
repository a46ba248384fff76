//! Values that may be missing.

use super::super::eval::Evaluator;
use super::super::value::{Evaluated, Value, fail, no_overload};

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    eval.charge(1)?;
    match (name, args) {
        ("optional.of", [value]) => Ok(Value::some(value.clone())),
        ("optional.none", []) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) if is_zero(value) => Ok(Value::Optional(None)),
        ("optional.ofNonZeroValue", [value]) => Ok(Value::some(value.clone())),
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(Some(value))])
        | ("orValue", [Value::Optional(Some(value)), _]) => Ok((**value).clone()),
        ("value", [Value::Optional(None)]) => fail("optional.none() dereference"),
        ("orValue", [Value::Optional(None), other]) => Ok(other.clone()),
        ("or", [value @ Value::Optional(Some(_)), _]) => Ok(value.clone()),
        ("or", [Value::Optional(None), other @ Value::Optional(_)]) => Ok(other.clone()),
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            eval.work(list.len() as u64)?;
            let mut present = Vec::new();
            for item in list.items() {
                match item? {
                    Value::Optional(value) => present.extend(value.map(|value| (*value).clone())),
                    _ => return no_overload(),
                }
            }
            Ok(Value::list(present))
        }
        _ => no_overload(),
    }
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => {
            true
        }
        Value::Double(value) => *value == 0.0,
        Value::Text(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}
