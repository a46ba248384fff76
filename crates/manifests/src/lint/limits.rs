//! Limits that nothing can keep to: a lower one above the upper one.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::fields;
use crate::finding::Report;

pub(super) fn check(schema: &JSONSchemaProps, report: &mut Report) {
    for field in fields::of(schema) {
        let schema = field.schema;
        // Counts are far below what a float cannot tell apart.
        let count = |value: Option<i64>| value.map(|value| value as f64);
        for (lower, upper, low, high) in [
            ("minimum", "maximum", schema.minimum, schema.maximum),
            (
                "minLength",
                "maxLength",
                count(schema.min_length),
                count(schema.max_length),
            ),
            (
                "minItems",
                "maxItems",
                count(schema.min_items),
                count(schema.max_items),
            ),
            (
                "minProperties",
                "maxProperties",
                count(schema.min_properties),
                count(schema.max_properties),
            ),
        ] {
            if let (Some(low), Some(high)) = (low, high)
                && low > high
            {
                report.error(
                    &field.path,
                    format!("{lower} {low} is above {upper} {high}: no value is valid"),
                    format!("set {lower} to at most {high}, or raise {upper}"),
                );
            }
        }
    }
}
