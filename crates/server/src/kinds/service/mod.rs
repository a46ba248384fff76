//! Services: what they default to, what their type demands, and which addresses and ports must be allocated.
//!
//! Allocation itself is the caller's. On create it comes after `prepare_for_create` and before `validate`; on
//! update after `prepare_for_update`, which carries over what the old object had been given.

mod prepare;
mod validate;

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::name_rule::NameRule;
use super::strategy::{FieldLabels, Strategy, UpdateOrder};
use super::value::{ensure, is_empty, items, items_mut, set, text};

/// Services.
pub(super) static SERVICE: Strategy = Strategy {
    name_rule: NameRule::Label1035,
    has_status: true,
    allow_create_on_update: true,
    returns_deleted_object: true,
    update_order: UpdateOrder::ChangeFirst,
    field_labels: FieldLabels::Listed(&[
        "metadata.namespace",
        "metadata.name",
        "spec.clusterIP",
        "spec.type",
    ]),
    default: prepare::default,
    create: prepare::create,
    update: prepare::update,
    validate: validate::service,
    validate_update: validate::update,
    fields: |object| {
        let spec = &object["spec"];
        vec![
            ("spec.clusterIP", text(&spec["clusterIP"]).to_owned()),
            ("spec.type", text(&spec["type"]).to_owned()),
        ]
    },
    ..Strategy::PLAIN
};

/// Whether the service still needs a cluster address.
pub(crate) fn needs_cluster_ip(object: &Value) -> bool {
    has_cluster_ip(object) && is_empty(&object["spec"]["clusterIP"])
}

/// Gives the service its cluster address.
pub(crate) fn set_cluster_ip(object: &mut Value, address: &str) {
    let spec = ensure(object, "spec");
    set(spec, "clusterIP", address);
    set(spec, "clusterIPs", json!([address]));
}

/// The address a service holds and must give back, if any.
pub(crate) fn cluster_ip(object: &Value) -> Option<&str> {
    match text(&object["spec"]["clusterIP"]) {
        "" | "None" => None,
        address if has_cluster_ip(object) => Some(address),
        _ => None,
    }
}

/// What is wrong with a change of the addresses of a service, which it keeps. Asked before any are allocated
/// (`alloc.go: initIPFamilyFields`).
pub(crate) fn address_errors(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    validate::addresses(new, old, &mut errors);
    errors
}

/// Positions in `spec.ports` of ports that still need a node port.
pub(crate) fn node_ports_needed(object: &Value) -> Vec<usize> {
    if !wants_node_ports(object) {
        return Vec::new();
    }
    items(&object["spec"]["ports"])
        .iter()
        .enumerate()
        .filter(|(_, port)| port["nodePort"].as_i64().unwrap_or(0) == 0)
        .map(|(i, _)| i)
        .collect()
}

/// Gives a port of the service its node port.
pub(crate) fn set_node_port(object: &mut Value, index: usize, port: u16) {
    let ports = ensure(object, "spec").get_mut("ports");
    if let Some(one) = items_mut(ports).get_mut(index) {
        set(one, "nodePort", port);
    }
}

/// The node ports a service holds and must give back, its health check's among them.
pub(crate) fn node_ports(object: &Value) -> Vec<u16> {
    let spec = &object["spec"];
    items(&spec["ports"])
        .iter()
        .map(|port| &port["nodePort"])
        .chain([&spec["healthCheckNodePort"]])
        .filter_map(port_number)
        .collect()
}

/// The node ports that a service has, with their positions in `spec.ports`.
pub(crate) fn given_node_ports(object: &Value) -> Vec<(usize, u16)> {
    let ports = items(&object["spec"]["ports"]).iter().enumerate();
    ports
        .filter_map(|(i, port)| Some((i, port_number(&port["nodePort"])?)))
        .collect()
}

/// The node port for health checks that a service has.
pub(crate) fn health_check_node_port(object: &Value) -> Option<u16> {
    port_number(&object["spec"]["healthCheckNodePort"])
}

fn port_number(value: &Value) -> Option<u16> {
    let port = u16::try_from(value.as_u64()?).ok()?;
    (port != 0).then_some(port)
}

/// Whether the service still needs a node port for health checks.
pub(crate) fn needs_health_check_node_port(object: &Value) -> bool {
    wants_health_check(object) && object["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0) == 0
}

/// Gives the service its node port for health checks.
pub(crate) fn set_health_check_node_port(object: &mut Value, port: u16) {
    set(ensure(object, "spec"), "healthCheckNodePort", port);
}

fn has_cluster_ip(object: &Value) -> bool {
    text(&object["spec"]["type"]) != "ExternalName"
}

fn is_headless(object: &Value) -> bool {
    text(&object["spec"]["clusterIP"]) == "None"
}

fn has_node_ports(object: &Value) -> bool {
    matches!(text(&object["spec"]["type"]), "NodePort" | "LoadBalancer")
}

fn wants_node_ports(object: &Value) -> bool {
    let spec = &object["spec"];
    match text(&spec["type"]) {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"].as_bool() != Some(false),
        _ => false,
    }
}

fn wants_health_check(object: &Value) -> bool {
    let spec = &object["spec"];
    text(&spec["type"]) == "LoadBalancer" && text(&spec["externalTrafficPolicy"]) == "Local"
}

/// Whether traffic from outside the cluster reaches the service.
fn is_external(object: &Value) -> bool {
    let spec = &object["spec"];
    has_node_ports(object)
        || (text(&spec["type"]) == "ClusterIP" && !items(&spec["externalIPs"]).is_empty())
}

#[cfg(test)]
mod tests;
