//! Probes and lifecycle hooks of containers.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use crate::kinds::checks::{Errors, invalid_each, non_negative_fields, one_of, port};
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, items, text};

/// Checks the hooks and probes of a container; `grace_period` bounds how long a hook may sleep.
pub(super) fn validate(
    container: &Value,
    grace_period: Option<i64>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let lifecycle = path.child("lifecycle");
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if !handler.is_null() {
            validate_handler(handler, grace_period, &lifecycle.child(hook), errors);
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[kind];
        if !probe.is_null() {
            validate_probe(kind, probe, grace_period, &path.child(kind), errors);
        }
    }
}

fn validate_probe(
    kind: &str,
    probe: &Value,
    grace_period: Option<i64>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    validate_handler(probe, grace_period, path, errors);
    let counts = [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ];
    non_negative_fields(probe, &counts, path, errors);
    let period = &probe["terminationGracePeriodSeconds"];
    let period_path = path.child("terminationGracePeriodSeconds");
    if period.as_i64().is_some_and(|p| p <= 0) {
        errors.push(FieldError::invalid(
            period_path,
            period,
            "must be greater than 0",
        ));
    }
    if kind == "readinessProbe" {
        if !period.is_null() {
            let text = "must not be set for readinessProbes";
            errors.push(FieldError::invalid(period_path, period, text));
        }
    } else if probe["successThreshold"].as_i64() != Some(1) {
        errors.push(FieldError::invalid(
            path.child("successThreshold"),
            &probe["successThreshold"],
            "must be 1",
        ));
    }
}

fn validate_handler(
    handler: &Value,
    grace_period: Option<i64>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut found = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = &handler[kind];
        if action.is_null() {
            continue;
        }
        let path = path.child(kind);
        if found {
            let text = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(path, text));
            continue;
        }
        found = true;
        match kind {
            "exec" if is_empty(&action["command"]) => {
                errors.push(FieldError::required(path.child("command"), ""));
            }
            "exec" => {}
            "httpGet" => validate_http_get(action, &path, errors),
            "sleep" => validate_sleep(action, grace_period, &path, errors),
            _ => port(&action["port"], &path.child("port"), errors),
        }
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn validate_http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    if is_empty(&action["path"]) {
        errors.push(FieldError::required(path.child("path"), ""));
    }
    port(&action["port"], &path.child("port"), errors);
    one_of(
        &action["scheme"],
        &["HTTP", "HTTPS"],
        &path.child("scheme"),
        errors,
    );
    for header in items(&action["httpHeaders"]) {
        let name = text(&header["name"]);
        invalid_each(
            names::http_header_name(name),
            name,
            &path.child("httpHeaders"),
            errors,
        );
    }
}

fn validate_sleep(action: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    let Some(most) = grace_period else { return };
    let seconds = action["seconds"].as_i64().unwrap_or(0);
    if !(0..=most).contains(&seconds) {
        let text =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({most})");
        errors.push(FieldError::invalid(path, &seconds.into(), &text));
    }
}
