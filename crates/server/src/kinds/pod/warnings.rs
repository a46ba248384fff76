//! Warnings about pods that are good enough: definitions that hide each other, and fields that no longer work.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kinds::path::Path;
use crate::kinds::value::{items, text};

/// Volume types that do nothing any more, and since when.
const DEAD_VOLUMES: [(&str, &str); 9] = [
    (
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warnings about the pods of an object with a template.
pub(crate) fn of_template(object: &Value) -> Vec<String> {
    let spec = &object["spec"]["template"]["spec"];
    of_spec(spec, &Path::Root("spec.template.spec"))
}

/// Warnings about a pod spec at a path.
pub(crate) fn of_spec(spec: &Value, path: &Path<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let spread = path.child("topologySpreadConstraints");
    for (i, constraint) in items(&spec["topologySpreadConstraints"]).iter().enumerate() {
        if constraint["labelSelector"].is_null() {
            let at = spread.index(i);
            let at = at.child("labelSelector");
            out.push(format!(
                "{at}: a null labelSelector results in matching no pod"
            ));
        }
    }
    let volumes = path.child("volumes");
    for (i, volume) in items(&spec["volumes"]).iter().enumerate() {
        for (source, text) in DEAD_VOLUMES {
            if !volume[source].is_null() {
                out.push(format!("{}: {text}", volumes.index(i).child(source)));
            }
        }
    }
    let secrets = items(&spec["imagePullSecrets"])
        .iter()
        .map(|s| text(&s["name"]));
    for (i, name) in repeated(secrets) {
        out.push(format!(
            "{path}.imagePullSecrets[{i}].name: duplicate name {name:?}"
        ));
    }
    for list in ["initContainers", "containers"] {
        let path = path.child(list);
        for (i, container) in items(&spec[list]).iter().enumerate() {
            container_warnings(container, &path.index(i), &mut out);
        }
    }
    ports(spec, path, &mut out);
    out
}

fn container_warnings(container: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (i, variable) in items(&container["env"]).iter().enumerate() {
        let (name, value) = (text(&variable["name"]), text(&variable["value"]));
        let reference = format!("$({name})");
        let hides =
            !variable["valueFrom"].is_null() || value == reference || !value.contains(&reference);
        if !seen.insert(name) && hides {
            out.push(format!(
                "{path}.env[{i}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

/// Container ports that stand twice, within a container or across.
fn ports(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let mut definitions = BTreeMap::new();
    let mut port_names = BTreeMap::new();
    for (i, container) in items(&spec["containers"]).iter().enumerate() {
        for (j, port) in items(&container["ports"]).iter().enumerate() {
            let at = format!("{path}.containers[{i}].ports[{j}]");
            let host = (text(&port["hostIP"]), port["hostPort"].as_i64());
            let number = (text(&port["protocol"]), port["containerPort"].as_i64());
            match definitions.entry((number, host)) {
                Entry::Occupied(first) => {
                    let first: &String = first.get();
                    out.push(format!("{at}: duplicate port definition with {first}"));
                }
                Entry::Vacant(free) => drop(free.insert(at.clone())),
            }
            let name = text(&port["name"]);
            match port_names.entry(name) {
                Entry::Occupied(first) if !name.is_empty() => {
                    let first: &String = first.get();
                    out.push(format!(
                        "{at}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}"
                    ));
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(free) => drop(free.insert(at)),
            }
        }
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut seen = BTreeSet::new();
    names
        .enumerate()
        .filter(|(_, name)| !seen.insert(*name))
        .collect()
}
