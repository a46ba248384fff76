//! What a schema demands of a value, as `#[k8s(..)]` says it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, ValidationRule,
};

use super::attribute::Item;
use super::literal;
use super::model::Type;
use crate::fields::{items, preserves_unknown};

/// What stands on a field, or in `items(..)`. Of a type of its own that type says the rest.
pub(super) fn of_value(schema: &JSONSchemaProps, ty: &Type) -> Vec<Item> {
    let mut marks = match ty {
        Type::Integer(_) | Type::Float => numbers(schema),
        Type::Text | Type::IntOrString => texts(schema),
        Type::List(item) => lists(schema, item),
        Type::Map(_) => maps(schema),
        Type::Any | Type::Object => anything(schema),
        Type::Boolean | Type::Condition | Type::Named(_) => Vec::new(),
    };
    if !matches!(ty, Type::Named(_)) {
        marks.extend(rules(schema));
    }
    marks
}

/// What stands on a field only.
pub(super) fn of_field(schema: &JSONSchemaProps) -> Vec<Item> {
    let mut marks = Vec::new();
    if schema.nullable == Some(true) {
        marks.push(Item::word("nullable"));
    }
    for (name, value) in [("default", &schema.default), ("example", &schema.example)] {
        if let Some(value) = value.as_ref().filter(|value| !value.0.is_null()) {
            marks.push(Item::pair(name, literal::value(&value.0)));
        }
    }
    marks
}

/// What stands on a struct.
pub(super) fn of_struct(schema: &JSONSchemaProps) -> Vec<Item> {
    let mut marks = counts([
        ("min_properties", schema.min_properties),
        ("max_properties", schema.max_properties),
    ]);
    if schema.x_kubernetes_map_type.as_deref() == Some("atomic") {
        marks.push(Item::word("atomic"));
    }
    marks.extend(anything(schema));
    marks.extend(rules(schema));
    marks
}

fn numbers(schema: &JSONSchemaProps) -> Vec<Item> {
    let bounds = [
        ("min", schema.minimum),
        ("max", schema.maximum),
        ("multiple_of", schema.multiple_of),
    ];
    let bounds = bounds
        .into_iter()
        .filter_map(|(name, bound)| Some(Item::pair(name, literal::number(bound?))));
    let mut marks: Vec<Item> = bounds.collect();
    for (name, flag) in [
        ("exclusive_min", schema.exclusive_minimum),
        ("exclusive_max", schema.exclusive_maximum),
    ] {
        if flag == Some(true) {
            marks.push(Item::word(name));
        }
    }
    if let Some(values) = &schema.enum_ {
        let values = values
            .iter()
            .map(|value| Item::Plain(literal::value(&value.0)))
            .collect();
        marks.push(Item::List("values".to_owned(), values));
    }
    marks
}

fn texts(schema: &JSONSchemaProps) -> Vec<Item> {
    let mut marks = counts([
        ("min_length", schema.min_length),
        ("max_length", schema.max_length),
    ]);
    for (name, text) in [("pattern", &schema.pattern), ("format", &schema.format)] {
        marks.extend(
            text.as_ref()
                .map(|text| Item::pair(name, literal::text(text))),
        );
    }
    marks
}

fn lists(schema: &JSONSchemaProps, item: &Type) -> Vec<Item> {
    let mut marks = counts([
        ("min_items", schema.min_items),
        ("max_items", schema.max_items),
    ]);
    match schema.x_kubernetes_list_type.as_deref() {
        Some("map") => {
            let keys: Vec<String> = schema
                .x_kubernetes_list_map_keys
                .iter()
                .flatten()
                .map(|key| literal::text(key))
                .collect();
            marks.push(Item::pair("list", format!("map({})", keys.join(", "))));
        }
        Some(kind @ ("set" | "atomic")) => marks.push(Item::pair("list", kind)),
        _ => {}
    }
    let inner = items(schema)
        .map(|schema| of_value(schema, item))
        .unwrap_or_default();
    if !inner.is_empty() {
        marks.push(Item::List("items".to_owned(), inner));
    }
    marks
}

fn maps(schema: &JSONSchemaProps) -> Vec<Item> {
    let mut marks = counts([
        ("min_properties", schema.min_properties),
        ("max_properties", schema.max_properties),
    ]);
    if schema.x_kubernetes_map_type.as_deref() == Some("atomic") {
        marks.push(Item::pair("map", "atomic"));
    }
    marks
}

fn anything(schema: &JSONSchemaProps) -> Vec<Item> {
    let mut marks = Vec::new();
    if preserves_unknown(schema) {
        marks.push(Item::word("preserve_unknown"));
    }
    if schema.x_kubernetes_embedded_resource == Some(true) {
        marks.push(Item::word("embedded_resource"));
    }
    marks
}

fn counts<const N: usize>(counts: [(&str, Option<i64>); N]) -> Vec<Item> {
    let counts = counts
        .into_iter()
        .filter_map(|(name, count)| Some((name, count.filter(|count| *count >= 0)?)));
    counts
        .map(|(name, count)| Item::pair(name, count))
        .collect()
}

fn rules(schema: &JSONSchemaProps) -> impl Iterator<Item = Item> {
    schema.x_kubernetes_validations.iter().flatten().map(rule)
}

fn rule(rule: &ValidationRule) -> Item {
    let mut parts = vec![Item::Plain(literal::text(rule.rule.trim()))];
    let message = rule
        .message
        .as_ref()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = message.filter(|text| !text.is_empty());
    for (name, text) in [
        ("message", message.as_ref()),
        ("message_expression", rule.message_expression.as_ref()),
        ("reason", rule.reason.as_ref()),
        ("field_path", rule.field_path.as_ref()),
    ] {
        parts.extend(text.map(|text| Item::pair(name, literal::text(text))));
    }
    if rule.optional_old_self == Some(true) {
        parts.push(Item::word("optional_old_self"));
    }
    Item::List("rule".to_owned(), parts)
}
