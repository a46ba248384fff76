//! Validation of services and of their updates.

use std::collections::BTreeSet;
use std::net::IpAddr;

use kubewright_schema::names;
use kubewright_schema::{FieldError, Reason};
use serde_json::Value;

use super::{has_cluster_ip, is_external, is_headless, wants_health_check};
use crate::kinds::checks::{
    Errors, invalid_each, one_of, one_of_if_set, port, port_number, required_one_of,
};
use crate::kinds::meta::validate_labels;
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, items, strings, text};

const SPEC: Path<'static> = Path::Root("spec");

/// Checks a service.
pub(super) fn service(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let kind = text(&spec["type"]);
    if items(&spec["ports"]).is_empty() && !is_headless(object) && kind != "ExternalName" {
        errors.push(FieldError::required(SPEC.child("ports"), ""));
    }
    validate_type(object, kind, errors);
    validate_ports(object, errors);
    validate_labels(&spec["selector"], &SPEC.child("selector"), errors);
    validate_affinity(spec, errors);
    validate_cluster_ips(object, errors);
    let external = SPEC.child("externalIPs");
    for (i, address) in strings(&spec["externalIPs"]).enumerate() {
        invalid_each(
            names::ip_address(address),
            address,
            &external.index(i),
            errors,
        );
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    required_one_of(&spec["type"], &types, &SPEC.child("type"), errors);
    validate_port_numbers(spec, kind, errors);
    validate_load_balancer(spec, kind, errors);
    validate_traffic(object, errors);
}

fn validate_type(object: &Value, kind: &str, errors: &mut Errors) {
    let spec = &object["spec"];
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(object) => {
            let path = SPEC.child("clusterIPs");
            let text = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid(path.index(0), &"None".into(), &text));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                if !is_empty(&spec[field]) {
                    let text = "may not be set for ExternalName services";
                    errors.push(FieldError::forbidden(SPEC.child(field), text));
                }
            }
            let path = SPEC.child("externalName");
            match text(&spec["externalName"]) {
                "" | "." => errors.push(FieldError::required(path, "")),
                name => {
                    let name = name.strip_suffix('.').unwrap_or(name);
                    invalid_each(names::dns1123_subdomain(name), name, &path, errors);
                }
            }
        }
        _ => {}
    }
}

fn validate_ports(object: &Value, errors: &mut Errors) {
    let ports = items(&object["spec"]["ports"]);
    let path = SPEC.child("ports");
    let mut seen = BTreeSet::new();
    for (i, one) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = text(&one["name"]);
        if !name.is_empty() {
            invalid_each(
                names::dns1123_label(name),
                name,
                &path.child("name"),
                errors,
            );
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(path.child("name"), &name.into()));
            }
        } else if ports.len() > 1 {
            errors.push(FieldError::required(path.child("name"), ""));
        }
        port_number(&one["port"], &path.child("port"), errors);
        let protocols = ["SCTP", "TCP", "UDP"];
        required_one_of(
            &one["protocol"],
            &protocols,
            &path.child("protocol"),
            errors,
        );
        port(&one["targetPort"], &path.child("targetPort"), errors);
        if let Some(protocol) = one["appProtocol"].as_str() {
            let path = path.child("appProtocol");
            invalid_each(names::qualified_name(protocol), protocol, &path, errors);
        }
    }
}

fn validate_affinity(spec: &Value, errors: &mut Errors) {
    let affinity = &spec["sessionAffinity"];
    required_one_of(
        affinity,
        &["ClientIP", "None"],
        &SPEC.child("sessionAffinity"),
        errors,
    );
    let path = SPEC.child("sessionAffinityConfig");
    let config = &spec["sessionAffinityConfig"];
    if text(affinity) == "ClientIP" {
        let seconds = &config["clientIP"]["timeoutSeconds"];
        if seconds.as_i64().is_some_and(|s| !(1..=86400).contains(&s)) {
            let path = path.child("clientIP.timeoutSeconds");
            let text = "must be greater than 0 and less than 86400";
            errors.push(FieldError::invalid(path, seconds, text));
        }
    } else if text(affinity) == "None" && !config.is_null() {
        let text = "must not be set when session affinity is None";
        errors.push(FieldError::forbidden(path, text));
    }
}

fn validate_cluster_ips(object: &Value, errors: &mut Errors) {
    if !has_cluster_ip(object) {
        return;
    }
    let spec = &object["spec"];
    let path = SPEC.child("clusterIPs");
    let (address, addresses) = (text(&spec["clusterIP"]), items(&spec["clusterIPs"]));
    match (address, addresses.first()) {
        ("", None) => {}
        ("", Some(_)) => {
            let text = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(path, &spec["clusterIPs"], text));
        }
        (_, None) => errors.push(FieldError::required(path, "")),
        (_, Some(first)) if text(first) != address => {
            let text = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(path, &spec["clusterIPs"], text));
        }
        _ => {}
    }
    let families = SPEC.child("ipFamilies");
    for (i, family) in items(&spec["ipFamilies"]).iter().enumerate() {
        one_of(family, &["IPv4", "IPv6"], &families.index(i), errors);
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    one_of_if_set(
        &spec["ipFamilyPolicy"],
        &policies,
        &SPEC.child("ipFamilyPolicy"),
        errors,
    );
    for (i, address) in strings(&spec["clusterIPs"]).enumerate() {
        if address != "None" || i > 0 {
            invalid_each(names::ip_address(address), address, &path.index(i), errors);
        } else if addresses.len() > 1 {
            let text = "'None' must be the first and only value";
            errors.push(FieldError::invalid(path, &spec["clusterIPs"], text));
        }
    }
    if addresses.len() > 2 {
        let text = "may only hold up to 2 values";
        errors.push(FieldError::invalid(path, &spec["clusterIPs"], text));
    }
    validate_family_of_each(spec, &path, errors);
}

fn validate_family_of_each(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let pairs = strings(&spec["clusterIPs"]).zip(strings(&spec["ipFamilies"]));
    for (i, (address, family)) in pairs.enumerate() {
        let Ok(parsed) = address.parse::<IpAddr>() else {
            continue;
        };
        if (family == "IPv4") != parsed.is_ipv4() {
            let text = format!("expected an {family} value as indicated by `ipFamilies[{i}]`");
            errors.push(FieldError::invalid(path.index(i), &address.into(), &text));
        }
    }
}

fn validate_port_numbers(spec: &Value, kind: &str, errors: &mut Errors) {
    let path = SPEC.child("ports");
    let ports = items(&spec["ports"]);
    let node_port = |one: &Value| one["nodePort"].as_i64().unwrap_or(0);
    for (i, one) in ports.iter().enumerate() {
        if kind == "ClusterIP" && node_port(one) != 0 {
            let at = path.index(i);
            let text = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(at.child("nodePort"), text));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, one) in ports.iter().enumerate() {
        let number = node_port(one);
        if number != 0 && !seen.insert((text(&one["protocol"]), number)) {
            let at = path.index(i);
            errors.push(FieldError::duplicate(at.child("nodePort"), &number.into()));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, one) in ports.iter().enumerate() {
        let (protocol, number) = (text(&one["protocol"]), one["port"].as_i64().unwrap_or(0));
        if !seen.insert((protocol, number)) {
            errors.push(FieldError {
                field: path.index(i).to_string(),
                reason: Reason::Duplicate,
                message: duplicate_port(protocol, number),
            });
        }
    }
}

/// The server shows the key it compares by, in the order and spelling of its own type.
fn duplicate_port(protocol: &str, number: i64) -> String {
    format!(
        "Duplicate value: {{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
    )
}

fn validate_load_balancer(spec: &Value, kind: &str, errors: &mut Errors) {
    let balances = kind == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    if !items(&spec["loadBalancerSourceRanges"]).is_empty() && !balances {
        errors.push(FieldError::forbidden(
            SPEC.child("LoadBalancerSourceRanges"),
            only,
        ));
    }
    let allocate = &spec["allocateLoadBalancerNodePorts"];
    if !allocate.is_null() && !balances {
        errors.push(FieldError::forbidden(
            SPEC.child("allocateLoadBalancerNodePorts"),
            only,
        ));
    }
    if let Some(class) = spec["loadBalancerClass"].as_str() {
        let path = SPEC.child("loadBalancerClass");
        if balances {
            invalid_each(names::qualified_name(class), class, &path, errors);
        } else {
            errors.push(FieldError::forbidden(path, only));
        }
    }
}

fn validate_traffic(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    let policy = &spec["externalTrafficPolicy"];
    let path = SPEC.child("externalTrafficPolicy");
    if is_external(object) {
        required_one_of(policy, &["Cluster", "Local"], &path, errors);
    } else if !is_empty(policy) {
        let text = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(path, policy, text));
    }
    let check = &spec["healthCheckNodePort"];
    let path = SPEC.child("healthCheckNodePort");
    match (wants_health_check(object), check.as_i64().unwrap_or(0)) {
        (true, 0) => errors.push(FieldError::required(path, "")),
        (true, _) => port_number(check, &path, errors),
        (false, 0) => {}
        (false, _) => {
            let text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(path, check, text));
        }
    }
    let inner = SPEC.child("internalTrafficPolicy");
    one_of_if_set(
        &spec["internalTrafficPolicy"],
        &["Cluster", "Local"],
        &inner,
        errors,
    );
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let path = SPEC.child("trafficDistribution");
    one_of_if_set(&spec["trafficDistribution"], &distributions, &path, errors);
}

/// Checks what may change: addresses stay as long as the service has some.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    if !has_cluster_ip(new) || !has_cluster_ip(old) {
        return;
    }
    addresses(new, old, errors);
    let balances = |object: &Value| text(&object["spec"]["type"]) == "LoadBalancer";
    let class = &new["spec"]["loadBalancerClass"];
    if balances(new) && balances(old) && *class != old["spec"]["loadBalancerClass"] {
        let path = SPEC.child("loadBalancerClass");
        errors.push(FieldError::invalid(path, class, "may not change once set"));
    }
}

/// Checks that addresses stay (`validateUpgradeDowngradeClusterIPs`).
pub(super) fn addresses(new: &Value, old: &Value, errors: &mut Errors) {
    let have = has_cluster_ip(new) && has_cluster_ip(old);
    if have && !(is_headless(new) && is_headless(old)) {
        validate_kept_addresses(&new["spec"], &old["spec"], errors);
    }
}

fn validate_kept_addresses(new: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("clusterIPs");
    let shown = &new["clusterIPs"];
    let (now, before) = (items(shown), items(&old["clusterIPs"]));
    if !before.is_empty() && now.is_empty() {
        let text = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(path.index(0), shown, text));
        return;
    }
    for (i, (now, before)) in now.iter().zip(before).enumerate() {
        if now != before {
            let text = "may not change once set";
            errors.push(FieldError::invalid(path.index(i), shown, text));
        }
    }
}
