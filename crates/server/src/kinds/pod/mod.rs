//! Pods, and the pod templates inside other kinds.

mod container;
mod defaults;
mod environment;
mod ephemeral;
mod mount;
mod probe;
mod quality;
mod resources;
mod scheduling;
mod security;
mod spec;
mod update;
mod volume;
mod warnings;

pub(super) use defaults::{resource_list as default_resource_list, template as default_template};
pub(crate) use ephemeral::validate_added as validate_ephemeral_containers;
pub(crate) use quality::class as quality_class;
pub(super) use resources::validate_quantity;
pub(super) use scheduling::{validate_node_selector, validate_taints};
pub(super) use spec::{mismatch, validate_runs_forever, validate_selected, validate_template};
pub(super) use volume::network_disk as default_network_disk;
pub(super) use warnings::{of_spec as spec_warnings, of_template as template_warnings};

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::checks::Errors;
use super::path::Path;
use super::strategy::{CreateContext, Deletion, FieldLabels, Generation, StatusMeta, Strategy};
use super::value::{copy, ensure, is_empty, is_true, items, map, set, set_default, text};

/// Pods.
pub(super) static POD: Strategy = Strategy {
    generation: Generation::Field("spec"),
    has_status: true,
    status_meta: StatusMeta::KeepOwners,
    returns_deleted_object: true,
    deletion: Deletion::Graceful,
    field_labels: FieldLabels::Listed(&[
        "metadata.name",
        "metadata.namespace",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ]),
    default: defaults::pod,
    create,
    update: keep_admitted,
    status_update,
    validate,
    validate_create_only,
    validate_update: update::validate,
    validate_status: update::validate_status,
    name_appears_in: Some("the Pod's hostname"),
    warnings: |pod| warnings::of_spec(&pod["spec"], &Path::Root("spec")),
    fields,
    ..Strategy::PLAIN
};

/// A new pod is pending, and what admission always gives it is in its spec.
fn create(pod: &mut Value, _: &CreateContext<'_>) {
    let spec = ensure(pod, "spec");
    tolerate_node_trouble(spec);
    let priority = match text(&spec["priorityClassName"]) {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    };
    set_default(spec, "priority", priority);
    set_default(spec, "preemptionPolicy", "PreemptLowerPriority");
    let mut status = json!({"phase": "Pending", "qosClass": quality::class(spec)});
    if !items(&spec["schedulingGates"]).is_empty() {
        set(
            &mut status,
            "conditions",
            json!([{
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }]),
        );
    }
    set(pod, "status", status);
}

/// An update that leaves out what admission gave the pod keeps it.
fn keep_admitted(new: &mut Value, old: &Value) {
    let spec = ensure(new, "spec");
    tolerate_node_trouble(spec);
    for field in ["priority", "preemptionPolicy"] {
        if spec[field].is_null() {
            copy(spec, &old["spec"], field);
        }
    }
}

/// A pod stays for five minutes on a node that is not ready or not reachable, unless it says otherwise.
fn tolerate_node_trouble(spec: &mut Value) {
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let tolerated = items(&spec["tolerations"]).iter().any(|toleration| {
            let (named, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
            (named == key || named.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if tolerated {
            continue;
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
        });
        let tolerations = map(spec).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(tolerations) = tolerations.as_array_mut() {
            tolerations.push(toleration);
        }
    }
}

fn status_update(new: &mut Value, old: &Value) {
    if is_empty(&new["status"]["qosClass"]) {
        let class = old["status"]["qosClass"].clone();
        if !class.is_null() {
            set(ensure(new, "status"), "qosClass", class);
        }
    }
}

fn validate(pod: &Value, errors: &mut Errors) {
    spec::validate(&pod["spec"], &Path::Root("spec"), errors);
}

fn validate_create_only(pod: &Value, errors: &mut Errors) {
    let (spec, path) = (&pod["spec"], Path::Root("spec"));
    if !items(&spec["ephemeralContainers"]).is_empty() {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(path, "cannot be set on create"));
    }
    if !is_empty(&spec["nodeName"]) && !items(&spec["schedulingGates"]).is_empty() {
        let text = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(path.child("nodeName"), text));
    }
}

fn fields(pod: &Value) -> Vec<(&'static str, String)> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let address = match items(&status["podIPs"]).first() {
        Some(first) => text(&first["ip"]),
        None => text(&status["podIP"]),
    };
    vec![
        ("spec.nodeName", text(&spec["nodeName"]).to_owned()),
        (
            "spec.restartPolicy",
            text(&spec["restartPolicy"]).to_owned(),
        ),
        (
            "spec.schedulerName",
            text(&spec["schedulerName"]).to_owned(),
        ),
        (
            "spec.serviceAccountName",
            text(&spec["serviceAccountName"]).to_owned(),
        ),
        (
            "spec.hostNetwork",
            is_true(&spec["hostNetwork"]).to_string(),
        ),
        ("status.phase", text(&status["phase"]).to_owned()),
        ("status.podIP", address.to_owned()),
        (
            "status.nominatedNodeName",
            text(&status["nominatedNodeName"]).to_owned(),
        ),
    ]
}

#[cfg(test)]
mod tests;
