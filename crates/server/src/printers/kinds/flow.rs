//! The API server's own kinds: flow control, storage versions, aggregated APIs.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column};
use crate::printers::view::{View, condition, or, text, with_more};

const FLOW_GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// How many storage versions a cell shows.
const SHOWN: usize = 3;

const FLOW_SCHEMA: &[Column] = &[
    NAME,
    column("PriorityLevel"),
    column("MatchingPrecedence"),
    column("DistinguisherMethod"),
    AGE,
    column("MissingPL"),
];

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    column("Type"),
    column("NominalConcurrencyShares"),
    column("Queues"),
    column("HandSize"),
    column("QueueLengthLimit"),
    AGE,
];

const STORAGE_VERSION: &[Column] = &[
    NAME,
    column("CommonEncodingVersion"),
    column("StorageVersions"),
    AGE,
];

const MIGRATION: &[Column] = &[column("Name"), column("Resource"), column("Status")];
const API_SERVICE: &[Column] = &[NAME, column("Service"), column("Available"), AGE];

pub(super) const KINDS: &[Entry] = &[
    entry(FLOW_GROUP, "FlowSchema", FLOW_SCHEMA, flow_schema),
    entry(
        FLOW_GROUP,
        "PriorityLevelConfiguration",
        PRIORITY_LEVEL,
        priority_level,
    ),
    entry(
        "internal.apiserver.k8s.io",
        "StorageVersion",
        STORAGE_VERSION,
        storage_version,
    ),
    entry(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        MIGRATION,
        migration,
    ),
    entry(
        "apiregistration.k8s.io",
        "APIService",
        API_SERVICE,
        api_service,
    ),
];

fn flow_schema(view: &View<'_>) -> Vec<Value> {
    let dangling = condition(view.list("status.conditions"), "Dangling");
    cells![
        view.name(),
        view.text("spec.priorityLevelConfiguration.name"),
        view.int("spec.matchingPrecedence"),
        or(view.text("spec.distinguisherMethod.type"), "<none>"),
        view.age(),
        dangling.map_or("?", |found| text(found, "status")),
    ]
}

fn priority_level(view: &View<'_>) -> Vec<Value> {
    let limited = |path: &str| match view.at("spec.limited") {
        Some(_) => Value::from(view.int(path)),
        None => Value::from("<none>"),
    };
    let queuing = |path: &str| match view.at("spec.limited.limitResponse.queuing") {
        Some(_) => Value::from(view.int(path)),
        None => Value::from("<none>"),
    };
    cells![
        view.name(),
        view.text("spec.type"),
        limited("spec.limited.nominalConcurrencyShares"),
        queuing("spec.limited.limitResponse.queuing.queues"),
        queuing("spec.limited.limitResponse.queuing.handSize"),
        queuing("spec.limited.limitResponse.queuing.queueLengthLimit"),
        view.age(),
    ]
}

fn storage_version(view: &View<'_>) -> Vec<Value> {
    let versions: Vec<String> = view
        .list("status.storageVersions")
        .iter()
        .map(|v| format!("{}={}", text(v, "apiServerID"), text(v, "encodingVersion")))
        .collect();
    let versions = with_more(&versions, ",", SHOWN, versions.len());
    cells![
        view.name(),
        or(view.text("status.commonEncodingVersion"), "<unset>"),
        or(&versions, "<unset>"),
        view.age(),
    ]
}

fn migration(view: &View<'_>) -> Vec<Value> {
    let resource = match view.text("spec.resource.group") {
        "" => view.text("spec.resource.resource").to_owned(),
        group => format!("{}.{group}", view.text("spec.resource.resource")),
    };
    let status = view
        .list("status.conditions")
        .iter()
        .filter(|condition| text(condition, "status") == "True")
        .map(|condition| text(condition, "type"))
        .rfind(|type_| matches!(*type_, "Running" | "Failed" | "Succeeded"))
        .unwrap_or("Unknown");
    cells![view.name(), resource, status]
}

fn api_service(view: &View<'_>) -> Vec<Value> {
    let service = match view.at("spec.service") {
        Some(service) => format!("{}/{}", text(service, "namespace"), text(service, "name")),
        None => "Local".to_owned(),
    };
    cells![view.name(), service, available(view), view.age()]
}

/// `True`, or `False (FailedDiscoveryCheck)`.
fn available(view: &View<'_>) -> String {
    let Some(found) = condition(view.list("status.conditions"), "Available") else {
        return "Unknown".to_owned();
    };
    match (text(found, "status"), text(found, "reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
