//! Where a Service listens: a pure function of the Service and of the addresses of nodes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Service, ServicePort, ServiceSpec};

use crate::backends::Locality;

/// How long a client stays with its endpoint where the Service does not say (`DefaultClientIPServiceAffinitySeconds`).
const AFFINITY: u64 = 10_800;

/// A transport that Services use. SCTP is not proxied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// A socket that a Service has, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frontend {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    /// The name of the Service's port, by which EndpointSlices refer to it.
    pub(crate) port_name: String,
    pub(crate) locality: Locality,
}

/// Where node ports listen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeAddresses {
    /// Addresses that stand for no node in particular: 127.0.0.1, and what was asked for.
    pub(crate) everywhere: Vec<IpAddr>,
    /// Nodes by their own loopback addresses.
    pub(crate) nodes: BTreeMap<IpAddr, String>,
}

/// The loopback addresses of a node.
pub(crate) fn node_addresses(node: &Node) -> impl Iterator<Item = (IpAddr, String)> {
    let name = node.metadata.name.clone().unwrap_or_default();
    let status = node.status.iter();
    let addresses = status.flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    internal
        .filter_map(|address| address.address.parse::<IpAddr>().ok())
        .filter(IpAddr::is_loopback)
        .map(move |address| (address, name.clone()))
}

/// Every socket of a Service. Headless Services and external names have none.
///
/// `internalTrafficPolicy: Local` chooses nothing here: clients come from one machine, which is all nodes at once.
pub(crate) fn frontends(service: &Service, nodes: &NodeAddresses) -> Vec<Frontend> {
    let Some(spec) = &service.spec else {
        return Vec::new();
    };
    let kind = spec.type_.as_deref().unwrap_or("ClusterIP");
    if kind == "ExternalName" || spec.cluster_ip.as_deref() == Some("None") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for port in spec.ports.iter().flatten() {
        let (Some(protocol), Some(number)) = (protocol(port), number(port.port)) else {
            continue;
        };
        let mut add = |address: IpAddr, number: u16, locality: Locality| {
            found.push(Frontend {
                address: SocketAddr::new(address, number),
                protocol,
                port_name: port.name.clone().unwrap_or_default(),
                locality,
            });
        };
        for address in service_addresses(service, spec) {
            add(address, number, Locality::Cluster);
        }
        if let Some(number) = port.node_port.and_then(self::number) {
            for address in &nodes.everywhere {
                add(*address, number, Locality::Cluster);
            }
            for (address, node) in &nodes.nodes {
                add(*address, number, external_locality(spec, node));
            }
        }
    }
    found
}

/// How long clients stay with their endpoint, where the Service asks for that.
pub(crate) fn affinity(service: &Service) -> Option<Duration> {
    let spec = service.spec.as_ref()?;
    if spec.session_affinity.as_deref() != Some("ClientIP") {
        return None;
    }
    let config = spec.session_affinity_config.as_ref();
    let seconds = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Some(Duration::from_secs(seconds.unwrap_or(AFFINITY)))
}

/// The addresses that are the Service's own: cluster IPs, external IPs, and those of its load balancer.
fn service_addresses(service: &Service, spec: &ServiceSpec) -> Vec<IpAddr> {
    let cluster = spec.cluster_ip.iter();
    let external = spec.external_ips.iter().flatten();
    let status = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let balanced = status
        .into_iter()
        .flat_map(|status| status.ingress.iter().flatten());
    let balanced = balanced.filter_map(|ingress| ingress.ip.as_ref());
    let balanced = balanced.filter(|_| spec.type_.as_deref() == Some("LoadBalancer"));
    let all = cluster.chain(external).chain(balanced);
    let mut addresses: Vec<IpAddr> = all
        .filter_map(|address| address.parse().ok())
        // A socket on 127.0.0.1 would belong to whoever asks first; node ports have their range for that.
        .filter(|address: &IpAddr| address.is_loopback() && *address != Ipv4Addr::LOCALHOST)
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

fn external_locality(spec: &ServiceSpec, node: &str) -> Locality {
    if spec.external_traffic_policy.as_deref() == Some("Local") {
        return Locality::Node(node.to_owned());
    }
    Locality::Cluster
}

fn protocol(port: &ServicePort) -> Option<Protocol> {
    match port.protocol.as_deref() {
        None | Some("TCP") => Some(Protocol::Tcp),
        Some("UDP") => Some(Protocol::Udp),
        Some(_) => None,
    }
}

fn number(port: i32) -> Option<u16> {
    u16::try_from(port).ok().filter(|number| *number != 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nodes() -> NodeAddresses {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": "node-1"},
            "status": {"addresses": [
                {"type": "InternalIP", "address": "127.66.0.2"}, {"type": "InternalIP", "address": "172.18.0.2"},
                {"type": "Hostname", "address": "node-1"},
            ]},
        }))
        .expect("a node");
        NodeAddresses {
            everywhere: vec![Ipv4Addr::LOCALHOST.into()],
            nodes: node_addresses(&node).collect(),
        }
    }

    fn check(spec: Value, expected: &[&str]) {
        let status = json!({"loadBalancer": {"ingress": [{"ip": "127.67.0.1"}]}});
        let service = json!({"metadata": {"name": "web"}, "spec": spec.clone(), "status": status});
        let service: Service = serde_json::from_value(service).expect("a service");
        let text = |frontend: &Frontend| {
            let (port, to) = (&frontend.port_name, &frontend.locality);
            let to = match to {
                Locality::Cluster => String::new(),
                Locality::Node(node) => format!(" on {node}"),
            };
            format!(
                "{} {} {port}{to}",
                frontend.protocol.as_str(),
                frontend.address
            )
        };
        let found: Vec<String> = frontends(&service, &nodes()).iter().map(text).collect();
        assert_eq!(found, expected, "{spec}");
    }

    #[test]
    fn services_listen_where_their_type_says() {
        let ports = || json!([{"name": "http", "port": 80, "nodePort": 30080}, {"name": "dns", "port": 53, "protocol": "UDP"}]);
        check(
            json!({"type": "ClusterIP", "clusterIP": "127.64.1.1", "ports": [{"port": 80}]}),
            &["TCP 127.64.1.1:80 "],
        );
        check(json!({"clusterIP": "None", "ports": [{"port": 80}]}), &[]);
        check(
            json!({"clusterIP": "10.96.0.7", "ports": [{"port": 80}]}),
            &[],
        );
        check(
            json!({"type": "ExternalName", "externalName": "example.com", "ports": [{"port": 80}]}),
            &[],
        );
        check(
            json!({"clusterIP": "127.64.1.1", "ports": [{"port": 80, "protocol": "SCTP"}]}),
            &[],
        );
        check(
            json!({"clusterIP": "127.64.1.1", "externalIPs": ["127.9.9.9", "127.0.0.1", "192.0.2.1"], "ports": [{"port": 80}]}),
            &["TCP 127.9.9.9:80 ", "TCP 127.64.1.1:80 "],
        );
        check(
            json!({"type": "NodePort", "clusterIP": "127.64.1.1", "ports": ports()}),
            &[
                "TCP 127.64.1.1:80 http",
                "TCP 127.0.0.1:30080 http",
                "TCP 127.66.0.2:30080 http",
                "UDP 127.64.1.1:53 dns",
            ],
        );
        check(
            json!({"type": "LoadBalancer", "clusterIP": "127.64.1.1", "externalTrafficPolicy": "Local", "ports": [{"port": 80, "nodePort": 30080}]}),
            &[
                "TCP 127.64.1.1:80 ",
                "TCP 127.67.0.1:80 ",
                "TCP 127.0.0.1:30080 ",
                "TCP 127.66.0.2:30080  on node-1",
            ],
        );
    }

    #[test]
    fn affinity_lasts_for_three_hours_unless_the_service_says_otherwise() {
        let affinity = |spec: Value| {
            let service = json!({"metadata": {"name": "web"}, "spec": spec});
            affinity(&serde_json::from_value(service).expect("a service"))
        };
        assert_eq!(affinity(json!({"sessionAffinity": "None"})), None);
        assert_eq!(
            affinity(json!({"sessionAffinity": "ClientIP"})),
            Some(Duration::from_secs(10_800))
        );
        let config = json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 7}}});
        assert_eq!(affinity(config), Some(Duration::from_secs(7)));
    }
}
