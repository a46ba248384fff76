//! Containers of pods: names, images, ports, and all that stands in them.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::volume::Volumes;
use super::{environment, mount, probe, resources, security};
use crate::kinds::checks::{Errors, invalid_each, one_of_if_set, port_number, required_one_of};
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, items, text};

const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];

/// What all containers of a pod are checked against.
pub(super) struct Surroundings<'a> {
    pub(super) volumes: Volumes<'a>,
    pub(super) grace_period: Option<i64>,
}

/// Checks `containers`, of which there must be one.
pub(super) fn validate_all(
    spec: &Value,
    around: &Surroundings<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let containers = items(&spec["containers"]);
    let path = path.child("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let path = path.index(i);
        validate_common(container, around, &path, errors);
        let name = text(&container["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(path.child("name"), &name.into()));
        }
        probe::validate(container, around.grace_period, &path, errors);
        let restart = path.child("restartPolicy");
        one_of_if_set(
            &container["restartPolicy"],
            &RESTART_POLICIES,
            &restart,
            errors,
        );
    }
    validate_host_ports(containers, &path, errors);
}

/// Checks `initContainers`, whose names must differ from those of `containers` as well.
pub(super) fn validate_init(
    spec: &Value,
    around: &Surroundings<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let path = path.child("initContainers");
    let mut seen: BTreeSet<&str> = items(&spec["containers"])
        .iter()
        .map(|c| text(&c["name"]))
        .collect();
    for (i, container) in items(&spec["initContainers"]).iter().enumerate() {
        let at = path.index(i);
        validate_common(container, around, &at, errors);
        let restart = &container["restartPolicy"];
        one_of_if_set(
            restart,
            &RESTART_POLICIES,
            &at.child("restartPolicy"),
            errors,
        );
        let name = text(&container["name"]);
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(at.child("name"), &name.into()));
        }
        validate_host_ports(std::slice::from_ref(container), &path, errors);
        if text(restart) == "Always" {
            probe::validate(container, around.grace_period, &at, errors);
            continue;
        }
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if !container[field].is_null() {
                let text = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(at.child(field), text));
            }
        }
    }
}

/// Checks what all kinds of containers have.
pub(super) fn validate_common(
    container: &Value,
    around: &Surroundings<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    match text(&container["name"]) {
        "" => errors.push(FieldError::required(path.child("name"), "")),
        name => invalid_each(
            names::dns1123_label(name),
            name,
            &path.child("name"),
            errors,
        ),
    }
    if is_empty(&container["image"]) {
        errors.push(FieldError::required(path.child("image"), ""));
    }
    required_one_of(
        &container["terminationMessagePolicy"],
        &["File", "FallbackToLogsOnError"],
        &path.child("terminationMessagePolicy"),
        errors,
    );
    validate_ports(&container["ports"], &path.child("ports"), errors);
    environment::validate(container, path, errors);
    mount::validate(container, &around.volumes, path, errors);
    required_one_of(
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
        &path.child("imagePullPolicy"),
        errors,
    );
    resources::validate(&container["resources"], &path.child("resources"), errors);
    let context = path.child("securityContext");
    security::validate_container(&container["securityContext"], &context, errors);
}

fn validate_ports(ports: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, port) in items(ports).iter().enumerate() {
        let path = path.index(i);
        let name = text(&port["name"]);
        if !name.is_empty() {
            let complaints = names::port_name(name);
            if complaints.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(path.child("name"), &name.into()));
            }
            invalid_each(complaints, name, &path.child("name"), errors);
        }
        let number = &port["containerPort"];
        if number.as_i64().unwrap_or(0) == 0 {
            errors.push(FieldError::required(path.child("containerPort"), ""));
        } else {
            port_number(number, &path.child("containerPort"), errors);
        }
        if port["hostPort"].as_i64().unwrap_or(0) != 0 {
            port_number(&port["hostPort"], &path.child("hostPort"), errors);
        }
        let protocol = path.child("protocol");
        required_one_of(
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            &protocol,
            errors,
        );
    }
}

fn validate_host_ports(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let container_path = path.index(i);
        let ports_path = container_path.child("ports");
        for (j, port) in items(&container["ports"]).iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or(0);
            let key = format!(
                "{}/{}/{number}",
                text(&port["protocol"]),
                text(&port["hostIP"])
            );
            if number != 0 && !taken.insert(key.clone()) {
                let port_path = ports_path.index(j);
                errors.push(FieldError::duplicate(
                    port_path.child("hostPort"),
                    &key.into(),
                ));
            }
        }
    }
}
