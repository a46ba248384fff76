//! Values as Rust source.

use serde_json::Value;

/// A text as a literal: raw where that saves escapes.
pub(super) fn text(text: &str) -> String {
    let special = text.contains(['"', '\\']);
    let printable = !text.chars().any(char::is_control);
    if !special || !printable {
        return format!("{text:?}");
    }
    let mut hashes = String::new();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("r{hashes}\"{text}\"{hashes}")
}

/// A number of a schema. Whole ones too large for what Rust takes them for say their type.
pub(super) fn number(number: f64) -> String {
    if number.fract() != 0.0 || number.abs() >= 9.2e18 {
        return format!("{number:?}");
    }
    integer(number as i64)
}

fn integer(number: i64) -> String {
    match i32::try_from(number) {
        Ok(number) => number.to_string(),
        Err(_) => format!("{number}i64"),
    }
}

/// A JSON value as an expression. Its depth is that of the JSON it was read from.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Array(_) | Value::Object(_) => format!("serde_json::json!({})", json(value)),
        other => json(other),
    }
}

fn json(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(given) => match (given.as_i64(), given.as_f64()) {
            (Some(whole), _) => integer(whole),
            (None, Some(float)) => number(float),
            (None, None) => given.to_string(),
        },
        Value::String(given) => text(given),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", text(key), json(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}
