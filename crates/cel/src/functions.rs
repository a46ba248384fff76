//! What functions and operators do, by name and by the values they are called with.
//!
//! The checker has seen to names and types as far as they are known; what is left for dynamic values fails with
//! `no such overload`.

mod authority;
mod convert;
mod formats;
mod lists;
pub(crate) mod network;
mod operators;
mod optionals;
mod quantities;
pub(crate) mod semver;
mod strings;
mod template;
pub(crate) mod url;

use super::cost::traversal;
use super::eval::Evaluator;
use super::time;
use super::value::{Evaluated, Text, Value, no_overload};

/// Calls a function; the target of a method is its first argument.
pub(crate) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match name {
        "!_" | "-_" | "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "_==_" | "_!=_" | "_<_" | "_<=_"
        | "_>_" | "_>=_" | "@in" | "_[_]" | "_[?_]" => operators::call(eval, name, args),
        "size" => size(eval, args),
        "type" | "dyn" | "bool" | "bytes" | "double" | "int" | "uint" | "string" | "timestamp"
        | "duration" => convert::call(eval, name, args),
        "indexOf" | "lastIndexOf" if matches!(args.first(), Some(Value::List(_))) => {
            lists::call(eval, name, args)
        }
        "includes" | "isSorted" | "sum" | "min" | "max" | "slice" | "flatten" | "distinct"
        | "reverse" | "first" | "last" | "sort" | "lists.range" | "sets.contains"
        | "sets.equivalent" | "sets.intersects" => lists::call(eval, name, args),
        _ if name.starts_with("get") => get(eval, name, args),
        _ if name.starts_with("optional.") => optionals::call(eval, name, args),
        "hasValue" | "value" | "or" | "orValue" | "unwrapOpt" => optionals::call(eval, name, args),
        "format" => template::call(eval, args),
        _ if name.starts_with("format.") => formats::call(eval, name, args),
        "validate" => formats::call(eval, name, args),
        "url" | "isURL" => url::call(eval, name, args),
        _ => libraries(eval, name, args),
    }
}

fn libraries<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match (name, args.first()) {
        ("ip" | "isIP" | "ip.isCanonical" | "cidr" | "isCIDR", _)
        | (_, Some(Value::Ip(_) | Value::Cidr(_))) => network::call(eval, name, args),
        ("quantity" | "isQuantity", _) | (_, Some(Value::Quantity(_))) => {
            quantities::call(eval, name, args)
        }
        (_, Some(Value::Inquiry(_) | Value::Verdict(_))) => authority::call(eval, name, args),
        ("semver" | "isSemver", _) | (_, Some(Value::Semver(_))) => semver::call(eval, name, args),
        _ => strings::call(eval, name, args),
    }
}

fn size<'a>(eval: &mut Evaluator<'a>, args: &[Value<'a>]) -> Evaluated<'a> {
    eval.charge(1)?;
    let size = match args {
        [Value::Text(text)] => {
            eval.work(text.len() as u64 / 16)?;
            text.chars().count()
        }
        [Value::Bytes(bytes)] => bytes.len(),
        [Value::List(list)] => list.len(),
        [Value::Map(map)] => map.len(),
        _ => return no_overload(),
    };
    Ok(Value::Int(size as i64))
}

/// `getHours` and the like: parts of times, lengths of time and URLs.
fn get<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    eval.charge(1)?;
    match args {
        [Value::Timestamp(time)] => time::part(name, *time, None).map(Value::Int),
        [Value::Timestamp(time), Value::Text(zone)] => {
            time::part(name, *time, Some(zone)).map(Value::Int)
        }
        [Value::Duration(duration)] => time::duration_part(name, *duration).map(Value::Int),
        [Value::Url(url)] => url.get(name),
        _ => no_overload(),
    }
}

/// Charges for going over a text once, and gives it back.
fn read<'v>(
    eval: &mut Evaluator<'_>,
    text: &'v Text<'_>,
) -> Result<&'v str, super::value::EvalError> {
    eval.charge(traversal(text.len() as u64))?;
    Ok(text)
}

#[cfg(test)]
mod tests;
