//! Versions that are gone, and what each of them lost.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version,
    CustomResourceSubresources, JSONSchemaProps,
};

use super::schema;
use crate::finding::Report;

pub(super) fn compare(
    name: &str,
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
    report: &mut Report,
) {
    for old in &before.spec.versions {
        report.about(name, Some(&old.name));
        match after
            .spec
            .versions
            .iter()
            .find(|version| version.name == old.name)
        {
            Some(new) => version(old, new, report),
            None => removed(old, report),
        }
    }
    report.about(name, None);
    storage(before, after, report);
}

fn removed(old: &Version, report: &mut Report) {
    if old.storage {
        report.error(
            "",
            "the version that objects are stored in is gone",
            "store another version, migrate all objects, take this one out of status.storedVersions; then remove it",
        );
    } else if old.served {
        let advice = "mark it deprecated for some releases, then stop serving it, then remove it";
        report.error("", "the version is gone", advice);
    } else {
        let advice = "make sure that status.storedVersions does not name it";
        report.warning(
            "",
            "a version that was not served is gone; objects may be stored in it",
            advice,
        );
    }
}

fn storage(
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
    report: &mut Report,
) {
    let stored = |definition: &CustomResourceDefinition| {
        definition
            .spec
            .versions
            .iter()
            .find(|version| version.storage)
            .map(|version| version.name.clone())
    };
    if let (Some(old), Some(new)) = (stored(before), stored(after))
        && old != new
        && after
            .spec
            .versions
            .iter()
            .any(|version| version.name == old)
    {
        let advice = format!(
            "objects stay in {old} until they are written again: keep it until all are migrated"
        );
        report.hint("", format!("objects are now stored in {new}"), advice);
    }
}

fn version(old: &Version, new: &Version, report: &mut Report) {
    if old.served && !new.served {
        let advice = "mark it deprecated for some releases first";
        report.error("", "the version is no longer served", advice);
    }
    if old.deprecated != Some(true) && new.deprecated == Some(true) {
        let advice = "tell users what to use instead in deprecationWarning";
        report.hint("", "the version is now deprecated", advice);
    }
    subresources(old, new, report);
    columns(old, new, report);
    for field in old.selectable_fields.iter().flatten() {
        if !new
            .selectable_fields
            .iter()
            .flatten()
            .any(|new| new.json_path == field.json_path)
        {
            let advice = "keep it: field selectors that use it fail";
            report.error(
                &field.json_path,
                "the field is no longer selectable",
                advice,
            );
        }
    }
    if let (Some(old), Some(new)) = (schema_of(old), schema_of(new)) {
        schema::compare(old, new, report);
    }
}

fn schema_of(version: &Version) -> Option<&JSONSchemaProps> {
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

fn subresources(old: &Version, new: &Version, report: &mut Report) {
    let (old, new) = (old.subresources.as_ref(), new.subresources.as_ref());
    let status = |s: Option<&CustomResourceSubresources>| s.is_some_and(|s| s.status.is_some());
    let scale = |s: Option<&CustomResourceSubresources>| s.and_then(|s| s.scale.clone());
    match (status(old), status(new)) {
        (true, false) => {
            report.error(
                "",
                "the status subresource is gone",
                "keep it: controllers write through it",
            );
        }
        (false, true) => {
            let advice = "let controllers write the status through the subresource; elsewhere it is now ignored";
            report.warning("", "there is now a status subresource", advice);
        }
        _ => {}
    }
    match (scale(old), scale(new)) {
        (Some(_), None) => {
            report.error(
                "",
                "the scale subresource is gone",
                "keep it: autoscalers and `kubectl scale` use it",
            );
        }
        (Some(old), Some(new)) if old != new => {
            let advice = "make sure that both paths mean the same";
            report.warning("", "the scale subresource reads other fields", advice);
        }
        _ => {}
    }
}

fn columns(old: &Version, new: &Version, report: &mut Report) {
    for column in old.additional_printer_columns.iter().flatten() {
        if !new
            .additional_printer_columns
            .iter()
            .flatten()
            .any(|new| new.name == column.name)
        {
            let message = format!("the column {} is gone", column.name);
            report.hint("", message, "keep it if scripts read the output of kubectl");
        }
    }
}
