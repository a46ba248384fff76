//! On which nodes a DaemonSet's pod may run: node name, selector, affinity, taints. Pure.

use k8s_openapi::api::core::v1::{Node, PodSpec, Taint, Toleration};

use crate::scheduler::selector::{Labels, term_matches};
use crate::scheduler::taints::covers;

/// What a node means for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It should run there.
    Run,
    /// It should not start there, but may stay.
    Stay,
    /// It should not be there.
    Leave,
}

/// What a node means for pods of this spec, which has its tolerations already.
pub(crate) fn fit(node: &Node, spec: &PodSpec) -> Fit {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let wanted = spec.node_name.as_deref().unwrap_or_default();
    if (!wanted.is_empty() && wanted != name) || !is_selected(node, spec) {
        return Fit::Leave;
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let untolerated = |effect: &str| {
        let mut taints = taints
            .into_iter()
            .flatten()
            .filter(|taint| taint.effect == effect);
        taints.any(|taint| !tolerates(spec, taint))
    };
    if untolerated("NoExecute") {
        Fit::Leave
    } else if untolerated("NoSchedule") {
        Fit::Stay
    } else {
        Fit::Run
    }
}

/// The conditions of nodes that daemons live with, and how.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Gives a pod the tolerations of a daemon.
pub(crate) fn tolerate(spec: &mut PodSpec) {
    let network = [("node.kubernetes.io/network-unavailable", "NoSchedule")];
    let network = network.iter().filter(|_| spec.host_network == Some(true));
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in TOLERATED.iter().chain(network) {
        let toleration = Toleration {
            key: Some((*key).to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some((*effect).to_owned()),
            ..Toleration::default()
        };
        // One with the same key and effect but a time limit would let the daemon be evicted.
        tolerations.retain(|existing| !is_same(existing, &toleration));
        tolerations.push(toleration);
    }
}

fn is_same(one: &Toleration, other: &Toleration) -> bool {
    one.key == other.key && one.effect == other.effect && one.operator == other.operator
}

/// Whether a pod of this spec tolerates a taint.
fn tolerates(spec: &PodSpec, taint: &Taint) -> bool {
    let mut tolerations = spec.tolerations.iter().flatten();
    tolerations.any(|toleration| covers(toleration, taint))
}

fn is_selected(node: &Node, spec: &PodSpec) -> bool {
    let label = |key: &str| {
        node.metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(key))
    };
    let mut selector = spec.node_selector.iter().flatten();
    if !selector.all(|(key, value)| label(key) == Some(value)) {
        return false;
    }
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| {
        affinity
            .required_during_scheduling_ignored_during_execution
            .as_ref()
    });
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let labels = node
        .metadata
        .labels
        .as_ref()
        .unwrap_or(const { &Labels::new() });
    required.is_none_or(|required| {
        let mut terms = required.node_selector_terms.iter();
        terms.any(|term| term_matches(term, name, labels))
    })
}
