//! What a server says of a definition: structural schemas, names, expressions and their cost.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubewright_schema::crd::{
    default_definition, definition_warnings, reset_status, validate_definition,
};

use crate::finding::Report;

pub(super) fn check(definition: &CustomResourceDefinition, report: &mut Report) {
    let mut json = serde_json::to_value(definition).unwrap_or_default();
    default_definition(&mut json);
    reset_status(&mut json);
    for error in validate_definition(&json) {
        report.error(&error.field, error.message.clone(), advice(&error.message));
    }
    for warning in definition_warnings(&json, None) {
        let advice = "use a format that servers know, or leave it out: they ignore the others";
        let advice = if warning.starts_with("unrecognized format") {
            advice
        } else {
            "make the list atomic"
        };
        report.warning("", warning, advice);
    }
}

fn advice(message: &str) -> &'static str {
    if message.contains("cost") {
        "bound what the rule looks at with maxItems, maxProperties and maxLength, or make the rule simpler"
    } else if message.contains("compilation failed") {
        "correct the expression; self is the value that the rule stands on"
    } else if message.starts_with("Required value") {
        "add what is missing: servers refuse the definition without it"
    } else {
        "correct it: servers refuse the definition as it is"
    }
}
