//! Two schemas of the same version, field by field.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrBool,
};

use super::{fields, limits};
use crate::fields::{
    MAX_DEPTH, is_int_or_string, items, preserves_unknown, properties, property, type_of, values,
};
use crate::finding::Report;

/// A field that is in both schemas.
struct Pair<'a> {
    path: String,
    old: &'a JSONSchemaProps,
    new: &'a JSONSchemaProps,
    depth: usize,
}

/// Compares all fields. Deeper than a valid schema goes, nothing is looked at.
pub(super) fn compare(old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let mut stack = vec![Pair {
        path: String::new(),
        old,
        new,
        depth: 0,
    }];
    while let Some(pair) = stack.pop() {
        let Pair {
            path,
            old,
            new,
            depth,
        } = &pair;
        if !types(path, old, new, report) {
            continue;
        }
        fields::compare(path, old, new, report);
        limits::compare(path, old, new, report);
        lists(path, old, new, report);
        structure(path, old, new, report);
        if *depth < MAX_DEPTH {
            let mut below = children(&pair);
            below.reverse();
            stack.extend(below);
        }
    }
}

fn children<'a>(pair: &Pair<'a>) -> Vec<Pair<'a>> {
    let (old, new) = (pair.old, pair.new);
    let below = |suffix: String, old, new| Pair {
        path: format!("{}{suffix}", pair.path),
        old,
        new,
        depth: pair.depth + 1,
    };
    let mut found: Vec<Pair<'a>> = properties(old)
        .filter(|(name, _)| pair.depth > 0 || *name != "metadata")
        .filter_map(|(name, old)| Some(below(format!(".{name}"), old, property(new, name)?)))
        .collect();
    if let (Some(old), Some(new)) = (items(old), items(new)) {
        found.push(below("[]".to_owned(), old, new));
    }
    if let (Some(old), Some(new)) = (values(old), values(new)) {
        found.push(below("{}".to_owned(), old, new));
    }
    found
}

/// Whether both are of the same kind, so that it makes sense to look closer.
fn types(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) -> bool {
    let shown = |schema: &JSONSchemaProps| match type_of(schema) {
        _ if is_int_or_string(schema) => "int-or-string".to_owned(),
        "" => "any type".to_owned(),
        other => other.to_owned(),
    };
    let (before, after) = (shown(old), shown(new));
    let message = format!("the type has changed from {before} to {after}");
    match (before.as_str(), after.as_str()) {
        (before, after) if before == after => return true,
        ("integer", "number") | ("integer" | "string", "int-or-string") | (_, "any type") => {
            let advice =
                "clients that read the old type must learn the new one; a new version is safer";
            report.warning(path, message, advice);
        }
        _ => {
            let advice = "keep the type, and add a field or a version for the new one";
            report.error(path, message, advice);
        }
    }
    false
}

fn lists(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let kind = |schema: &JSONSchemaProps| {
        schema
            .x_kubernetes_list_type
            .clone()
            .unwrap_or_else(|| "atomic".to_owned())
    };
    let (before, after) = (kind(old), kind(new));
    let advice = "keep it: server-side apply loses track of who owns what, and stored lists may have become invalid";
    if before != after && type_of(old) == "array" {
        report.error(
            path,
            format!("the list type has changed from {before} to {after}"),
            advice,
        );
    } else if old.x_kubernetes_list_map_keys != new.x_kubernetes_list_map_keys {
        report.error(path, "the keys of the list have changed", advice);
    }
    let kind = |schema: &JSONSchemaProps| {
        schema
            .x_kubernetes_map_type
            .clone()
            .unwrap_or_else(|| "granular".to_owned())
    };
    let (before, after) = (kind(old), kind(new));
    if before != after {
        let advice = "keep it: server-side apply loses track of who owns what";
        report.warning(
            path,
            format!("the map type has changed from {before} to {after}"),
            advice,
        );
    }
}

fn structure(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let embedded = |schema: &JSONSchemaProps| schema.x_kubernetes_embedded_resource == Some(true);
    if !embedded(old) && embedded(new) {
        let advice = "values without apiVersion, kind and metadata are refused; make another field";
        report.error(path, "it must now be a whole object of its own", advice);
    }
    let open = |schema: &JSONSchemaProps| match schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Bool(allowed)) => allowed,
        Some(JSONSchemaPropsOrBool::Schema(_)) => true,
        None => false,
    };
    if open(old) && !open(new) && !preserves_unknown(new) {
        let advice = "keep additionalProperties: entries that are not fields are pruned";
        report.error(path, "it was a map, and no longer takes any key", advice);
    }
    if preserves_unknown(old) && !preserves_unknown(new) {
        let advice =
            "keep x-kubernetes-preserve-unknown-fields, or describe all fields that are in use";
        report.error(path, "unknown fields are no longer kept", advice);
    }
    let combined = |schema: &JSONSchemaProps| {
        (
            schema.all_of.clone(),
            schema.any_of.clone(),
            schema.one_of.clone(),
            schema.not.clone(),
        )
    };
    if combined(old) != combined(new) && combined(new) != (None, None, None, None) {
        let advice = "make sure that every value that was valid still is";
        report.warning(path, "allOf, anyOf, oneOf or not have changed", advice);
    }
}
