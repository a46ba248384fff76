//! Nodes: readiness, roles from labels, and the machine below.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column, wide};
use crate::printers::view::{View, flag, map, or, text};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

const NODE: &[Column] = &[
    NAME,
    column("Status"),
    column("Roles"),
    AGE,
    column("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

pub(super) const KINDS: &[Entry] = &[entry("", "Node", NODE, node)];

fn node(view: &View<'_>) -> Vec<Value> {
    let info = |field: &str| {
        view.at("status.nodeInfo")
            .map_or("", |info| text(info, field))
    };
    cells![
        view.name(),
        status(view),
        roles(view),
        view.age(),
        info("kubeletVersion"),
        address(view, "InternalIP"),
        address(view, "ExternalIP"),
        or(info("osImage"), "<unknown>"),
        kernel(info("kernelVersion"), info("architecture")),
        or(info("containerRuntimeVersion"), "<unknown>"),
    ]
}

/// `6.1.0 (amd64)`: the architecture only where the node reports it.
fn kernel(version: &str, architecture: &str) -> String {
    let version = or(version, "<unknown>");
    match architecture {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn status(view: &View<'_>) -> String {
    // A condition reported twice counts as it was reported last.
    let ready = view
        .list("status.conditions")
        .iter()
        .rfind(|condition| text(condition, "type") == "Ready")
        .map(|condition| text(condition, "status") == "True");
    let status = match ready {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    };
    if flag(view.object, "spec.unschedulable") {
        format!("{status},SchedulingDisabled")
    } else {
        status.to_owned()
    }
}

fn roles(view: &View<'_>) -> String {
    let mut roles = BTreeSet::new();
    for (key, value) in map(view.object, "metadata.labels").into_iter().flatten() {
        let role = match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => role,
            None if key == ROLE_LABEL => value.as_str().unwrap_or_default(),
            None => "",
        };
        if !role.is_empty() {
            roles.insert(role);
        }
    }
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(view: &View<'a>, type_: &str) -> &'a str {
    view.list("status.addresses")
        .iter()
        .find(|address| text(address, "type") == type_)
        .map_or("<none>", |address| text(address, "address"))
}
