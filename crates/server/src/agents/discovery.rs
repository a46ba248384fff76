//! What of the agents' knowledge is an API of its own: `metrics.k8s.io`, as discovery lists it.

use std::sync::OnceLock;

use kubewright_schema::catalog::{Resource, Scope, Verb};

/// The group of measurements.
pub(crate) const GROUP: &str = "metrics.k8s.io";
/// Its version.
pub(crate) const VERSION: &str = "v1beta1";

/// What is served, for discovery.
pub(crate) fn resources() -> &'static [Resource] {
    static RESOURCES: OnceLock<Vec<Resource>> = OnceLock::new();
    RESOURCES.get_or_init(|| {
        let resource = |plural: &str, kind: &str, scope| Resource {
            group: GROUP.into(),
            version: VERSION.into(),
            plural: plural.into(),
            singular: "".into(),
            kind: kind.into(),
            list_kind: format!("{kind}List").into(),
            scope,
            short_names: Vec::new(),
            categories: Vec::new(),
            verbs: vec![Verb::Get, Verb::List],
            subresources: Vec::new(),
        };
        vec![
            resource("nodes", "NodeMetrics", Scope::Cluster),
            resource("pods", "PodMetrics", Scope::Namespaced),
        ]
    })
}
