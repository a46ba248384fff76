//! Which endpoints a port of a Service leads to: a pure function of its EndpointSlices.
//!
//! Mirrors `pkg/proxy/topology.go: CategorizeEndpoints`: connections go to the ready endpoints, and when there are none, to
//! those that serve although they are terminating.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

/// The most endpoints that a port of a Service leads to; further ones are left out.
const MOST: usize = 10_000;

/// One address behind a port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    /// The node that the endpoint is on.
    pub(crate) node: Option<String>,
    pub(crate) condition: Condition,
}

/// What the conditions of an endpoint come to. The order is that of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Condition {
    /// New connections go here.
    Ready,
    /// It still answers while it terminates: new connections go here when nothing is ready.
    Draining,
    /// It takes no new connections.
    Closed,
}

/// Whose endpoints a listener leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Locality {
    /// Those of the whole cluster.
    Cluster,
    /// Those on one node, as the traffic policy `Local` asks.
    Node(String),
}

/// The endpoints of a port, by the name and protocol of the port, in the order of their addresses.
///
/// Only loopback addresses count: nothing is behind the address of a simulated pod, and no traffic leaves the machine.
pub(crate) fn backends<'a>(
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
    port_name: &str,
    protocol: &str,
) -> Vec<Backend> {
    let mut found: BTreeMap<SocketAddr, Backend> = BTreeMap::new();
    for slice in slices {
        let Some(port) = port_of(slice, port_name, protocol) else {
            continue;
        };
        for endpoint in slice.endpoints.iter().flatten() {
            // The first address is the endpoint's; further ones have no meaning (discovery/v1 types.go).
            let Some(ip) = endpoint.addresses.first().and_then(|a| loopback(a)) else {
                continue;
            };
            if found.len() >= MOST {
                return found.into_values().collect();
            }
            let backend = Backend {
                address: SocketAddr::new(ip, port),
                node: endpoint.node_name.clone(),
                condition: condition(endpoint),
            };
            // While an endpoint moves from one slice to another it is in both: the better one counts.
            let known = found.entry(backend.address).or_insert(backend.clone());
            if backend.condition < known.condition {
                *known = backend;
            }
        }
    }
    found.into_values().collect()
}

/// Where new connections go.
pub(crate) fn usable(backends: &[Backend], locality: &Locality) -> Vec<SocketAddr> {
    let here = |backend: &&Backend| match locality {
        Locality::Cluster => true,
        Locality::Node(node) => backend.node.as_ref() == Some(node),
    };
    let with = |condition: Condition| {
        let chosen = backends.iter().filter(here);
        let chosen = chosen.filter(move |backend| backend.condition == condition);
        chosen.map(|backend| backend.address).collect()
    };
    let ready: Vec<SocketAddr> = with(Condition::Ready);
    if ready.is_empty() {
        return with(Condition::Draining);
    }
    ready
}

fn port_of(slice: &EndpointSlice, name: &str, protocol: &str) -> Option<u16> {
    let mut ports = slice.ports.iter().flatten();
    let found = ports.find(|port| {
        port.name.as_deref().unwrap_or("") == name
            && port.protocol.as_deref().unwrap_or("TCP") == protocol
    })?;
    let number = u16::try_from(found.port?).ok()?;
    (number != 0).then_some(number)
}

fn loopback(address: &str) -> Option<IpAddr> {
    let address: IpAddr = address.parse().ok()?;
    address.is_loopback().then_some(address)
}

/// An absent `ready` means that it is, an absent `serving` is what `ready` is (discovery/v1 types.go).
fn condition(endpoint: &Endpoint) -> Condition {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let ready = conditions.ready.unwrap_or(true);
    let serving = conditions.serving.unwrap_or(ready);
    if ready {
        Condition::Ready
    } else if serving && conditions.terminating == Some(true) {
        Condition::Draining
    } else {
        Condition::Closed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(endpoints: Value) -> EndpointSlice {
        serde_json::from_value(json!({
            "metadata": {"name": "web-0"}, "addressType": "IPv4", "endpoints": endpoints,
            "ports": [
                {"name": "http", "port": 8080, "protocol": "TCP"},
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        }))
        .expect("a slice")
    }

    /// An endpoint: its address, node, and `ready`, `serving`, `terminating`.
    fn endpoint(last: u8, node: &str, conditions: [Option<bool>; 3]) -> Value {
        let [ready, serving, terminating] = conditions;
        json!({
            "addresses": [format!("127.65.0.{last}")], "nodeName": node,
            "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        })
    }

    /// What it is about, endpoints by last octet, node and conditions, whose endpoints count, and those that are usable.
    type Case = (
        &'static str,
        &'static [(u8, &'static str, [Option<bool>; 3])],
        Locality,
        &'static [u8],
    );

    const READY: [Option<bool>; 3] = [Some(true), Some(true), Some(false)];
    const DRAINING: [Option<bool>; 3] = [Some(false), Some(true), Some(true)];
    const UNREADY: [Option<bool>; 3] = [Some(false), Some(false), Some(false)];
    const STOPPED: [Option<bool>; 3] = [Some(false), Some(false), Some(true)];
    const UNKNOWN: [Option<bool>; 3] = [None, None, None];
    /// `publishNotReadyAddresses` of the Service: the slice says `ready` of an endpoint that serves nothing.
    const PUBLISHED: [Option<bool>; 3] = [Some(true), Some(false), Some(true)];

    fn last_octets(addresses: &[SocketAddr]) -> Vec<u8> {
        let last = |address: &SocketAddr| match address.ip() {
            IpAddr::V4(ip) => ip.octets()[3],
            IpAddr::V6(_) => 0,
        };
        addresses.iter().map(last).collect()
    }

    #[test]
    fn new_connections_go_to_the_ready_and_else_to_the_draining() {
        let node_a = || Locality::Node("a".to_owned());
        let cases: &[Case] = &[
            ("no endpoints", &[], Locality::Cluster, &[]),
            (
                "ready",
                &[(2, "a", READY), (3, "b", READY)],
                Locality::Cluster,
                &[2, 3],
            ),
            (
                "unready are left out",
                &[(2, "a", READY), (3, "b", UNREADY)],
                Locality::Cluster,
                &[2],
            ),
            (
                "draining are left out",
                &[(2, "a", READY), (3, "b", DRAINING)],
                Locality::Cluster,
                &[2],
            ),
            (
                "draining are better than nothing",
                &[(2, "a", UNREADY), (3, "b", DRAINING)],
                Locality::Cluster,
                &[3],
            ),
            (
                "what has stopped serving is not",
                &[(2, "a", STOPPED), (3, "b", UNREADY)],
                Locality::Cluster,
                &[],
            ),
            (
                "absent conditions mean ready",
                &[(2, "a", UNKNOWN)],
                Locality::Cluster,
                &[2],
            ),
            (
                "published although not ready",
                &[(2, "a", PUBLISHED)],
                Locality::Cluster,
                &[2],
            ),
            (
                "on one node",
                &[(2, "a", READY), (3, "b", READY)],
                node_a(),
                &[2],
            ),
            (
                "draining on one node",
                &[(2, "a", DRAINING), (3, "b", READY)],
                node_a(),
                &[2],
            ),
            ("none on that node", &[(3, "b", READY)], node_a(), &[]),
        ];
        for (what, endpoints, locality, expected) in cases {
            let endpoints = endpoints
                .iter()
                .map(|(last, node, conditions)| endpoint(*last, node, *conditions));
            let slice = slice(endpoints.collect());
            let found = backends([&slice], "http", "TCP");
            assert_eq!(last_octets(&usable(&found, locality)), *expected, "{what}");
        }
    }

    #[test]
    fn ports_are_found_by_name_and_protocol() {
        let slice = slice(json!([endpoint(2, "a", READY)]));
        let port = |name: &str, protocol: &str| {
            let found = backends([&slice], name, protocol);
            found.first().map(|backend| backend.address.port())
        };
        assert_eq!(port("http", "TCP"), Some(8080));
        assert_eq!(port("dns", "UDP"), Some(53));
        assert_eq!(port("dns", "TCP"), None);
        assert_eq!(port("", "TCP"), None);
    }

    #[test]
    fn an_endpoint_in_two_slices_counts_once_and_by_its_better_condition() {
        let old = slice(json!([endpoint(2, "a", UNREADY), endpoint(3, "a", READY)]));
        let new = slice(json!([endpoint(2, "a", READY), endpoint(3, "a", DRAINING)]));
        let found = backends([&old, &new], "http", "TCP");
        assert_eq!(last_octets(&usable(&found, &Locality::Cluster)), [2, 3]);
    }

    #[test]
    fn addresses_beyond_loopback_are_left_out() {
        let endpoints =
            json!([{"addresses": ["10.244.0.2"]}, {"addresses": ["x"]}, {"addresses": []}]);
        assert_eq!(backends([&slice(endpoints)], "http", "TCP"), []);
    }
}
