//! Values that a schema forbids: every constraint is violated once, and so is every expression for which a value is found.

use kubewright_manifests::sample::{Checker, replaced, values};
use kubewright_schema::crd::blocks_expressions;
use serde_json::{Value, json};

use super::change::whole;
use super::property::{Property, properties};

/// Longer texts and lists than these are not made to be too long.
const MAX_SIZE: u64 = 10_000;

/// An object that a server has to refuse.
#[derive(Debug, Clone)]
pub(crate) struct Invalid {
    /// The property and what is wrong with it.
    pub(crate) what: String,
    pub(crate) object: Value,
}

/// The forbidden objects near this one, and the expressions that no value was found for.
pub(crate) fn invalid(checker: &Checker, object: &Value) -> (Vec<Invalid>, Vec<String>) {
    let mut found: Vec<Invalid> = Vec::new();
    let mut rules = rules(checker.schema());
    for property in properties(checker.schema()) {
        let mut base = object.clone();
        let Some(pointer) = property.place(checker.schema(), &mut base) else {
            continue;
        };
        for (what, value) in forbidden(&property, base.pointer(&pointer)) {
            let Some(object) = replaced(&base, &pointer, value.as_ref()) else {
                continue;
            };
            if !checker.errors(&object, Some(&base)).is_empty() {
                let what = format!("{property}: {what}");
                found.push(Invalid { what, object });
            }
        }
        found.extend(breaking(checker, &property, &base, &pointer, &mut rules));
    }
    (found, rules)
}

/// Objects that break expressions which none has broken yet. Those are taken off the list.
fn breaking(
    checker: &Checker,
    property: &Property,
    base: &Value,
    pointer: &str,
    rules: &mut Vec<String>,
) -> Vec<Invalid> {
    let mut found = Vec::new();
    if rules.is_empty() {
        return found;
    }
    let mut candidates = values(&property.schema, property.name());
    let numbers = [0, 1, 2, 5, 10, 100, 1000];
    if matches!(property.schema["type"].as_str(), Some("integer" | "number")) {
        candidates.extend(
            ["minimum", "maximum"]
                .iter()
                .filter_map(|key| property.schema[key].as_f64().map(whole)),
        );
        candidates.extend(numbers.map(Value::from));
    }
    for value in candidates {
        let Some(object) = replaced(base, pointer, Some(&value)) else {
            continue;
        };
        let errors = checker.errors(&object, Some(base));
        if blocks_expressions(&errors) {
            continue;
        }
        let broken = |rule: &String| errors.iter().any(|error| error.message.contains(&**rule));
        if let Some(at) = rules.iter().position(broken) {
            let rule = rules.remove(at);
            let what = format!("{property}: breaks {rule:?}");
            found.push(Invalid { what, object });
        }
    }
    found
}

/// What the errors of each expression say.
fn rules(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(schema, &mut found);
    found.sort();
    found.dedup();
    found
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match name.as_str() {
                    "x-kubernetes-validations" => {
                        let rules = value.as_array().into_iter().flatten();
                        found.extend(rules.filter_map(said));
                    }
                    "default" | "example" | "enum" => {}
                    _ => collect(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

fn said(rule: &Value) -> Option<String> {
    let message = rule["message"].as_str().or(rule["rule"].as_str());
    message.map(|message| message.trim().to_owned())
}

/// Values that a constraint of the schema itself forbids; none stands for no value.
fn forbidden(property: &Property, current: Option<&Value>) -> Vec<(String, Option<Value>)> {
    let schema = &property.schema;
    let mut found: Vec<(String, Option<Value>)> = Vec::new();
    let mut add = |what: &str, value: Value| found.push((what.to_owned(), Some(value)));
    let number = |key: &str| schema[key].as_f64();
    let size = |key: &str| schema[key].as_u64().filter(|size| *size < MAX_SIZE);
    let text = |length: u64| Value::from("a".repeat(usize::try_from(length).unwrap_or_default()));
    match schema["type"].as_str() {
        Some("string") => add("a number instead of a text", json!(7)),
        Some(kind) => add(&format!("a text instead of {kind}"), json!("walk")),
        None => {}
    }
    if schema.get("enum").is_some() {
        add("a value that is not listed", json!("not-a-listed-value"));
    }
    if let Some(least) = number("minimum") {
        add("less than the minimum", whole(least - 1.0));
    }
    if let Some(most) = number("maximum") {
        add("more than the maximum", whole(most + 1.0));
    }
    if let Some(least) = size("minLength").filter(|least| *least > 0) {
        add("too short", text(least - 1));
    }
    if let Some(most) = size("maxLength") {
        add("too long", text(most + 1));
    }
    if schema.get("pattern").is_some() {
        for wrong in ["", "!", " walk ", "-", "WALK walk"] {
            add("a text that does not match the pattern", json!(wrong));
        }
    }
    if schema.get("format").is_some() {
        add("a text of another format", json!("not of this format"));
    }
    let items = || {
        current
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    if let (Some(most), Some(item)) = (size("maxItems"), values(&schema["items"], "item").first()) {
        let many = (0..=most).map(|_| item.clone()).collect();
        add("too many items", many);
    }
    if size("minItems").is_some_and(|least| least > 0) {
        add("too few items", json!([]));
    }
    if matches!(
        schema["x-kubernetes-list-type"].as_str(),
        Some("set" | "map")
    ) {
        let mut items = items();
        if items.is_empty() {
            items.extend(values(&schema["items"], "item").into_iter().take(1));
        }
        items.extend(items.first().cloned());
        add("an item twice", items.into());
    }
    if !property.optional {
        found.push(("missing".to_owned(), None));
    }
    found
}
