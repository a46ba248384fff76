//! The shape of an object: what it is wanted to be in `spec`, what it is in `status`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinitionVersion, JSONSchemaProps,
};

use super::conditions;
use crate::fields::{is_required, preserves_unknown, property};
use crate::finding::Report;

pub(super) fn check(
    version: &CustomResourceDefinitionVersion,
    schema: &JSONSchemaProps,
    report: &mut Report,
) {
    if schema
        .description
        .as_ref()
        .is_none_or(|text| text.trim().is_empty())
    {
        report.hint(
            "",
            "the kind has no description",
            "write one; `kubectl explain` shows it",
        );
    }
    if preserves_unknown(schema) {
        let advice = "describe the fields; keep x-kubernetes-preserve-unknown-fields to the one that needs it";
        report.warning(
            "",
            "the whole object accepts any field: a wrong one is not noticed",
            advice,
        );
    }
    if property(schema, "spec").is_none() && property(schema, "status").is_some() {
        report.hint(
            "",
            "there is a status and no spec",
            "put what users ask for into spec",
        );
    }
    check_status(version, schema, report);
}

fn check_status(
    version: &CustomResourceDefinitionVersion,
    schema: &JSONSchemaProps,
    report: &mut Report,
) {
    let subresource = version
        .subresources
        .as_ref()
        .is_some_and(|s| s.status.is_some());
    match (property(schema, "status"), subresource) {
        (Some(_), true) if is_required(schema, "status") => report.error(
            ".status",
            "status is required, but servers drop the status of a new object: none can be created",
            "make status optional",
        ),
        (Some(_), false) => report.warning(
            ".status",
            "there is a status, but no status subresource: whoever writes the spec can write it, and writing it counts as \
             a change of the spec",
            "turn the status subresource on",
        ),
        (None, true) if !preserves_unknown(schema) => report.warning(
            ".status",
            "there is a status subresource, but no status in the schema: all of it is pruned",
            "describe status, or turn the subresource off",
        ),
        _ => {}
    }
    if let Some(status) = property(schema, "status") {
        conditions::check(status, report);
        if !preserves_unknown(status) && property(status, "observedGeneration").is_none() {
            let advice = "add observedGeneration (int64), so that readers can tell an old status from a new one";
            report.hint(
                ".status",
                "the status does not say which spec it is about",
                advice,
            );
        }
    }
}
