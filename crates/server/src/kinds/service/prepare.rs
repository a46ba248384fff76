//! Defaults of services, and what an update keeps of what was allocated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{has_cluster_ip, has_node_ports, is_external, is_headless, wants_health_check};
use crate::kinds::strategy::CreateContext;
use crate::kinds::value::{
    copy, ensure, is_empty, items, items_mut, remove, set, set_default, set_default_text, text,
};

/// Defaults.
pub(super) fn default(object: &mut Value) {
    let spec = ensure(object, "spec");
    set_default_text(spec, "sessionAffinity", "None");
    match text(&spec["sessionAffinity"]) {
        "None" => drop(remove(spec, "sessionAffinityConfig")),
        "ClientIP" if spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].is_null() => {
            let config = json!({"clientIP": {"timeoutSeconds": 10800}});
            set(spec, "sessionAffinityConfig", config);
        }
        _ => {}
    }
    set_default_text(spec, "type", "ClusterIP");
    for port in items_mut(spec.get_mut("ports")) {
        set_default_text(port, "protocol", "TCP");
        if is_empty(&port["targetPort"]) || port["targetPort"].as_i64() == Some(0) {
            let number = port["port"].clone();
            set(port, "targetPort", number);
        }
    }
    if is_external(object) {
        set_default_text(ensure(object, "spec"), "externalTrafficPolicy", "Cluster");
    }
    let spec = ensure(object, "spec");
    let kind = text(&spec["type"]).to_owned();
    if matches!(kind.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
        let addresses = object.pointer_mut("/status/loadBalancer/ingress");
        for ingress in items_mut(addresses) {
            if !is_empty(&ingress["ip"]) {
                set_default(ingress, "ipMode", "VIP");
            }
        }
    }
}

/// A new service starts without a load balancer.
pub(super) fn create(object: &mut Value, _: &CreateContext<'_>) {
    set(object, "status", json!({"loadBalancer": {}}));
    let spec = ensure(object, "spec");
    if !is_empty(&spec["clusterIP"]) && is_empty(&spec["clusterIPs"]) {
        let address = spec["clusterIP"].clone();
        set(spec, "clusterIPs", json!([address]));
    }
    families(object);
}

/// One family, IPv4, unless the client says otherwise; a headless service without selector may hold both.
fn families(object: &mut Value) {
    if !has_cluster_ip(object) {
        return;
    }
    let open = is_headless(object) && is_empty(&object["spec"]["selector"]);
    let spec = ensure(object, "spec");
    let policy = if open {
        "RequireDualStack"
    } else {
        "SingleStack"
    };
    set_default(spec, "ipFamilyPolicy", policy);
    let both = open && text(&spec["ipFamilyPolicy"]) != "SingleStack";
    if is_empty(&spec["ipFamilies"]) {
        let families = if both {
            json!(["IPv4", "IPv6"])
        } else {
            json!(["IPv4"])
        };
        set(spec, "ipFamilies", families);
    }
}

/// An update keeps addresses and ports it does not mention, and drops what its new type cannot have.
pub(super) fn update(new: &mut Value, old: &Value) {
    keep_cluster_ips(new, old);
    keep_node_ports(new, old);
    if wants_health_check(old) && wants_health_check(new) {
        let spec = ensure(new, "spec");
        if spec["healthCheckNodePort"].as_i64().unwrap_or(0) == 0 {
            copy(spec, &old["spec"], "healthCheckNodePort");
        }
    }
    drop_type_dependent(new, old);
    families(new);
}

fn keep_cluster_ips(new: &mut Value, old: &Value) {
    if !(has_cluster_ip(old) && has_cluster_ip(new)) {
        return;
    }
    let (spec, before) = (ensure(new, "spec"), &old["spec"]);
    let plural_is_same = spec["clusterIPs"] == before["clusterIPs"];
    if is_empty(&spec["clusterIP"]) {
        copy(spec, before, "clusterIP");
    } else if spec["clusterIP"] != before["clusterIP"] && plural_is_same {
        let address = spec["clusterIP"].clone();
        set(spec, "clusterIPs", json!([address]));
    }
    if is_empty(&spec["clusterIPs"]) && spec["clusterIP"] == before["clusterIP"] {
        copy(spec, before, "clusterIPs");
    }
    for field in ["ipFamilyPolicy", "ipFamilies"] {
        if is_empty(&spec[field]) {
            copy(spec, before, field);
        }
    }
}

fn node_port_set(object: &Value) -> BTreeSet<i64> {
    items(&object["spec"]["ports"])
        .iter()
        .filter_map(|port| port["nodePort"].as_i64())
        .filter(|port| *port != 0)
        .collect()
}

fn keep_node_ports(new: &mut Value, old: &Value) {
    if !(has_node_ports(old) && has_node_ports(new)) {
        return;
    }
    let (had, has) = (node_port_set(old), node_port_set(new));
    let before: BTreeMap<&str, i64> = items(&old["spec"]["ports"])
        .iter()
        .map(|port| (text(&port["name"]), port["nodePort"].as_i64().unwrap_or(0)))
        .collect();
    for port in items_mut(ensure(new, "spec").get_mut("ports")) {
        if port["nodePort"].as_i64().unwrap_or(0) != 0 {
            continue;
        }
        match before.get(text(&port["name"])) {
            Some(number) if *number != 0 && !(had.contains(number) && has.contains(number)) => {
                set(port, "nodePort", *number);
            }
            _ => {}
        }
    }
}

fn drop_type_dependent(new: &mut Value, old: &Value) {
    let before = &old["spec"];
    if has_cluster_ip(old) && !has_cluster_ip(new) {
        let spec = ensure(new, "spec");
        if spec["clusterIP"] == before["clusterIP"] && spec["clusterIPs"] == before["clusterIPs"] {
            remove(spec, "clusterIP");
            remove(spec, "clusterIPs");
        }
        drop_unchanged(spec, before, "ipFamilies");
        drop_unchanged(spec, before, "ipFamilyPolicy");
    }
    let same_ports = node_port_set(old).is_superset(&node_port_set(new));
    if has_node_ports(old) && !has_node_ports(new) && same_ports {
        for port in items_mut(ensure(new, "spec").get_mut("ports")) {
            remove(port, "nodePort");
        }
    }
    if wants_health_check(old) && !wants_health_check(new) {
        drop_unchanged(ensure(new, "spec"), before, "healthCheckNodePort");
    }
    let balances = |object: &Value| text(&object["spec"]["type"]) == "LoadBalancer";
    if balances(old) && !balances(new) {
        let spec = ensure(new, "spec");
        drop_unchanged(spec, before, "allocateLoadBalancerNodePorts");
        drop_unchanged(spec, before, "loadBalancerClass");
    }
    if is_external(old) && !is_external(new) {
        drop_unchanged(ensure(new, "spec"), before, "externalTrafficPolicy");
    }
    if !balances(new) {
        set(ensure(new, "status"), "loadBalancer", json!({}));
    }
}

fn drop_unchanged(spec: &mut Value, before: &Value, field: &str) {
    if spec[field] == before[field] {
        remove(spec, field);
    }
}
