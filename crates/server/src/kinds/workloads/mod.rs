//! Controllers of pods: Deployments, ReplicaSets, StatefulSets, DaemonSets and the legacy kinds.

mod daemonset;
mod deployment;
mod legacy;
mod replicaset;
mod statefulset;

pub(super) use daemonset::DAEMON_SET;
pub(super) use deployment::DEPLOYMENT;
pub(super) use legacy::{CONTROLLER_REVISION, POD_TEMPLATE, REPLICATION_CONTROLLER};
pub(super) use replicaset::REPLICA_SET;
pub(super) use statefulset::STATEFUL_SET;

use kubewright_schema::{FieldError, Reason};
use serde_json::Value;

use super::checks::{Errors, non_negative_fields};
use super::path::Path;
use super::pod;
use super::selector;

const SPEC: Path<'static> = Path::Root("spec");

/// Checks that a selector is there, reads, and says something. Says whether it can be asked.
fn validate_selector(spec: &Value, empty: &str, errors: &mut Errors) -> bool {
    let choice = &spec["selector"];
    let path = SPEC.child("selector");
    if choice.is_null() {
        errors.push(FieldError::required(path, ""));
        return true;
    }
    let before = errors.len();
    selector::validate(choice, &path, errors);
    let reads = errors.len() == before;
    if selector::is_empty(choice) {
        errors.push(FieldError::invalid(path, choice, empty));
    }
    reads
}

/// Checks selector and template of a ReplicaSet or Deployment.
fn validate_replicated(spec: &Value, errors: &mut Errors) {
    if !validate_selector(spec, "empty selector is invalid for deployment", errors) {
        let text = "invalid label selector";
        errors.push(FieldError::invalid(
            SPEC.child("selector"),
            &spec["selector"],
            text,
        ));
        return;
    }
    let (template, path) = (&spec["template"], SPEC.child("template"));
    pod::validate_selected(&spec["selector"], template, &path, errors);
    pod::validate_template(template, &path, errors);
    pod::validate_runs_forever(template, "ReplicaSet", &path, errors);
}

/// Checks the counts of a status: none below zero, none above `replicas`, none available that is not ready.
fn validate_counts(
    new: &Value,
    old: &Value,
    within: &[&str],
    counts: &[&str],
    errors: &mut Errors,
) {
    let (status, path) = (&new["status"], Path::Root("status"));
    non_negative_fields(status, counts, &path, errors);
    non_negative_fields(status, within, &path, errors);
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    for field in within {
        if count(field) > count("replicas") {
            let text = "cannot be greater than status.replicas";
            errors.push(FieldError::invalid(
                path.child(field),
                &count(field).into(),
                text,
            ));
        }
    }
    let available = count("availableReplicas");
    if available > count("readyReplicas") {
        let text = "cannot be greater than readyReplicas";
        errors.push(FieldError::invalid(
            path.child("availableReplicas"),
            &available.into(),
            text,
        ));
    }
    validate_collisions(new, old, errors);
}

fn validate_collisions(new: &Value, old: &Value, errors: &mut Errors) {
    let count = |object: &Value| object["status"]["collisionCount"].as_i64().unwrap_or(0);
    if count(new) < count(old) {
        let path = Path::Root("status");
        let text = "cannot be decremented";
        errors.push(FieldError::invalid(
            path.child("collisionCount"),
            &count(new).into(),
            text,
        ));
    }
}

/// The complaint about an unknown way to update. The server shows the strategy in the spelling of its own type.
fn unsupported_strategy(strategy: &Value, allowed: &[&str], path: &Path<'_>) -> FieldError {
    let rolling = &strategy["rollingUpdate"];
    let rolling = match rolling {
        Value::Null => "null".to_owned(),
        _ => format!(
            "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
            number_or_zero(&rolling["maxUnavailable"]),
            number_or_zero(&rolling["maxSurge"])
        ),
    };
    let shown = format!(
        "{{\"Type\":{},\"RollingUpdate\":{rolling}}}",
        strategy["type"]
    );
    let allowed: Vec<String> = allowed.iter().map(|kind| format!("{kind:?}")).collect();
    FieldError {
        field: path.to_string(),
        reason: Reason::NotSupported,
        message: format!(
            "Unsupported value: {shown}: supported values: {}",
            allowed.join(", ")
        ),
    }
}

fn number_or_zero(value: &Value) -> Value {
    match value {
        Value::Null => 0.into(),
        given => given.clone(),
    }
}

#[cfg(test)]
mod tests;
