//! Core kinds without a story of their own: namespaces, configuration, accounts, quotas, leases.

use serde_json::Value;

use super::{Entry, entry, name_and_age};
use crate::printers::column::{AGE, Column, NAME, text};
use crate::printers::view::{View, as_scalar, condition, map, text as read};

const NAMESPACE: &[Column] = &[NAME, text("Status"), AGE];
const SECRET: &[Column] = &[NAME, text("Type"), text("Data"), AGE];
const CONFIG_MAP: &[Column] = &[NAME, text("Data"), AGE];
const SERVICE_ACCOUNT: &[Column] = &[NAME, AGE];
const RESOURCE_QUOTA: &[Column] = &[NAME, text("Request"), text("Limit"), AGE];
const COMPONENT_STATUS: &[Column] = &[NAME, text("Status"), text("Message"), text("Error")];
const STATUS: &[Column] = &[text("Status"), text("Reason"), text("Message")];
const LEASE: &[Column] = &[NAME, text("Holder"), AGE];
const LEASE_CANDIDATE: &[Column] = &[
    NAME,
    text("LeaseName"),
    text("BinaryVersion"),
    text("EmulationVersion"),
    AGE,
];

pub(super) const KINDS: &[Entry] = &[
    entry("", "Namespace", NAMESPACE, namespace),
    entry("", "Secret", SECRET, secret),
    entry("", "ConfigMap", CONFIG_MAP, config_map),
    entry("", "ServiceAccount", SERVICE_ACCOUNT, name_and_age),
    entry("", "ResourceQuota", RESOURCE_QUOTA, resource_quota),
    entry("", "ComponentStatus", COMPONENT_STATUS, component_status),
    entry("", "Status", STATUS, status),
    entry("coordination.k8s.io", "Lease", LEASE, lease),
    entry(
        "coordination.k8s.io",
        "LeaseCandidate",
        LEASE_CANDIDATE,
        lease_candidate,
    ),
];

fn namespace(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.text("status.phase"), view.age()]
}

fn secret(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.text("type"),
        entries(view, "data"),
        view.age()
    ]
}

fn config_map(view: &View<'_>) -> Vec<Value> {
    let count = entries(view, "data") + entries(view, "binaryData");
    cells![view.name(), count, view.age()]
}

fn entries(view: &View<'_>, path: &str) -> usize {
    map(view.object, path).map_or(0, serde_json::Map::len)
}

/// `cpu: 0/1, pods: 2/10`, what is about limits in a column of its own.
fn resource_quota(view: &View<'_>) -> Vec<Value> {
    let mut hard: Vec<&String> = map(view.object, "status.hard")
        .map(|hard| hard.keys().collect())
        .unwrap_or_default();
    hard.sort_unstable();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for resource in hard {
        let used = amount(view, "status.used", resource);
        let hard = amount(view, "status.hard", resource);
        let column = if resource.starts_with("limits.") {
            &mut limits
        } else {
            &mut requests
        };
        column.push(format!("{resource}: {used}/{hard}"));
    }
    cells![
        view.name(),
        requests.join(", "),
        limits.join(", "),
        view.age()
    ]
}

fn amount(view: &View<'_>, side: &str, resource: &str) -> String {
    let amount = view.at(side).and_then(|amounts| amounts.get(resource));
    amount.and_then(as_scalar).unwrap_or_else(|| "0".to_owned())
}

fn component_status(view: &View<'_>) -> Vec<Value> {
    let healthy = condition(view.list("conditions"), "Healthy");
    let status = match healthy.map(|found| read(found, "status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let field = |name| healthy.map_or("", |found| read(found, name));
    cells![view.name(), status, field("message"), field("error")]
}

fn status(view: &View<'_>) -> Vec<Value> {
    cells![
        view.text("status"),
        view.text("reason"),
        view.text("message")
    ]
}

fn lease(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.text("spec.holderIdentity"), view.age()]
}

fn lease_candidate(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.text("spec.leaseName"),
        view.text("spec.binaryVersion"),
        view.text("spec.emulationVersion"),
        view.age(),
    ]
}
