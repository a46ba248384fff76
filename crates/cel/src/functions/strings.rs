//! Text: searching, cutting and replacing. Positions count characters, not bytes.

use super::super::cost::{regex, traversal};
use super::super::eval::{Evaluator, MAX_TEXT};
use super::super::value::{EvalError, Evaluated, List, Text, Value, fail, no_overload};
use super::read;

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    match (name, args) {
        ("contains", [Value::Text(text), Value::Text(part)]) => {
            let cost = traversal(text.len() as u64).saturating_mul(traversal(part.len() as u64));
            eval.charge(cost)?;
            Ok(Value::Bool(text.contains(&**part)))
        }
        ("startsWith", [Value::Text(text), Value::Text(part)]) => {
            Ok(Value::Bool(text.starts_with(read(eval, part)?)))
        }
        ("endsWith", [Value::Text(text), Value::Text(part)]) => {
            Ok(Value::Bool(text.ends_with(read(eval, part)?)))
        }
        ("matches", [Value::Text(text), Value::Text(source)]) => {
            eval.charge(regex(text.len() as u64, source.len() as u64))?;
            Ok(Value::Bool(eval.pattern(source)?.is_match(text)))
        }
        ("find" | "findAll", [Value::Text(text), Value::Text(source), limit @ ..]) => {
            find(eval, name, text, source, limit)
        }
        ("join", [Value::List(list), separator @ ..]) => join(eval, list, separator),
        ("strings.quote", [Value::Text(text)]) => Ok(Value::text(quote(read(eval, text)?))),
        ("jsonpatch.escapeKey", [Value::Text(text)]) => {
            let key = read(eval, text)?;
            Ok(Value::text(key.replace('~', "~0").replace('/', "~1")))
        }
        (_, [Value::Text(text), rest @ ..]) => of_text(eval, name, text, rest),
        _ => no_overload(),
    }
}

fn of_text<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    text: &Text<'a>,
    args: &[Value<'a>],
) -> Evaluated<'a> {
    read(eval, text)?;
    match (name, args) {
        ("lowerAscii", []) => Ok(Value::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Value::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Value::text(text.trim())),
        ("charAt", [Value::Int(at)]) => char_at(text, *at),
        ("substring", [Value::Int(from)]) => substring(text, *from, count(text)),
        ("substring", [Value::Int(from), Value::Int(to)]) => substring(text, *from, *to),
        ("indexOf" | "lastIndexOf", [Value::Text(part), from @ ..]) => {
            position(eval, name, text, part, from)
        }
        ("replace", [Value::Text(old), Value::Text(new), limit @ ..]) => {
            replace(eval, text, old, new, limit)
        }
        ("split", [Value::Text(separator), limit @ ..]) => split(eval, text, separator, limit),
        _ => no_overload(),
    }
}

fn count(text: &str) -> i64 {
    text.chars().count() as i64
}

/// The byte offset of a character; the end of the text counts as one.
fn offset(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    let offsets = text.char_indices().map(|(offset, _)| offset);
    offsets.chain([text.len()]).nth(at)
}

fn out_of_range<T>(at: i64) -> Result<T, EvalError> {
    fail(format!("index out of range: {at}"))
}

fn char_at<'a>(text: &str, at: i64) -> Evaluated<'a> {
    match offset(text, at) {
        Some(offset) => Ok(Value::text(
            text[offset..]
                .chars()
                .next()
                .map_or_else(String::new, String::from),
        )),
        None => out_of_range(at),
    }
}

fn substring<'a>(text: &str, from: i64, to: i64) -> Evaluated<'a> {
    if from > to {
        return fail(format!("invalid substring range. start: {from}, end: {to}"));
    }
    match (offset(text, from), offset(text, to)) {
        (Some(from), Some(to)) => Ok(Value::text(&text[from..to])),
        (None, _) => out_of_range(from),
        (_, None) => out_of_range(to),
    }
}

fn position<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    text: &str,
    part: &str,
    from: &[Value<'a>],
) -> Evaluated<'a> {
    eval.work((text.len() as u64).saturating_mul(traversal(part.len() as u64)) / 10)?;
    let from = match from {
        [] => None,
        [Value::Int(from)] => Some(*from),
        _ => return no_overload(),
    };
    let found = if name == "indexOf" {
        let Some(start) = offset(text, from.unwrap_or(0)) else {
            return out_of_range(from.unwrap_or(0));
        };
        text[start..].find(part).map(|at| start + at)
    } else {
        let from = from.unwrap_or_else(|| count(text));
        let Some(start) = offset(text, from) else {
            return out_of_range(from);
        };
        // A part may start at the position and end behind it.
        let end = start.saturating_add(part.len()).min(text.len());
        let end = (end..=text.len()).find(|end| text.is_char_boundary(*end));
        text[..end.unwrap_or(text.len())].rfind(part)
    };
    Ok(Value::Int(found.map_or(-1, |at| count(&text[..at]))))
}

/// How often something may happen: negative for as often as possible.
fn times(limit: &[Value<'_>]) -> Result<Option<usize>, EvalError> {
    match limit {
        [] => Ok(None),
        [Value::Int(limit)] => Ok(usize::try_from(*limit).ok()),
        _ => no_overload(),
    }
}

fn replace<'a>(
    eval: &mut Evaluator<'a>,
    text: &str,
    old: &str,
    new: &str,
    limit: &[Value<'a>],
) -> Evaluated<'a> {
    let matches = if old.is_empty() {
        text.chars().count() + 1
    } else {
        text.matches(old).count()
    };
    let matches = times(limit)?.map_or(matches, |limit| limit.min(matches));
    let size = text.len().saturating_add(matches.saturating_mul(new.len()));
    made(eval, size)?;
    Ok(Value::text(text.replacen(old, new, matches)))
}

/// Charges for a text that is about to be made, and refuses ones that are too large.
pub(super) fn made(eval: &mut Evaluator<'_>, size: usize) -> Result<(), EvalError> {
    eval.charge(traversal(size as u64))?;
    if size > MAX_TEXT {
        return Err(EvalError::Budget);
    }
    Ok(())
}

fn split<'a>(
    eval: &mut Evaluator<'a>,
    text: &str,
    separator: &str,
    limit: &[Value<'a>],
) -> Evaluated<'a> {
    made(eval, text.len())?;
    let part = |part: &str| Value::text(part);
    let limit = times(limit)?;
    if limit == Some(0) {
        return Ok(Value::list(Vec::new()));
    }
    let limit = limit.unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return Ok(Value::list(
            text.splitn(limit, separator).map(part).collect(),
        ));
    }
    let mut parts: Vec<Value<'a>> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == limit {
            break;
        }
        let (head, tail) = rest.split_at(first.len_utf8());
        parts.push(part(head));
        rest = tail;
    }
    if !rest.is_empty() {
        parts.push(part(rest));
    }
    Ok(Value::list(parts))
}

fn join<'a>(eval: &mut Evaluator<'a>, list: &List<'a>, separator: &[Value<'a>]) -> Evaluated<'a> {
    let separator = match separator {
        [] => "",
        [Value::Text(separator)] => separator,
        _ => return no_overload(),
    };
    eval.work(list.len() as u64)?;
    let mut parts = Vec::with_capacity(list.len());
    let mut size = separator.len().saturating_mul(list.len());
    for item in list.items() {
        let Value::Text(text) = item? else {
            return no_overload();
        };
        size = size.saturating_add(text.len());
        parts.push(text);
    }
    made(eval, size.saturating_mul(2))?;
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    Ok(Value::text(parts.join(separator)))
}

fn find<'a>(
    eval: &mut Evaluator<'a>,
    name: &str,
    text: &Text<'a>,
    source: &str,
    limit: &[Value<'a>],
) -> Evaluated<'a> {
    eval.charge(regex(text.len() as u64, source.len() as u64))?;
    let pattern = eval.pattern(source).map_err(|error| match error {
        EvalError::Failed(message) => EvalError::Failed(format!("Illegal regex: {message}")),
        other => other,
    })?;
    let limit = times(limit)?.unwrap_or(usize::MAX);
    if name == "find" {
        let found = pattern.find_all(text, 1);
        return Ok(Value::text(found.first().copied().unwrap_or_default()));
    }
    eval.work(text.len() as u64)?;
    let found = pattern.find_all(text, limit);
    Ok(Value::list(found.into_iter().map(Value::text).collect()))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
