//! What stands in one cell of a table.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, ValidationRule,
};

use crate::fields::{is_int_or_string, items, preserves_unknown, properties, values};

/// The deepest list of lists, or map of maps, that is spelled out.
const MAX_NESTING: usize = 8;

/// Text as Markdown of one line.
pub(super) fn escape(text: &str) -> String {
    let text = text
        .trim()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('|', "\\|");
    text.lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("<br />")
}

/// Text as paragraphs of their own.
pub(super) fn paragraphs(text: &str) -> String {
    text.trim()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text as it is, in a cell.
pub(super) fn code(text: &str) -> String {
    let line = text.replace('\n', " ").replace('|', "\\|");
    if line.contains('`') {
        format!("`` {line} ``")
    } else {
        format!("`{line}`")
    }
}

/// A type, with links to the tables of the objects in it.
pub(super) fn type_of(
    schema: &JSONSchemaProps,
    path: &str,
    anchor: &dyn Fn(&str) -> String,
) -> String {
    nested(schema, path, anchor, 0)
}

fn nested(
    schema: &JSONSchemaProps,
    path: &str,
    anchor: &dyn Fn(&str) -> String,
    depth: usize,
) -> String {
    if depth > MAX_NESTING {
        return "…".to_owned();
    }
    if let Some(item) = items(schema) {
        return format!(
            "list of {}",
            nested(item, &format!("{path}[]"), anchor, depth + 1)
        );
    }
    if let Some(value) = values(schema) {
        return format!(
            "map of {}",
            nested(value, &format!("{path}{{}}"), anchor, depth + 1)
        );
    }
    if properties(schema).next().is_some() {
        return format!("[object](#{})", anchor(path));
    }
    if is_int_or_string(schema) {
        return "integer or string".to_owned();
    }
    match schema.type_.as_deref() {
        Some(ty) => ty.to_owned(),
        None => "any".to_owned(),
    }
}

/// A rule: what it says, or the expression itself.
pub(super) fn rule(rule: &ValidationRule) -> String {
    let expression = code(rule.rule.trim());
    match rule.message.as_deref() {
        Some(message) => format!("{} ({expression})", escape(message)),
        None => expression,
    }
}

/// All that a schema demands of a value.
pub(super) fn validation(schema: &JSONSchemaProps) -> Vec<String> {
    let mut found = bounds(schema);
    found.extend(
        schema
            .format
            .as_ref()
            .map(|format| format!("format {}", code(format))),
    );
    found.extend(
        schema
            .pattern
            .as_ref()
            .map(|pattern| format!("pattern {}", code(pattern))),
    );
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> = values.iter().map(|value| code(&plain(&value.0))).collect();
        found.push(format!("one of {}", values.join(", ")));
    }
    if let Some(kind) = schema.x_kubernetes_list_type.as_deref() {
        let keys = schema
            .x_kubernetes_list_map_keys
            .iter()
            .flatten()
            .map(|key| code(key))
            .collect::<Vec<_>>();
        found.push(match kind {
            "map" => format!("unique by {}", keys.join(", ")),
            "set" => "no duplicates".to_owned(),
            other => format!("{other} list"),
        });
    }
    if schema.nullable == Some(true) {
        found.push("may be null".to_owned());
    }
    if preserves_unknown(schema) {
        found.push("any field".to_owned());
    }
    // The rules of an object stand above its table.
    if properties(schema).next().is_none() {
        found.extend(schema.x_kubernetes_validations.iter().flatten().map(rule));
    }
    found
}

fn bounds(schema: &JSONSchemaProps) -> Vec<String> {
    let sign = |exclusive: Option<bool>, strict: &'static str, other: &'static str| {
        if exclusive == Some(true) {
            strict
        } else {
            other
        }
    };
    let numbers = [
        (sign(schema.exclusive_minimum, "&gt;", "≥"), schema.minimum),
        (sign(schema.exclusive_maximum, "&lt;", "≤"), schema.maximum),
        ("multiple of", schema.multiple_of),
    ];
    let sizes = [
        ("at least", schema.min_length, "characters"),
        ("at most", schema.max_length, "characters"),
        ("at least", schema.min_items, "items"),
        ("at most", schema.max_items, "items"),
        ("at least", schema.min_properties, "entries"),
        ("at most", schema.max_properties, "entries"),
    ];
    let numbers = numbers
        .into_iter()
        .filter_map(|(sign, bound)| Some(format!("{sign} {}", bound?)));
    let sizes = sizes
        .into_iter()
        .filter_map(|(most, size, of)| Some(format!("{most} {} {of}", size?)));
    numbers.chain(sizes).collect()
}

/// A text without its quotes.
fn plain(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
