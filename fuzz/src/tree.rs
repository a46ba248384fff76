//! Changes inputs that are JSON and leaves them JSON.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Map, Value, json};

use crate::corpus::Corpus;

/// Changes one value somewhere in a document, if the input is one.
pub(crate) fn change(input: &[u8], corpus: &Corpus, random: &mut StdRng) -> Option<Vec<u8>> {
    let mut document: Value = serde_json::from_slice(input).ok()?;
    let count = count(&document);
    let target = nth(&mut document, &mut random.random_range(0..count))?;
    match random.random_range(0..6) {
        0 => *target = interesting(random),
        1 => *target = graft(corpus, random)?,
        2 => drop_one(target, random),
        3 => add_one(target, corpus, random),
        4 => *target = nest(target.take(), random),
        _ => double(target, random),
    }
    serde_json::to_vec(&document).ok()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// The value that is reached after so many others.
fn nth<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, left)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, left)),
        _ => None,
    }
}

fn interesting(random: &mut StdRng) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(-1e300),
        json!(""),
        json!("a"),
        json!("\u{0}"),
        json!("\u{10ffff}"),
        json!("a".repeat(300)),
        json!("A_b.C"),
        json!("a/b"),
        json!("1Gi"),
        json!("-5m"),
        json!("1e100"),
        json!("50%"),
        json!("10s"),
        json!("2024-02-30T25:61:61Z"),
        json!("0001-01-01T00:00:00Z"),
        json!("::1"),
        json!("10.0.0.0/33"),
        json!("*/5 * * * *"),
        json!([]),
        json!({}),
        json!([null]),
        json!([{}]),
        json!({"": null}),
        json!("Always"),
        json!("default"),
        json!("v1"),
    ];
    values.choose(random).cloned().unwrap_or_default()
}

/// A value from anywhere in another input.
fn graft(corpus: &Corpus, random: &mut StdRng) -> Option<Value> {
    let mut other: Value = serde_json::from_slice(corpus.pick(random)).ok()?;
    let count = count(&other);
    nth(&mut other, &mut random.random_range(0..count)).map(Value::take)
}

fn drop_one(target: &mut Value, random: &mut StdRng) {
    match target {
        Value::Array(items) if !items.is_empty() => {
            items.remove(random.random_range(0..items.len()));
        }
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            if let Some(name) = names.choose(random) {
                fields.remove(name);
            }
        }
        other => *other = Value::Null,
    }
}

fn add_one(target: &mut Value, corpus: &Corpus, random: &mut StdRng) {
    let value = graft(corpus, random).unwrap_or_else(|| interesting(random));
    match target {
        Value::Array(items) => items.push(value),
        Value::Object(fields) => {
            let name = graft(corpus, random);
            let name = name.as_ref().and_then(Value::as_str).unwrap_or("x");
            fields.insert(name.to_owned(), value);
        }
        other => *other = value,
    }
}

/// Wraps a value in many lists and objects.
fn nest(mut value: Value, random: &mut StdRng) -> Value {
    for _ in 0..1 << random.random_range(0..8) {
        value = if random.random_bool(0.5) {
            Value::Array(vec![value])
        } else {
            Value::Object(Map::from_iter([("a".to_owned(), value)]))
        };
    }
    value
}

/// Says an item twice, or lengthens a text.
fn double(target: &mut Value, random: &mut StdRng) {
    match target {
        Value::Array(items) if !items.is_empty() => {
            let item = items[random.random_range(0..items.len())].clone();
            items.push(item);
        }
        Value::String(text) => *text = text.repeat(2),
        Value::Number(number) => *target = json!(number.as_f64().unwrap_or(0.0) * 2.0),
        _ => {}
    }
}
