//! Services, ingresses and what stands around them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, text as column, wide};
use crate::printers::selector;
use crate::printers::view::{View, at, int, join, or, text, with_more};

/// How many hosts a cell shows.
const SHOWN: usize = 3;
const GROUP: &str = "networking.k8s.io";

const SERVICE: &[Column] = &[
    NAME,
    column("Type"),
    column("Cluster-IP"),
    column("External-IP"),
    column("Port(s)"),
    AGE,
    wide("Selector"),
];

const INGRESS: &[Column] = &[
    NAME,
    column("Class"),
    column("Hosts"),
    column("Address"),
    column("Ports"),
    AGE,
];

const INGRESS_CLASS: &[Column] = &[NAME, column("Controller"), column("Parameters"), AGE];
const NETWORK_POLICY: &[Column] = &[NAME, column("Pod-Selector"), AGE];
const SERVICE_CIDR: &[Column] = &[NAME, column("CIDRs"), AGE];
const IP_ADDRESS: &[Column] = &[NAME, column("ParentRef")];

pub(super) const KINDS: &[Entry] = &[
    entry("", "Service", SERVICE, service),
    entry(GROUP, "Ingress", INGRESS, ingress),
    entry(GROUP, "IngressClass", INGRESS_CLASS, ingress_class),
    entry(GROUP, "NetworkPolicy", NETWORK_POLICY, network_policy),
    entry(GROUP, "ServiceCIDR", SERVICE_CIDR, service_cidr),
    entry(GROUP, "IPAddress", IP_ADDRESS, ip_address),
];

fn service(view: &View<'_>) -> Vec<Value> {
    let first = view.list("spec.clusterIPs").first();
    let cluster_ip = or(
        first.and_then(Value::as_str).unwrap_or_default(),
        view.text("spec.clusterIP"),
    );
    let ports: Vec<String> = view.list("spec.ports").iter().map(service_port).collect();
    cells![
        view.name(),
        view.text("spec.type"),
        or(cluster_ip, "<none>"),
        external_ip(view),
        or(&ports.join(","), "<none>"),
        view.age(),
        selector::labels(view.object, "spec.selector"),
    ]
}

/// `80/TCP`, or `80:30080/TCP` where nodes listen too.
fn service_port(port: &Value) -> String {
    let (number, protocol) = (int(port, "port"), text(port, "protocol"));
    match int(port, "nodePort") {
        0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_ip(view: &View<'_>) -> String {
    let external = join(view.list("spec.externalIPs"), None, ",");
    match view.text("spec.type") {
        "ClusterIP" | "NodePort" => or(&external, "<none>").to_owned(),
        "LoadBalancer" => match (balancer(view), external) {
            (balancer, external) if balancer.is_empty() && external.is_empty() => {
                "<pending>".to_owned()
            }
            (balancer, external) if external.is_empty() => balancer,
            (balancer, external) if balancer.is_empty() => external,
            (balancer, external) => format!("{balancer},{external}"),
        },
        "ExternalName" => view.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Addresses or, where there are none, names that a load balancer was given; each once, in order.
fn balancer(view: &View<'_>) -> String {
    let points: BTreeSet<&str> = view
        .list("status.loadBalancer.ingress")
        .iter()
        .map(|point| or(text(point, "ip"), text(point, "hostname")))
        .filter(|point| !point.is_empty())
        .collect();
    points.into_iter().collect::<Vec<_>>().join(",")
}

fn ingress(view: &View<'_>) -> Vec<Value> {
    let ports = match view.list("spec.tls") {
        [] => "80",
        _ => "80, 443",
    };
    cells![
        view.name(),
        or(view.text("spec.ingressClassName"), "<none>"),
        hosts(view.list("spec.rules")),
        balancer(view),
        ports,
        view.age(),
    ]
}

/// The first three hosts. Rules without a host are not shown, yet count among what is left out.
fn hosts(rules: &[Value]) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut full = false;
    for rule in rules {
        full = full || shown.len() == SHOWN;
        let host = text(rule, "host");
        if !full && !host.is_empty() {
            shown.push(host.to_owned());
        }
    }
    match (shown.is_empty(), full) {
        (true, _) => "*".to_owned(),
        (false, true) => with_more(&shown, ",", SHOWN, rules.len()),
        (false, false) => shown.join(","),
    }
}

fn ingress_class(view: &View<'_>) -> Vec<Value> {
    let parameters = match view.at("spec.parameters") {
        Some(parameters) => class_parameters(parameters),
        None => "<none>".to_owned(),
    };
    cells![
        view.name(),
        view.text("spec.controller"),
        parameters,
        view.age()
    ]
}

/// `IngressParameters.example.com/external`
fn class_parameters(parameters: &Value) -> String {
    let (kind, name) = (text(parameters, "kind"), text(parameters, "name"));
    match at(parameters, "apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn network_policy(view: &View<'_>) -> Vec<Value> {
    let pods = selector::selector(view.object, "spec.podSelector");
    cells![view.name(), pods, view.age()]
}

fn service_cidr(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        join(view.list("spec.cidrs"), None, ","),
        view.age()
    ]
}

/// The real server sends an age that no column announces; so do we.
fn ip_address(view: &View<'_>) -> Vec<Value> {
    let parent = match view.at("spec.parentRef") {
        Some(parent) => parent_reference(parent),
        None => "<none>".to_owned(),
    };
    cells![view.name(), parent, view.age()]
}

/// `services/default/kubernetes`
fn parent_reference(parent: &Value) -> String {
    let mut reference = text(parent, "resource").to_lowercase();
    for (separator, part) in [
        (".", text(parent, "group").to_lowercase()),
        ("/", text(parent, "namespace").to_owned()),
    ] {
        if !part.is_empty() {
            reference = format!("{reference}{separator}{part}");
        }
    }
    format!("{reference}/{}", text(parent, "name"))
}
