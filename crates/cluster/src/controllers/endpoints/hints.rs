//! Who an endpoint is meant for, as `spec.trafficDistribution` asks. Mirrors `trafficdist.go: ReconcileHints`.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, ForNode, ForZone};

/// The annotation of an older way to ask, which goes before the field. What it asks for is not simulated.
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// Which hints a service asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hints {
    None,
    Zones,
    ZonesAndNodes,
}

impl Hints {
    pub(super) fn of(service: &Service) -> Self {
        let annotations = service.metadata.annotations.as_ref();
        let mode = annotations.and_then(|all| all.get(TOPOLOGY_MODE));
        if mode.is_some_and(|mode| matches!(mode.as_str(), "Auto" | "auto")) {
            return Self::None;
        }
        let spec = service.spec.as_ref();
        match spec.and_then(|spec| spec.traffic_distribution.as_deref()) {
            Some("PreferClose" | "PreferSameZone") => Self::Zones,
            Some("PreferSameNode") => Self::ZonesAndNodes,
            _ => Self::None,
        }
    }

    /// The hints of an endpoint: its own zone and node, if it is ready.
    pub(super) fn hint(self, endpoint: &Endpoint) -> Option<EndpointHints> {
        let conditions = endpoint.conditions.as_ref();
        let is_ready = conditions.is_some_and(|conditions| conditions.ready == Some(true));
        if self == Self::None || !is_ready {
            return None;
        }
        let name = |name: &String| name.clone();
        let zone = endpoint.zone.as_ref().map(name);
        let node = endpoint.node_name.as_ref().map(name);
        let node = node.filter(|_| self == Self::ZonesAndNodes);
        let hints = EndpointHints {
            for_zones: zone.map(|name| vec![ForZone { name }]),
            for_nodes: node.map(|name| vec![ForNode { name }]),
        };
        (hints != EndpointHints::default()).then_some(hints)
    }
}
