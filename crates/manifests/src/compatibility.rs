//! Finds what breaks users when definitions change: objects they have, manifests they apply, clients they wrote.
//!
//! Errors break somebody for certain, warnings under circumstances. What is tightened is an error although servers
//! leave unchanged values of stored objects alone: whoever creates an object has no old value.

mod fields;
mod limits;
mod schema;
#[cfg(test)]
mod tests;
mod versions;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::finding::{Finding, Report};

/// What breaks between an old set of definitions and a new one: the worst first for each definition, and these by name.
pub fn compare(old: &[CustomResourceDefinition], new: &[CustomResourceDefinition]) -> Vec<Finding> {
    let (old, new) = (by_name(old), by_name(new));
    let mut findings = Vec::new();
    for (name, before) in &old {
        let mut report = Report::default();
        report.about(name, None);
        match new.get(name) {
            Some(after) => definition(name, before, after, &mut report),
            None => removed(before, new.values().copied(), &mut report),
        }
        let mut found = report.finish();
        found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings.extend(found);
    }
    findings
}

fn by_name(
    definitions: &[CustomResourceDefinition],
) -> BTreeMap<String, &CustomResourceDefinition> {
    let name = |definition: &CustomResourceDefinition| {
        format!("{}.{}", definition.spec.names.plural, definition.spec.group)
    };
    definitions
        .iter()
        .map(|definition| (name(definition), definition))
        .collect()
}

/// A definition that is gone may have got another name.
fn removed<'a>(
    before: &CustomResourceDefinition,
    new: impl Iterator<Item = &'a CustomResourceDefinition>,
    report: &mut Report,
) {
    let kind = &before.spec.names.kind;
    let advice =
        "keep the old definition until nobody uses it: deleting it deletes all its objects";
    let mut same_kind = new.filter(|after| after.spec.names.kind == *kind);
    let message = match same_kind.next() {
        Some(after) if after.spec.group == before.spec.group => {
            format!(
                "the plural of {kind} has become {}",
                after.spec.names.plural
            )
        }
        Some(after) => format!("the group of {kind} has become {}", after.spec.group),
        None => format!("the kind {kind} is gone"),
    };
    report.error("", message, advice);
}

fn definition(
    name: &str,
    before: &CustomResourceDefinition,
    after: &CustomResourceDefinition,
    report: &mut Report,
) {
    let (old, new) = (&before.spec, &after.spec);
    let immutable = "servers refuse the change; make a new kind";
    if old.scope != new.scope {
        report.error(
            "spec.scope",
            format!("the scope has become {}", new.scope),
            immutable,
        );
    }
    if old.names.kind != new.names.kind {
        report.error(
            "spec.names.kind",
            format!("the kind has become {}", new.names.kind),
            immutable,
        );
    }
    names(before, after, report);
    let webhook = |definition: &CustomResourceDefinition| {
        definition
            .spec
            .conversion
            .as_ref()
            .is_some_and(|c| c.strategy == "Webhook")
    };
    if webhook(before) && !webhook(after) {
        let advice =
            "keep the webhook as long as objects of several versions are stored or asked for";
        report.warning(
            "spec.conversion",
            "objects are no longer converted between versions",
            advice,
        );
    }
    versions::compare(name, before, after, report);
}

fn names(before: &CustomResourceDefinition, after: &CustomResourceDefinition, report: &mut Report) {
    let (old, new) = (&before.spec.names, &after.spec.names);
    let gone = |old: &Option<Vec<String>>, new: &Option<Vec<String>>| -> Vec<String> {
        let kept = |name: &&String| !new.iter().flatten().any(|new| new == *name);
        old.iter().flatten().filter(kept).cloned().collect()
    };
    for short in gone(&old.short_names, &new.short_names) {
        let advice = "keep it: people and scripts type it";
        report.warning(
            "spec.names.shortNames",
            format!("the short name {short} is gone"),
            advice,
        );
    }
    for category in gone(&old.categories, &new.categories) {
        let advice = "keep it: people and scripts type it";
        report.hint(
            "spec.names.categories",
            format!("the category {category} is gone"),
            advice,
        );
    }
    let singular =
        |names: &Option<String>, kind: &str| names.clone().unwrap_or_else(|| kind.to_lowercase());
    let singular_now = singular(&new.singular, &new.kind);
    if singular(&old.singular, &old.kind) != singular_now {
        let message = format!("the singular has become {singular_now}");
        report.warning(
            "spec.names.singular",
            message,
            "keep it: people and scripts type it",
        );
    }
    let list =
        |names: &Option<String>, kind: &str| names.clone().unwrap_or_else(|| format!("{kind}List"));
    let list_now = list(&new.list_kind, &new.kind);
    if list(&old.list_kind, &old.kind) != list_now {
        let message = format!("the kind of lists has become {list_now}");
        report.error(
            "spec.names.listKind",
            message,
            "keep it: clients read lists by their kind",
        );
    }
}
