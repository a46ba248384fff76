//! The ways in which the value of a property can be changed.

use std::collections::BTreeMap;

use kubewright_manifests::sample;
use serde_json::{Map, Value};

use super::meaning;
use super::property::{Form, Property};

/// How many values of a property are tried.
const MAX_CANDIDATES: usize = 24;
/// How many different values a property gets. One with a few named values gets each of them.
const VALUES: usize = 3;
/// The most named values that are all tried.
const MAX_NAMED: usize = 12;

/// Values that a test gives for properties, by their path.
pub(crate) type Given = BTreeMap<String, Vec<Value>>;

/// A way to change a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Another value, the nth that is accepted.
    Set(usize),
    /// One item or entry more.
    Add,
    /// Other items in the same number.
    Exchange,
    /// The same items in another order.
    Reorder,
    /// One item or entry less.
    Shrink,
    /// No value at all.
    Remove,
}

impl Way {
    /// The word for it in reports.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Add => "add to",
            Self::Exchange => "exchange in",
            Self::Reorder => "reorder",
            Self::Shrink => "take from",
            Self::Remove => "remove",
        }
    }
}

/// The ways to change a property, in the order in which they are gone.
pub(crate) fn ways(property: &Property) -> Vec<Way> {
    let mut ways = match property.form() {
        Form::Scalar => {
            let named = property.schema["enum"].as_array().map_or(VALUES, Vec::len);
            (0..named.min(MAX_NAMED)).map(Way::Set).collect()
        }
        Form::List => vec![Way::Add, Way::Add, Way::Reorder, Way::Exchange, Way::Shrink],
        Form::Map => vec![Way::Add, Way::Exchange, Way::Shrink],
        // Its fields are properties of their own.
        Form::Object => vec![Way::Add],
    };
    if property.optional {
        ways.push(Way::Remove);
    }
    if property.optional {
        // It comes again: for what is within it, and because coming is a change of its own.
        ways.push(match property.form() {
            Form::Scalar => Way::Set(0),
            Form::List | Form::Map | Form::Object => Way::Add,
        });
    }
    ways
}

/// The values that a property can get in this way, all of which differ from the one that it has. None stands for no value.
pub(crate) fn values(
    property: &Property,
    way: Way,
    current: Option<&Value>,
    given: &Given,
    seed: u64,
) -> Vec<Option<Value>> {
    let found = match (way, property.form()) {
        (Way::Remove, _) => vec![None],
        (Way::Set(_), _) => some(candidates(property, given, seed)),
        (way, Form::List) => some(lists(property, way, current, given, seed)),
        (way, Form::Map) => some(maps(property, way, current, given, seed)),
        (Way::Add, Form::Object) if current.is_none() => {
            some(sample::values(&property.schema, property.name()))
        }
        _ => Vec::new(),
    };
    let differs = |value: &Option<Value>| value.as_ref() != current;
    let mut found: Vec<_> = found.into_iter().filter(differs).collect();
    found.truncate(MAX_CANDIDATES);
    found
}

fn some(values: Vec<Value>) -> Vec<Option<Value>> {
    values.into_iter().map(Some).collect()
}

/// Values of a property, or of the items or entries of one: those that a test gives, those of its meaning, those of its schema.
fn candidates(property: &Property, given: &Given, seed: u64) -> Vec<Value> {
    let schema = match property.form() {
        Form::List => &property.schema["items"],
        Form::Map => &property.schema["additionalProperties"],
        Form::Scalar | Form::Object => &property.schema,
    };
    if let Some(given) = given.get(&property.to_string()) {
        return given.clone();
    }
    let mut known = meaning::values(property.name(), schema);
    let mut made = sample::values(schema, property.name());
    known.retain(|value| !made.contains(value) || schema.get("enum").is_none());
    rotate(&mut known, seed);
    rotate(&mut made, seed);
    for value in bounds(schema).into_iter().chain(made) {
        if !known.contains(&value) {
            known.push(value);
        }
    }
    known
}

fn rotate(values: &mut [Value], seed: u64) {
    if !values.is_empty() {
        let by = usize::try_from(seed % values.len() as u64).unwrap_or_default();
        values.rotate_left(by);
    }
}

/// The least and the largest value of a number.
fn bounds(schema: &Value) -> Vec<Value> {
    let is_number = matches!(schema["type"].as_str(), Some("integer" | "number"));
    let bounds = ["minimum", "maximum"].iter();
    let bounds = bounds.filter_map(|key| schema[key].as_f64());
    bounds.filter(|_| is_number).map(whole).collect()
}

/// A number without a fraction where it has none: `4.0` cannot be read as a whole number by everybody.
pub(crate) fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

fn lists(
    property: &Property,
    way: Way,
    current: Option<&Value>,
    given: &Given,
    seed: u64,
) -> Vec<Value> {
    let items = current.and_then(Value::as_array).cloned();
    let items = items.unwrap_or_default();
    let others = candidates(property, given, seed).into_iter();
    let others = others.filter(|other| !items.contains(other));
    match way {
        Way::Add => others
            .map(|other| items.iter().cloned().chain([other]).collect())
            .collect(),
        Way::Exchange if !items.is_empty() => others
            .map(|other| {
                let mut items = items.clone();
                items[0] = other;
                items.into()
            })
            .collect(),
        Way::Reorder if items.len() > 1 => {
            vec![items.iter().rev().cloned().collect()]
        }
        Way::Shrink if !items.is_empty() => {
            vec![items[..items.len() - 1].to_vec().into()]
        }
        _ => Vec::new(),
    }
}

fn maps(
    property: &Property,
    way: Way,
    current: Option<&Value>,
    given: &Given,
    seed: u64,
) -> Vec<Value> {
    let entries = current.and_then(Value::as_object).cloned();
    let entries = entries.unwrap_or_default();
    let first = entries.keys().next().cloned();
    let with = |key: &str, value: Value| {
        let mut entries: Map<String, Value> = entries.clone();
        entries.insert(key.to_owned(), value);
        Value::Object(entries)
    };
    let mut others = candidates(property, given, seed);
    if others.is_empty() {
        // Anything goes.
        others = vec!["walk-a".into(), "walk-b".into()];
    }
    match (way, first) {
        (Way::Add, _) => {
            let key = format!("walk-{}", entries.len());
            others.into_iter().map(|value| with(&key, value)).collect()
        }
        (Way::Exchange, Some(first)) => others
            .into_iter()
            .map(|value| with(&first, value))
            .collect(),
        (Way::Shrink, Some(first)) => {
            let mut entries = entries.clone();
            entries.remove(&first);
            vec![Value::Object(entries)]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::property::properties;
    use serde_json::json;

    #[test]
    fn lists_grow_turn_round_and_shrink() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "hosts": {"type": "array", "items": {"type": "string"}}}}}});
        let hosts = &properties(&schema)[0];
        let of = |way, current: Value| {
            let values = values(hosts, way, Some(&current), &Given::new(), 0);
            values.into_iter().next().flatten()
        };
        let added = of(Way::Add, json!(["a"])).expect("one more");
        assert_eq!(added.as_array().map(Vec::len), Some(2));
        assert_eq!(of(Way::Reorder, json!(["a", "b"])), Some(json!(["b", "a"])));
        assert_eq!(of(Way::Shrink, json!(["a", "b"])), Some(json!(["a"])));
        assert_eq!(of(Way::Reorder, json!(["a"])), None);
    }

    #[test]
    fn every_value_of_an_enum_is_a_way() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["mode"],
            "properties": {"mode": {"type": "string", "enum": ["a", "b", "c", "d", "e"]}}}}});
        let mode = &properties(&schema)[0];
        assert_eq!(ways(mode).len(), 5);
        let values = values(mode, Way::Set(0), Some(&json!("b")), &Given::new(), 3);
        assert_eq!(values.len(), 4);
    }
}
