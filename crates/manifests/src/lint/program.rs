//! Whether the parts of a program fit together: webhooks, conversions, controllers and the kinds that they are about.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::finding::{Finding, Report};
use crate::{Inventory, Webhook};

/// Groups of Kubernetes whose names do not end with `.k8s.io`.
const BUILT_IN: &[&str] = &[
    "",
    "core",
    "*",
    "apps",
    "autoscaling",
    "batch",
    "extensions",
    "policy",
];

pub(super) fn check(inventory: &Inventory) -> Vec<Finding> {
    let mut report = Report::default();
    for hook in &inventory.webhooks {
        report.about(&hook.name, None);
        webhook(hook, &inventory.definitions, &mut report);
    }
    for definition in &inventory.definitions {
        report.about(
            definition.metadata.name.as_deref().unwrap_or("(no name)"),
            None,
        );
        conversion(inventory, definition, &mut report);
    }
    controllers(inventory, &mut report);
    report.finish()
}

/// Nobody asks a webhook about a kind that does not exist, and nobody says so.
fn webhook(hook: &Webhook, definitions: &[CustomResourceDefinition], report: &mut Report) {
    for group in &hook.groups {
        let own: Vec<&CustomResourceDefinition> = definitions
            .iter()
            .filter(|known| known.spec.group == *group)
            .collect();
        let is_known = BUILT_IN.contains(&group.as_str()) || group.ends_with(".k8s.io");
        if own.is_empty() {
            if !is_known && !definitions.is_empty() {
                let groups: BTreeSet<&str> = definitions.iter().map(|it| &*it.spec.group).collect();
                let groups: Vec<&str> = groups.into_iter().collect();
                report.warning(
                    "groups",
                    format!("{group:?} is neither a group of this program nor of Kubernetes"),
                    format!("nobody asks it unless somebody else defines the group; this program has {}", groups.join(", ")),
                );
            }
            continue;
        }
        for resource in &hook.resources {
            resource_of(hook, group, resource, &own, report);
        }
    }
}

fn resource_of(
    hook: &Webhook,
    group: &str,
    resource: &str,
    own: &[&CustomResourceDefinition],
    report: &mut Report,
) {
    let name = resource.split('/').next().unwrap_or_default();
    if name == "*" {
        return;
    }
    let Some(definition) = own.iter().find(|known| known.spec.names.plural == name) else {
        let plurals: Vec<&str> = own.iter().map(|known| &*known.spec.names.plural).collect();
        let message = format!("{group} has no resource {name:?}: the webhook is never asked");
        report.error(
            "resources",
            message,
            format!("use {}", plurals.join(" or ")),
        );
        return;
    };
    let versions: Vec<&str> = definition
        .spec
        .versions
        .iter()
        .map(|it| &*it.name)
        .collect();
    for version in hook
        .versions
        .iter()
        .filter(|it| *it != "*" && !versions.contains(&it.as_str()))
    {
        report.error(
            "versions",
            format!("{name}.{group} has no version {version:?}"),
            format!("use {}", versions.join(" or ")),
        );
    }
}

/// A version that nothing converts cannot be read.
fn conversion(inventory: &Inventory, definition: &CustomResourceDefinition, report: &mut Report) {
    let by_webhook = |it: &CustomResourceDefinition| {
        it.spec
            .conversion
            .as_ref()
            .is_some_and(|conversion| conversion.strategy == "Webhook")
    };
    // Programs that knew no formats do not say what they convert.
    if inventory.format == 0 || !by_webhook(definition) {
        return;
    }
    let spec = &definition.spec;
    let is_it = |it: &&crate::Converted| it.group == spec.group && it.kind == spec.names.kind;
    let known = inventory.conversions.iter().find(is_it);
    let known = known.map(|it| it.versions.as_slice()).unwrap_or_default();
    let missing: Vec<&str> = spec
        .versions
        .iter()
        .map(|version| version.name.as_str())
        .filter(|version| !known.iter().any(|it| it == version))
        .collect();
    if spec.versions.len() > 1 && !missing.is_empty() {
        report.error(
            "spec.conversion",
            format!("nothing converts {}: requests for objects in that version fail", missing.join(", ")),
            "implement Spoke for each version but the hub, with #[kubewright::conversion]; kubewright create webhook \
             --conversion writes it",
        );
    }
}

/// Logs, metrics and leases tell controllers apart by their names.
fn controllers(inventory: &Inventory, report: &mut Report) {
    report.about("the program", None);
    let mut seen = BTreeSet::new();
    for name in &inventory.controllers {
        if !seen.insert(name) {
            let message =
                format!("two controllers are called {name:?}: the program does not start");
            report.error("", message, "give one of them another name");
        }
    }
}
