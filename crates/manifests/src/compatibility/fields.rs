//! Fields that are gone, that must now be there, and what they are when nobody sets them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::fields::{is_required, preserves_unknown, properties, property};
use crate::finding::Report;

pub(super) fn compare(
    path: &str,
    old: &JSONSchemaProps,
    new: &JSONSchemaProps,
    report: &mut Report,
) {
    removed(path, old, new, report);
    required(path, old, new, report);
    nullable(path, old, new, report);
    default(path, old, new, report);
    rules(path, old, new, report);
}

fn removed(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    for (name, _) in properties(old).filter(|(name, _)| property(new, name).is_none()) {
        let at = format!("{path}.{name}");
        if preserves_unknown(new) || new.additional_properties.is_some() {
            let advice = "keep it in the schema as long as it is used";
            report.warning(&at, "the field is no longer described", advice);
        } else {
            let advice = "keep it and say in its description that it is deprecated; servers prune unknown fields";
            report.error(&at, "the field is gone", advice);
        }
    }
}

fn required(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    for name in new
        .required
        .iter()
        .flatten()
        .filter(|name| !is_required(old, name))
    {
        let at = format!("{path}.{name}");
        if property(new, name).is_some_and(|field| field.default.is_some()) {
            continue;
        }
        let message = match property(old, name) {
            Some(_) => "the field is now required",
            None => "the field is new and required",
        };
        report.error(&at, message, "make it optional, or give it a default");
    }
    for name in old.required.iter().flatten() {
        if property(new, name).is_some() && !is_required(new, name) {
            let at = format!("{path}.{name}");
            let advice = "make sure that controllers and clients do without it";
            report.hint(
                &at,
                "the field is no longer required: who reads it may not find it",
                advice,
            );
        }
    }
}

fn nullable(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    if old.nullable == Some(true) && new.nullable != Some(true) {
        let advice = "keep nullable: objects that have null there are refused, or get the default";
        report.error(path, "it may no longer be null", advice);
    }
}

fn default(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let advice =
        "objects that left it to the default change what they mean; a new version is safer";
    match (&old.default, &new.default) {
        (Some(old), Some(new)) if old != new => {
            let message = format!("the default has changed from {} to {}", old.0, new.0);
            report.warning(path, message, advice);
        }
        (Some(old), None) => report.warning(path, format!("the default {} is gone", old.0), advice),
        (None, Some(new)) if !path.is_empty() => {
            let advice =
                "objects that do not set it now do; make sure that this means the same as before";
            report.hint(path, format!("there is now a default: {}", new.0), advice);
        }
        _ => {}
    }
}

fn rules(path: &str, old: &JSONSchemaProps, new: &JSONSchemaProps, report: &mut Report) {
    let known = |rule: &str| {
        old.x_kubernetes_validations
            .iter()
            .flatten()
            .any(|old| old.rule.trim() == rule.trim())
    };
    for rule in new
        .x_kubernetes_validations
        .iter()
        .flatten()
        .filter(|rule| !known(&rule.rule))
    {
        let advice = "values that stay as they are pass, changed and new ones must obey; make sure that those in use do";
        report.warning(
            path,
            format!("there is a new rule: {}", rule.rule.trim()),
            advice,
        );
    }
}
