//! Lists and sets.

use std::cmp::Ordering;

use super::super::declaration::Form;
use super::super::equal::{compare, contains, equal};
use super::super::eval::Evaluator;
use super::super::value::{EvalError, Evaluated, List, Value, fail, no_overload};
use super::operators;

/// Longest list that `lists.range` makes.
const MAX_RANGE: i64 = 1_000_000;

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match (name, args) {
        ("lists.range", [Value::Int(count)]) => range(eval, *count),
        ("includes", [Value::List(list), value]) => {
            eval.charge(list.len() as u64)?;
            contains(eval, list, value).map(Value::Bool)
        }
        // Whatever is not a list includes what it equals (lists.go: `includes`).
        ("includes", [target, value]) => {
            eval.charge(1)?;
            equal(eval, target, value).map(Value::Bool)
        }
        (_, [Value::List(list)]) => of_list(eval, name, list),
        ("slice", [Value::List(list), Value::Int(from), Value::Int(to)]) => {
            slice(eval, list, *from, *to)
        }
        ("flatten", [Value::List(list), Value::Int(depth)]) => {
            if *depth < 0 {
                return fail("flatten depth must be non-negative");
            }
            flatten(eval, list, *depth)
        }
        ("indexOf" | "lastIndexOf", [Value::List(list), value]) => {
            position(eval, name, list, value)
        }
        (_, [Value::List(a), Value::List(b)]) => sets(eval, name, a, b).map(Value::Bool),
        _ => no_overload(),
    }
}

fn of_list<'a>(eval: &mut Evaluator<'a>, name: &str, list: &List<'a>) -> Evaluated<'a> {
    if matches!(name, "first" | "last") {
        eval.charge(1)?;
        let at = if name == "first" {
            0
        } else {
            list.len().saturating_sub(1)
        };
        return Ok(match list.len() {
            0 => Value::Optional(None),
            _ => Value::some(list.at(at)?),
        });
    }
    eval.charge(list.len() as u64)?;
    match name {
        "isSorted" => sorted(eval, list).map(Value::Bool),
        "sum" => sum(eval, list),
        "min" => extreme(eval, list, Ordering::Less),
        "max" => extreme(eval, list, Ordering::Greater),
        "flatten" => flatten(eval, list, 1),
        "distinct" => distinct(eval, list),
        "reverse" => {
            let mut items = list.items().collect::<Result<Vec<_>, _>>()?;
            items.reverse();
            Ok(Value::list(items))
        }
        "sort" => sort(eval, list),
        _ => no_overload(),
    }
}

/// Compares two items, and charges for texts in them.
fn ordered<'a>(
    eval: &mut Evaluator<'a>,
    a: &Value<'a>,
    b: &Value<'a>,
) -> Result<Ordering, EvalError> {
    eval.work(a.size().min(b.size()) / 10)?;
    Ok(compare(a, b)?.unwrap_or(Ordering::Equal))
}

fn sorted<'a>(eval: &mut Evaluator<'a>, list: &List<'a>) -> Result<bool, EvalError> {
    let mut before: Option<Value<'a>> = None;
    for item in list.items() {
        let item = item?;
        if let Some(before) = &before
            && ordered(eval, before, &item)?.is_gt()
        {
            return Ok(false);
        }
        before = Some(item);
    }
    Ok(true)
}

fn sum<'a>(eval: &mut Evaluator<'a>, list: &List<'a>) -> Evaluated<'a> {
    let mut total: Option<Value<'a>> = None;
    for item in list.items() {
        let item = item?;
        total = Some(match total {
            None => item,
            Some(total) => operators::call(eval, "_+_", &[total, item])?,
        });
    }
    Ok(total.unwrap_or_else(|| zero(list)))
}

/// The sum of nothing, of the type that the items would have had. Of lists that were made it is not known; integers
/// compare with all numbers.
fn zero<'a>(list: &List<'a>) -> Value<'a> {
    match list {
        List::Json { item, .. } if matches!(item.form, Form::Duration) => Value::Duration(0),
        List::Json { item, .. } if matches!(item.form, Form::Double) => Value::Double(0.0),
        _ => Value::Int(0),
    }
}

fn extreme<'a>(eval: &mut Evaluator<'a>, list: &List<'a>, wanted: Ordering) -> Evaluated<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list.items() {
        let item = item?;
        best = Some(match best {
            Some(best) if ordered(eval, &item, &best)? != wanted => best,
            _ => item,
        });
    }
    best.map_or_else(
        || {
            let name = if wanted == Ordering::Less {
                "min"
            } else {
                "max"
            };
            fail(format!("{name} called on empty list"))
        },
        Ok,
    )
}

fn sort<'a>(eval: &mut Evaluator<'a>, list: &List<'a>) -> Evaluated<'a> {
    let mut items = list.items().collect::<Result<Vec<_>, _>>()?;
    let count = items.len() as u64;
    eval.work(count * u64::from(count.max(1).ilog2() + 1))?;
    let mut failure = None;
    items.sort_by(|a, b| match compare(a, b) {
        Ok(order) => order.unwrap_or(Ordering::Equal),
        Err(error) => {
            failure = Some(error);
            Ordering::Equal
        }
    });
    failure.map_or_else(|| Ok(Value::list(items)), Err)
}

/// Quadratic, as the charge for every comparison shows.
fn distinct<'a>(eval: &mut Evaluator<'a>, list: &List<'a>) -> Evaluated<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    'items: for item in list.items() {
        let item = item?;
        for other in &kept {
            if equal(eval, other, &item)? {
                continue 'items;
            }
        }
        kept.push(item);
    }
    Ok(Value::list(kept))
}

/// Depth of the data limits the recursion, and expressions cannot build deep lists.
fn flatten<'a>(eval: &mut Evaluator<'a>, list: &List<'a>, depth: i64) -> Evaluated<'a> {
    let mut flat = Vec::new();
    flatten_into(eval, list, depth.min(64), &mut flat)?;
    Ok(Value::list(flat))
}

fn flatten_into<'a>(
    eval: &mut Evaluator<'a>,
    list: &List<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
) -> Result<(), EvalError> {
    eval.work(list.len() as u64)?;
    for item in list.items() {
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(eval, &inner, depth - 1, flat)?,
            other => flat.push(other),
        }
    }
    Ok(())
}

fn slice<'a>(eval: &mut Evaluator<'a>, list: &List<'a>, from: i64, to: i64) -> Evaluated<'a> {
    eval.charge(1)?;
    if from < 0 || to < 0 {
        return fail(format!(
            "cannot slice({from}, {to}), negative indexes not supported"
        ));
    }
    if from > to {
        return fail(format!(
            "cannot slice({from}, {to}), start index must be less than or equal to end index"
        ));
    }
    let size = list.len() as i64;
    if to > size {
        return fail(format!("cannot slice({from}, {to}), list is length {size}"));
    }
    eval.work((to - from) as u64)?;
    let items = (from..to).map(|at| list.at(at as usize));
    Ok(Value::list(items.collect::<Result<Vec<_>, _>>()?))
}

fn range<'a>(eval: &mut Evaluator<'a>, count: i64) -> Evaluated<'a> {
    eval.charge(1)?;
    if count > MAX_RANGE {
        return Err(EvalError::Budget);
    }
    eval.work(count.max(0) as u64)?;
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn position<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    list: &List<'a>,
    value: &Value<'a>,
) -> Evaluated<'a> {
    eval.charge(list.len() as u64)?;
    let mut found = -1;
    for (at, item) in list.items().enumerate() {
        if equal(eval, &item?, value)? {
            found = at as i64;
            if name == "indexOf" {
                break;
            }
        }
    }
    Ok(Value::Int(found))
}

fn sets<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    a: &List<'a>,
    b: &List<'a>,
) -> Result<bool, EvalError> {
    eval.charge(1)?;
    match name {
        "sets.contains" => superset(eval, a, b),
        "sets.equivalent" => Ok(superset(eval, a, b)? && superset(eval, b, a)?),
        "sets.intersects" => {
            for item in b.items() {
                if contains(eval, a, &item?)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => no_overload(),
    }
}

fn superset<'a>(
    eval: &mut Evaluator<'a>,
    all: &List<'a>,
    some: &List<'a>,
) -> Result<bool, EvalError> {
    for item in some.items() {
        if !contains(eval, all, &item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
