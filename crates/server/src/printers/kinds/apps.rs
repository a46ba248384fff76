//! Workloads that keep pods running.

use serde_json::Value;

use super::{Entry, containers, entry};
use crate::printers::column::{AGE, Column, NAME, integer, text as column, wide};
use crate::printers::selector;
use crate::printers::view::{View, flag, text};

const TEMPLATE: &str = "spec.template.spec.containers";

const REPLICAS: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const DEPLOYMENT: &[Column] = &[
    NAME,
    column("Ready"),
    column("Up-to-date"),
    column("Available"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const STATEFUL_SET: &[Column] = &[
    NAME,
    column("Ready"),
    AGE,
    wide("Containers"),
    wide("Images"),
];

const DAEMON_SET: &[Column] = &[
    NAME,
    integer("Desired"),
    integer("Current"),
    integer("Ready"),
    integer("Up-to-date"),
    integer("Available"),
    column("Node Selector"),
    AGE,
    wide("Containers"),
    wide("Images"),
    wide("Selector"),
];

const CONTROLLER_REVISION: &[Column] = &[NAME, column("Controller"), column("Revision"), AGE];

pub(super) const KINDS: &[Entry] = &[
    entry("", "ReplicationController", REPLICAS, |view| {
        replicas(view, selector::labels(view.object, "spec.selector"))
    }),
    entry("apps", "ReplicaSet", REPLICAS, |view| {
        replicas(view, selector::selector(view.object, "spec.selector"))
    }),
    entry("apps", "Deployment", DEPLOYMENT, deployment),
    entry("apps", "StatefulSet", STATEFUL_SET, stateful_set),
    entry("apps", "DaemonSet", DAEMON_SET, daemon_set),
    entry(
        "apps",
        "ControllerRevision",
        CONTROLLER_REVISION,
        controller_revision,
    ),
];

fn replicas(view: &View<'_>, selector: String) -> Vec<Value> {
    let (names, images) = containers(view, TEMPLATE);
    cells![
        view.name(),
        view.int("spec.replicas"),
        view.int("status.replicas"),
        view.int("status.readyReplicas"),
        view.age(),
        names,
        images,
        selector,
    ]
}

fn deployment(view: &View<'_>) -> Vec<Value> {
    let (names, images) = containers(view, TEMPLATE);
    let selector = selector::query(view.object, "spec.selector");
    cells![
        view.name(),
        ready(view),
        view.int("status.updatedReplicas"),
        view.int("status.availableReplicas"),
        view.age(),
        names,
        images,
        selector.unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

fn stateful_set(view: &View<'_>) -> Vec<Value> {
    let (names, images) = containers(view, TEMPLATE);
    cells![view.name(), ready(view), view.age(), names, images]
}

/// `2/3`
fn ready(view: &View<'_>) -> String {
    let ready = view.int("status.readyReplicas");
    format!("{ready}/{}", view.int("spec.replicas"))
}

fn daemon_set(view: &View<'_>) -> Vec<Value> {
    let (names, images) = containers(view, TEMPLATE);
    cells![
        view.name(),
        view.int("status.desiredNumberScheduled"),
        view.int("status.currentNumberScheduled"),
        view.int("status.numberReady"),
        view.int("status.updatedNumberScheduled"),
        view.int("status.numberAvailable"),
        selector::labels(view.object, "spec.template.spec.nodeSelector"),
        view.age(),
        names,
        images,
        selector::selector(view.object, "spec.selector"),
    ]
}

fn controller_revision(view: &View<'_>) -> Vec<Value> {
    let controller = view
        .list("metadata.ownerReferences")
        .iter()
        .find(|owner| flag(owner, "controller"))
        .map_or_else(|| "<none>".to_owned(), owner_name);
    cells![view.name(), controller, view.int("revision"), view.age()]
}

/// `statefulset.apps/web`
fn owner_name(owner: &Value) -> String {
    let kind = text(owner, "kind").to_lowercase();
    let name = text(owner, "name");
    match text(owner, "apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{name}", group.to_lowercase()),
        None => format!("{kind}/{name}"),
    }
}
