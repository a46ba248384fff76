//! Numbers and texts: formats that the server knows, bounds instead of those that it does not, whole numbers as such.

use serde_json::{Map, Value, json};

type Schema = Map<String, Value>;

/// Formats of texts that a server checks. Others are only a warning on every apply.
const FORMATS: &[&str] = &[
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "date-time",
    "k8s-short-name",
    "k8s-long-name",
];

/// The format that a number of Rust has, the one of the API, and its bounds.
type Number = (&'static str, Option<&'static str>, Option<i64>, Option<i64>);

const NUMBERS: &[Number] = &[
    ("int8", Some("int32"), Some(-128), Some(127)),
    ("int16", Some("int32"), Some(-32_768), Some(32_767)),
    ("int32", Some("int32"), None, None),
    ("int64", Some("int64"), None, None),
    ("uint8", Some("int32"), Some(0), Some(255)),
    ("uint16", Some("int32"), Some(0), Some(65_535)),
    ("uint32", Some("int64"), Some(0), Some(4_294_967_295)),
    ("uint64", Some("int64"), Some(0), None),
    ("uint", Some("int64"), Some(0), None),
    ("int", None, None, None),
];

/// Makes a format one of the API, with bounds where it had some.
pub(super) fn format(schema: &mut Schema) {
    let Some(Value::String(format)) = schema.get("format") else {
        return;
    };
    let format = format.clone();
    if schema.get("type") == Some(&json!("string"))
        || schema.contains_key("x-kubernetes-int-or-string")
    {
        text_format(schema, &format);
        return;
    }
    schema.remove("format");
    let Some((_, known, min, max)) = NUMBERS.iter().find(|(name, ..)| *name == format) else {
        return;
    };
    schema.extend(known.map(|known| ("format".to_owned(), json!(known))));
    // A limit of the field's own is narrower, or a mistake that the type would refuse anyway.
    for (key, bound) in [("minimum", min), ("maximum", max)] {
        if let Some(bound) = bound {
            schema.entry(key).or_insert_with(|| json!(bound));
        }
    }
}

fn text_format(schema: &mut Schema, format: &str) {
    match format {
        known if FORMATS.contains(&known) => {}
        "ip" => {
            schema.remove("format");
            schema.insert(
                "anyOf".into(),
                json!([{"format": "ipv4"}, {"format": "ipv6"}]),
            );
        }
        _ => {
            schema.remove("format");
        }
    }
}

/// Bounds of newer drafts as the API has them, and whole numbers as such.
pub(super) fn bounds(schema: &mut Schema) {
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(value @ Value::Number(_)) = schema.get(exclusive).cloned() {
            schema.insert(bound.into(), value);
            schema.insert(exclusive.into(), json!(true));
        }
    }
    for key in ["minimum", "maximum", "multipleOf"] {
        if let Some(value) = schema.get_mut(key) {
            *value = whole(value);
        }
    }
}

/// A number without a fraction as a whole number.
fn whole(value: &Value) -> Value {
    match value.as_f64() {
        // Below this every whole number has a float of its own.
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "it has no fraction and fits"
            )]
            let number = float as i64;
            json!(number)
        }
        _ => value.clone(),
    }
}

/// A set of scalars is a list of type `set`. A set of anything else has no such type, and merges as a whole.
pub(super) fn unique(schema: &mut Schema) {
    if schema.remove("uniqueItems") != Some(Value::Bool(true))
        || schema.contains_key("x-kubernetes-list-type")
    {
        return;
    }
    let kind = if has_scalar_items(schema) {
        "set"
    } else {
        "atomic"
    };
    schema.insert("x-kubernetes-list-type".into(), json!(kind));
}

/// The same for a list that is a set by the word of another schema than the one that has its items.
pub(super) fn list_of_its_items(schema: &mut Schema) {
    if schema.get("x-kubernetes-list-type") == Some(&json!("set")) && !has_scalar_items(schema) {
        schema.insert("x-kubernetes-list-type".into(), json!("atomic"));
    }
}

fn has_scalar_items(schema: &Schema) -> bool {
    let items = schema.get("items").and_then(|items| items.get("type"));
    items
        .and_then(Value::as_str)
        .is_some_and(|ty| ty != "object" && ty != "array")
}
