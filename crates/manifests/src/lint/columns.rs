//! Columns of `kubectl get`, and the paths of the scale subresource.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionVersion, JSONSchemaProps,
};

use super::path::{Target, follow};
use crate::fields::{is_int_or_string, type_of};
use crate::finding::Report;

pub(super) fn check(
    version: &CustomResourceDefinitionVersion,
    schema: &JSONSchemaProps,
    report: &mut Report,
) {
    let columns: Vec<_> = version
        .additional_printer_columns
        .iter()
        .flatten()
        .collect();
    for column in &columns {
        let place = format!("column {}", column.name);
        match follow(schema, &column.json_path) {
            Target::Missing(what) => report.warning(
                &place,
                format!("{} leads nowhere: {what}", column.json_path),
                "correct jsonPath; the column stays empty",
            ),
            Target::Field(field) if !fits(&column.type_, field) => report.warning(
                &place,
                format!(
                    "the column is of type {}, the field of type {}",
                    column.type_,
                    type_of(field)
                ),
                "give the column the type of the field; values of another type are not shown",
            ),
            _ => {}
        }
    }
    let has_age = columns
        .iter()
        .any(|column| column.json_path == ".metadata.creationTimestamp");
    if !columns.is_empty() && !has_age {
        let advice = "add a column Age of type date at .metadata.creationTimestamp";
        report.hint("", "columns of one's own replace the column Age", advice);
    }
    check_scale(version, schema, report);
}

/// Anything can be shown as a text; a list is shown as JSON.
fn fits(column: &str, field: &JSONSchemaProps) -> bool {
    match (column, type_of(field)) {
        ("date", ty) => ty == "string",
        ("string", _) => true,
        ("integer" | "number", "integer" | "number") => true,
        (column, ty) => column == ty || is_int_or_string(field) || ty.is_empty(),
    }
}

fn check_scale(
    version: &CustomResourceDefinitionVersion,
    schema: &JSONSchemaProps,
    report: &mut Report,
) {
    let Some(scale) = version.subresources.as_ref().and_then(|s| s.scale.as_ref()) else {
        return;
    };
    let paths = [
        Some(&scale.spec_replicas_path),
        Some(&scale.status_replicas_path),
        scale.label_selector_path.as_ref(),
    ];
    for path in paths.into_iter().flatten() {
        if let Target::Missing(what) = follow(schema, path) {
            let message = format!("the scale subresource uses {path}: {what}");
            report.warning(
                path,
                message,
                "add the field, or correct the path: scaling does not work",
            );
        }
    }
}
