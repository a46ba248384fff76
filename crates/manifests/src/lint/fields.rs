//! Conventions for single fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::names::is_camel;
use crate::fields::{Field, items, preserves_unknown, properties, property, type_of};
use crate::finding::Report;

/// Names of fields that hold what nobody should read.
const SECRETS: &[&str] = &[
    "password",
    "passwd",
    "token",
    "apikey",
    "apitoken",
    "secretkey",
    "privatekey",
    "accesskey",
    "credentials",
];

pub(super) fn check(schema: &JSONSchemaProps, report: &mut Report) {
    for field in crate::fields::of(schema) {
        check_name(&field, report);
        check_default(&field, report);
        check_description(&field, report);
        check_enum(&field, report);
        match type_of(field.schema) {
            "number" => check_number(&field, report),
            "integer" => check_integer(&field, report),
            "boolean" => check_boolean(&field, report),
            "string" => check_string(&field, report),
            "array" => check_list(&field, report),
            "object" => check_object(&field, report),
            _ => {}
        }
    }
}

fn check_name(field: &Field<'_>, report: &mut Report) {
    if let Some(name) = field.name
        && !is_camel(name, char::is_lowercase)
        && !name.starts_with('$')
    {
        let advice = "rename it: begin with a small letter, and use letters and digits only";
        report.warning(
            &field.path,
            format!("the name {name:?} is not camelCase"),
            advice,
        );
    }
}

fn check_default(field: &Field<'_>, report: &mut Report) {
    if field.required && field.name.is_some() && field.schema.default.is_some() {
        let advice = "make it optional";
        report.warning(
            &field.path,
            "it is required and has a default: the default is always there first",
            advice,
        );
    }
}

/// Of what stands in a list or a map the list itself is described.
fn check_description(field: &Field<'_>, report: &mut Report) {
    if field.name.is_some()
        && field
            .schema
            .description
            .as_ref()
            .is_none_or(|text| text.trim().is_empty())
    {
        let advice = "write a description; `kubectl explain` shows it";
        report.hint(&field.path, "it has no description", advice);
    }
}

fn check_enum(field: &Field<'_>, report: &mut Report) {
    let values = field
        .schema
        .enum_
        .iter()
        .flatten()
        .filter_map(|value| value.0.as_str());
    let odd: Vec<&str> = values
        .filter(|value| !value.is_empty() && !is_camel(value, char::is_uppercase))
        .collect();
    if !odd.is_empty() {
        let advice = "values of Kubernetes' own enums look like ClusterFirst";
        report.hint(
            &field.path,
            format!("values are not CamelCase: {}", odd.join(", ")),
            advice,
        );
    }
}

fn check_number(field: &Field<'_>, report: &mut Report) {
    let advice = "use a whole number of a smaller unit, or a quantity as text";
    report.warning(
        &field.path,
        "it is a float: languages round and print them differently",
        advice,
    );
}

fn check_integer(field: &Field<'_>, report: &mut Report) {
    let format = field.schema.format.as_deref().unwrap_or("");
    if format.starts_with("uint") {
        let advice = "use int32 or int64 with a minimum of 0";
        report.warning(
            &field.path,
            format!("{format} is not a format that Kubernetes knows: servers ignore it"),
            advice,
        );
    } else if field.name == Some("replicas") && format != "int32" {
        report.warning(
            &field.path,
            "replicas are not int32, as everywhere else",
            "set its format to int32",
        );
    } else if format.is_empty() && field.schema.enum_.is_none() {
        let advice = "set its format to int32 or int64, so that clients know how large it gets";
        report.hint(&field.path, "it is a whole number of unknown size", advice);
    }
}

fn check_boolean(field: &Field<'_>, report: &mut Report) {
    if field.path.starts_with(".spec") && field.name.is_some() {
        let advice = "think of an enum: there is often a third possibility later";
        report.hint(
            &field.path,
            "it is a boolean, which can never have a third value",
            advice,
        );
    }
}

fn check_string(field: &Field<'_>, report: &mut Report) {
    let name = field.name.unwrap_or("");
    if field.path.starts_with(".spec") && SECRETS.contains(&name.to_lowercase().as_str()) {
        let advice = "refer to a key of a Secret; everybody who can read the object can read this";
        report.warning(&field.path, "it looks like a secret", advice);
    }
    if name.ends_with("Timestamp") && field.schema.format.as_deref() != Some("date-time") {
        report.hint(
            &field.path,
            "it looks like a time, and is any text",
            "set its format to date-time",
        );
    }
}

fn check_list(field: &Field<'_>, report: &mut Report) {
    if field.schema.x_kubernetes_list_type.is_some() {
        return;
    }
    let message = "the list has no type: server-side apply replaces it as a whole";
    if items(field.schema).is_some_and(|item| type_of(item) == "object") {
        let advice = "set x-kubernetes-list-type: map with its keys, or atomic if that is meant";
        report.warning(&field.path, message, advice);
    } else {
        report.hint(
            &field.path,
            message,
            "set x-kubernetes-list-type: set, or atomic if that is meant",
        );
    }
}

fn check_object(field: &Field<'_>, report: &mut Report) {
    let names: Vec<&str> = properties(field.schema).map(|(name, _)| name).collect();
    if names == ["nanos", "secs"] && property(field.schema, "secs").is_some() {
        let advice = "use a duration as text, such as 1h30m";
        report.warning(
            &field.path,
            "it is a duration of seconds and nanoseconds, unlike all others",
            advice,
        );
    }
    let embedded = field.schema.x_kubernetes_embedded_resource == Some(true);
    if preserves_unknown(field.schema) && !embedded {
        let advice = "describe its fields if you know them";
        report.hint(
            &field.path,
            "it accepts any field: a wrong one is not noticed",
            advice,
        );
    }
}
