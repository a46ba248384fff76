//! Validation of pod specs and of the templates that other kinds make pods from.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::container::{self, Surroundings};
use super::{ephemeral, scheduling, security, volume};
use crate::kinds::checks::{Errors, in_range, invalid_each, required_one_of};
use crate::kinds::meta::{validate_annotations, validate_labels};
use crate::kinds::path::Path;
use crate::kinds::selector;
use crate::kinds::value::{is_empty, is_true, items, strings, text};

/// Checks a pod spec.
pub(super) fn validate(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec["terminationGracePeriodSeconds"].is_null() {
        let path = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::required(path, ""));
    }
    let around = Surroundings {
        volumes: volume::validate(&spec["volumes"], &path.child("volumes"), errors),
        grace_period: spec["terminationGracePeriodSeconds"].as_i64(),
    };
    container::validate_all(spec, &around, path, errors);
    container::validate_init(spec, &around, path, errors);
    ephemeral::validate(spec, &around, path, errors);
    validate_host_network(spec, path, errors);
    required_one_of(
        &spec["restartPolicy"],
        &["Always", "OnFailure", "Never"],
        &path.child("restartPolicy"),
        errors,
    );
    required_one_of(
        &spec["dnsPolicy"],
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &path.child("dnsPolicy"),
        errors,
    );
    validate_labels(&spec["nodeSelector"], &path.child("nodeSelector"), errors);
    security::validate_pod(spec, path, errors);
    scheduling::validate_affinity(&spec["affinity"], &path.child("affinity"), errors);
    validate_dns(spec, &path.child("dnsConfig"), errors);
    validate_readiness_gates(spec, path, errors);
    scheduling::validate_gates(
        &spec["schedulingGates"],
        &path.child("schedulingGates"),
        errors,
    );
    let spread = path.child("topologySpreadConstraints");
    scheduling::validate_spread(&spec["topologySpreadConstraints"], &spread, errors);
    validate_names(spec, path, errors);
}

fn validate_names(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let check = |field: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors| {
        let name = text(&spec[field]);
        if !name.is_empty() {
            invalid_each(rule(name), name, &path.child(field), errors);
        }
    };
    check("serviceAccountName", names::dns1123_subdomain, errors);
    check("nodeName", names::dns1123_subdomain, errors);
    let deadline = &spec["activeDeadlineSeconds"];
    in_range(
        deadline,
        1,
        i32::MAX.into(),
        &path.child("activeDeadlineSeconds"),
        errors,
    );
    check("hostname", names::dns1123_label, errors);
    check("subdomain", names::dns1123_label, errors);
    let tolerations = path.child("tolerations");
    scheduling::validate_tolerations(&spec["tolerations"], &tolerations, errors);
    validate_host_aliases(&spec["hostAliases"], &path.child("hostAliases"), errors);
    check("priorityClassName", names::dns1123_subdomain, errors);
    check("runtimeClassName", names::dns1123_subdomain, errors);
    if !spec["preemptionPolicy"].is_null() {
        let policies = ["PreemptLowerPriority", "Never"];
        let path = path.child("preemptionPolicy");
        required_one_of(&spec["preemptionPolicy"], &policies, &path, errors);
    }
}

fn validate_host_network(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !is_true(&spec["hostNetwork"]) {
        return;
    }
    let containers = path.child("containers");
    for (i, container) in items(&spec["containers"]).iter().enumerate() {
        let at = containers.index(i);
        let ports = at.child("ports");
        for (j, port) in items(&container["ports"]).iter().enumerate() {
            let host = port["hostPort"].as_i64().unwrap_or(0);
            if host != 0 && Some(host) != port["containerPort"].as_i64() {
                let at = ports.index(j);
                let text = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(
                    at.child("hostPort"),
                    &host.into(),
                    text,
                ));
            }
        }
    }
}

fn validate_dns(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = &spec["dnsConfig"];
    if text(&spec["dnsPolicy"]) == "None" {
        if config.is_null() {
            let text = "must provide `dnsConfig` when `dnsPolicy` is None";
            errors.push(FieldError::required(path, text));
            return;
        }
        if items(&config["nameservers"]).is_empty() {
            let text = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(path.child("nameservers"), text));
            return;
        }
    }
    let nameservers = path.child("nameservers");
    if items(&config["nameservers"]).len() > 3 {
        let text = "must not have more than 3 nameservers";
        errors.push(FieldError::invalid(
            nameservers,
            &config["nameservers"],
            text,
        ));
    }
    for (i, address) in strings(&config["nameservers"]).enumerate() {
        invalid_each(
            names::ip_address(address),
            address,
            &nameservers.index(i),
            errors,
        );
    }
    if items(&config["searches"]).len() > 32 {
        let text = "must not have more than 32 search paths";
        errors.push(FieldError::invalid(
            path.child("searches"),
            &config["searches"],
            text,
        ));
    }
    let options = path.child("options");
    for (i, option) in items(&config["options"]).iter().enumerate() {
        if is_empty(&option["name"]) {
            errors.push(FieldError::required(options.index(i), "must not be empty"));
        }
    }
}

fn validate_readiness_gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("readinessGates");
    for (i, gate) in items(&spec["readinessGates"]).iter().enumerate() {
        let name = text(&gate["conditionType"]);
        let at = path.index(i);
        invalid_each(
            names::qualified_name(name),
            name,
            &at.child("conditionType"),
            errors,
        );
    }
}

fn validate_host_aliases(aliases: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, alias) in items(aliases).iter().enumerate() {
        let at = path.index(i);
        let address = text(&alias["ip"]);
        invalid_each(names::ip_address(address), address, &at.child("ip"), errors);
        let hostnames = at.child("hostnames");
        for (j, name) in strings(&alias["hostnames"]).enumerate() {
            invalid_each(
                names::dns1123_subdomain(name),
                name,
                &hostnames.index(j),
                errors,
            );
        }
    }
}

/// Checks a `PodTemplateSpec`.
pub(crate) fn validate_template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let meta = &template["metadata"];
    validate_labels(&meta["labels"], &path.child("labels"), errors);
    validate_annotations(&meta["annotations"], &path.child("annotations"), errors);
    let spec = &template["spec"];
    validate(spec, &path.child("spec"), errors);
    if !items(&spec["ephemeralContainers"]).is_empty() {
        errors.push(FieldError::forbidden(
            path.child("spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// Checks that a selector chooses the pods of a template. An absent selector chooses none; an empty one is not
/// asked.
pub(crate) fn validate_selected(
    choice: &Value,
    template: &Value,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let labels = &template["metadata"]["labels"];
    let says_something = choice.is_null() || !selector::is_empty(choice);
    if says_something && selector::matches(choice, labels) == Some(false) {
        errors.push(mismatch(labels, path));
    }
}

/// The complaint about a selector that does not choose a template's pods.
pub(crate) fn mismatch(labels: &Value, path: &Path<'_>) -> FieldError {
    FieldError::invalid(
        path.child("metadata.labels"),
        labels,
        "`selector` does not match template `labels`",
    )
}

/// Checks that pods of a template run forever, as those of a controller named `kind` must.
pub(crate) fn validate_runs_forever(
    template: &Value,
    kind: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let spec = &template["spec"];
    let policy = text(&spec["restartPolicy"]);
    if policy != "Always" {
        let path = path.child("spec.restartPolicy");
        errors.push(FieldError::not_supported(path, &policy.into(), &["Always"]));
    }
    if !spec["activeDeadlineSeconds"].is_null() {
        let text = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(
            path.child("spec.activeDeadlineSeconds"),
            &text,
        ));
    }
}
