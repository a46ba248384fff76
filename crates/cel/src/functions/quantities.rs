//! Resource quantities.

use std::rc::Rc;

use super::super::eval::Evaluator;
use super::super::value::{Evaluated, Value, fail, no_overload};
use super::read;
use crate::quantity::{Format, Quantity, QuantityError};

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match (name, args) {
        ("quantity", [Value::Text(text)]) => made(Quantity::parse(read(eval, text)?)),
        ("isQuantity", [Value::Text(text)]) => {
            Ok(Value::Bool(Quantity::parse(read(eval, text)?).is_ok()))
        }
        (_, [Value::Quantity(quantity), rest @ ..]) => {
            eval.charge(1)?;
            of_quantity(name, quantity, rest)
        }
        _ => no_overload(),
    }
}

fn made<'a>(result: Result<Quantity, QuantityError>) -> Evaluated<'a> {
    match result {
        Ok(quantity) => Ok(Value::Quantity(Rc::new(quantity))),
        Err(error) => fail(error.to_string()),
    }
}

fn of_quantity<'a>(name: &str, quantity: &Quantity, args: &[Value<'a>]) -> Evaluated<'a> {
    let whole = || quantity.value().filter(|_| quantity.is_integer());
    let integer = |value: i64| Quantity::from_integer(value, Format::DecimalSi);
    Ok(match (name, args) {
        ("sign", []) => Value::Int(match (quantity.is_zero(), quantity.is_negative()) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        }),
        ("isInteger", []) => Value::Bool(whole().is_some()),
        ("asInteger", []) => match whole() {
            Some(value) => Value::Int(value),
            None => return fail("cannot convert value to integer"),
        },
        ("asApproximateFloat", []) => Value::Double(quantity.approximate()),
        ("isGreaterThan", [Value::Quantity(other)]) => Value::Bool(quantity > other),
        ("isLessThan", [Value::Quantity(other)]) => Value::Bool(quantity < other),
        ("compareTo", [Value::Quantity(other)]) => Value::Int(quantity.cmp(other) as i64),
        ("add", [Value::Quantity(other)]) => return made(quantity.checked_add(other)),
        ("add", [Value::Int(other)]) => return made(quantity.checked_add(&integer(*other))),
        ("sub", [Value::Quantity(other)]) => return made(quantity.checked_sub(other)),
        ("sub", [Value::Int(other)]) => return made(quantity.checked_sub(&integer(*other))),
        _ => return no_overload(),
    })
}
