//! Enums of serde: `oneOf` and `anyOf` as a structural schema has them, which is one struct with all their fields.

use serde_json::{Map, Value, json};

use super::{known, overlay};

type Schema = Map<String, Value>;

/// Rewrites the alternatives of a schema. They are resolved already.
pub(super) fn flattened(schema: &mut Schema, key: &str, branches: Vec<Schema>) {
    let first = kind(&branches[0]);
    let alike = branches.iter().all(|branch| kind(branch) == first);
    let first = first.map(str::to_owned).filter(|_| alike);
    if let Some(values) = values(&branches) {
        words(schema, &branches, values);
    } else if branches.iter().all(is_object) {
        objects(schema, key, branches);
    } else if is_number_or_text(&branches) {
        unless_said(schema, known::int_or_string());
    } else {
        match first.as_deref() {
            Some("object") => unless_said(schema, object_of_anything()),
            Some("array") => lists(schema, &branches),
            Some(_) => scalars(schema, key, branches),
            None => unless_said(schema, known::anything()),
        }
    }
}

fn object_of_anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Lists of the same elements, or of anything.
fn lists(schema: &mut Schema, branches: &[Schema]) {
    let items = branches[0].get("items").cloned();
    let same = branches
        .iter()
        .all(|branch| branch.get("items") == items.as_ref());
    let items = items.filter(|_| same).unwrap_or_else(known::anything);
    unless_said(schema, json!({"type": "array", "items": items}));
}

fn unless_said(schema: &mut Schema, more: Value) {
    if let Value::Object(more) = more {
        overlay::under(schema, more);
    }
}

fn kind(schema: &Schema) -> Option<&str> {
    schema.get("type").and_then(Value::as_str)
}

fn is_object(schema: &Schema) -> bool {
    kind(schema) == Some("object") && !schema.contains_key("additionalProperties")
}

fn is_number_or_text(branches: &[Schema]) -> bool {
    let mut kinds: Vec<_> = branches.iter().filter_map(kind).collect();
    kinds.sort_unstable();
    kinds == ["integer", "string"]
}

/// The words of all branches, if words are all they are.
fn values(branches: &[Schema]) -> Option<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    for branch in branches {
        let (Some("string"), Some(Value::Array(values))) = (kind(branch), branch.get("enum"))
        else {
            return None;
        };
        all.extend(values.iter().cloned());
    }
    Some(all)
}

fn words(schema: &mut Schema, branches: &[Schema], values: Vec<Value>) {
    schema.insert("type".into(), json!("string"));
    let mut lines = Vec::new();
    for branch in branches {
        let text = branch.get("description").and_then(Value::as_str);
        if let (Some(text), Some([Value::String(word)])) = (
            text,
            branch
                .get("enum")
                .and_then(Value::as_array)
                .map(Vec::as_slice),
        ) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(format!(" - `{word}`: {text}"));
        }
    }
    schema.insert("enum".into(), Value::Array(values));
    if !lines.is_empty() {
        let own = schema.get("description").and_then(Value::as_str);
        let start = own.map_or_else(String::new, |own| format!("{own}\n\n"));
        let text = format!("{start}Possible values:\n{}", lines.join("\n"));
        schema.insert("description".into(), json!(text));
    }
}

/// Limits that may stand in an alternative.
const LIMITS: &[&str] = &[
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "multipleOf",
    "pattern",
];

/// The same type with other limits.
fn scalars(schema: &mut Schema, key: &str, branches: Vec<Schema>) {
    let ty = branches[0].get("type").cloned();
    let limits = branches.into_iter().map(|mut branch| {
        branch.retain(|key, _| LIMITS.contains(&key.as_str()));
        branch
    });
    let mut limits: Vec<Schema> = limits.collect();
    schema.extend(ty.map(|ty| ("type".to_owned(), ty)));
    if kind(schema) != Some("string") {
        shared_format(schema, &mut limits);
    }
    limits.dedup();
    match limits.as_slice() {
        [only] => overlay::under(schema, only.clone()),
        // A branch without limits allows everything that the type does.
        several if several.iter().all(|limit| !limit.is_empty()) => {
            let limits = limits.into_iter().map(Value::Object).collect();
            schema.insert(key.to_owned(), Value::Array(limits));
        }
        _ => {}
    }
}

/// The format of a number means nothing without its type, and has no place in an alternative.
fn shared_format(schema: &mut Schema, limits: &mut [Schema]) {
    let formats: Vec<_> = limits
        .iter_mut()
        .map(|limit| limit.remove("format"))
        .collect();
    if let Some(Some(format)) = formats.first()
        && formats.iter().all(|other| other.as_ref() == Some(format))
    {
        schema.insert("format".into(), format.clone());
    }
}

fn objects(schema: &mut Schema, key: &str, branches: Vec<Schema>) {
    let properties = all_properties(&branches);
    let alternatives = branches.iter().map(alternative).collect::<Vec<_>>();
    let unknown = branches
        .iter()
        .any(|branch| branch.contains_key("x-kubernetes-preserve-unknown-fields"));
    let mut merged = Schema::from_iter([("type".to_owned(), json!("object"))]);
    if !properties.is_empty() {
        merged.insert("properties".into(), Value::Object(properties));
    }
    if unknown {
        merged.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
    }
    overlay::along(schema, merged);
    schema.insert("type".into(), json!("object"));
    // An alternative that wants nothing is always there.
    if alternatives
        .iter()
        .all(|alternative| !alternative.is_empty())
    {
        let alternatives = alternatives.into_iter().map(Value::Object).collect();
        schema.insert(key.to_owned(), Value::Array(alternatives));
    }
}

/// The fields of all branches. Those of the same name are what they have in common, or anything.
fn all_properties(branches: &[Schema]) -> Schema {
    let mut all = Schema::new();
    for branch in branches {
        let Some(Value::Object(properties)) = branch.get("properties") else {
            continue;
        };
        for (name, property) in properties {
            let Value::Object(property) = property else {
                continue;
            };
            let mut property = property.clone();
            if let Some(text) = branch.get("description").filter(|_| properties.len() == 1) {
                // Of a variant with a value, the text of the variant tells what the field is.
                property
                    .entry("description")
                    .or_insert_with(|| text.clone());
            }
            let merged = match all.get(name) {
                Some(Value::Object(other)) => match overlay::common(other, &property) {
                    Some(common) => Value::Object(common),
                    None => known::anything(),
                },
                _ => Value::Object(property),
            };
            all.insert(name.clone(), merged);
        }
    }
    all
}

/// What distinguishes a branch: the fields that it wants, and the words that some of them are.
fn alternative(branch: &Schema) -> Schema {
    let mut alternative = Schema::new();
    if let Some(required) = branch.get("required") {
        alternative.insert("required".into(), required.clone());
    }
    if let Some(Value::Object(properties)) = branch.get("properties") {
        let words = properties.iter().filter_map(|(name, property)| {
            let words = property
                .get("enum")
                .filter(|words| words.as_array().is_some_and(|words| words.len() == 1))?;
            Some((name.clone(), json!({"enum": words})))
        });
        let words: Schema = words.collect();
        if !words.is_empty() {
            alternative.insert("properties".into(), Value::Object(words));
        }
    }
    alternative
}
