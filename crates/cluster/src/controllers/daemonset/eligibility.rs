//! On which nodes a DaemonSet's pod may run: node name, selector, affinity, taints. Pure.

use k8s_openapi::api::core::v1::{
    Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration,
};

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
        tolerations.retain(|told| !is_same(told, &toleration));
        tolerations.push(toleration);
    }
}

fn is_same(one: &Toleration, other: &Toleration) -> bool {
    one.key == other.key && one.effect == other.effect && one.operator == other.operator
}

/// Whether a pod of this spec tolerates a taint.
fn tolerates(spec: &PodSpec, taint: &Taint) -> bool {
    let mut tolerations = spec.tolerations.iter().flatten();
    tolerations.any(|toleration| {
        let text = |told: &Option<String>| told.clone().unwrap_or_default();
        let (key, effect) = (text(&toleration.key), text(&toleration.effect));
        let value = match toleration.operator.as_deref() {
            Some("Exists") => true,
            None | Some("" | "Equal") => {
                !key.is_empty() && text(&toleration.value) == text(&taint.value)
            }
            Some(_) => false,
        };
        (key.is_empty() || key == taint.key)
            && (effect.is_empty() || effect == taint.effect)
            && value
    })
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
    required.is_none_or(|required| {
        let mut terms = required.node_selector_terms.iter();
        terms.any(|term| matches_term(node, term))
    })
}

/// Whether a node meets all requirements of a term. One without any selects nothing.
fn matches_term(node: &Node, term: &NodeSelectorTerm) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |key: &str| node.metadata.labels.as_ref()?.get(key).map(String::as_str);
    let field = |key: &str| match key {
        "metadata.name" => node.metadata.name.as_deref(),
        _ => None,
    };
    expressions.iter().all(|told| meets(told, label(&told.key)))
        && fields.iter().all(|told| meets(told, field(&told.key)))
}

fn meets(told: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = told.values.as_deref().unwrap_or_default();
    let listed = value.is_some_and(|value| values.iter().any(|one| one == value));
    let number = |text: &str| text.parse::<i64>().ok();
    let pair = || Some((number(value?)?, number(values.first()?)?));
    match told.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => pair().is_some_and(|(has, wants)| has > wants),
        "Lt" => pair().is_some_and(|(has, wants)| has < wants),
        _ => false,
    }
}
