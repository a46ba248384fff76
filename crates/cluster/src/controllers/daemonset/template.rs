//! The pods of a DaemonSet: how one is tied to its node, and how the node is read from it. Pure.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec,
};

use super::eligibility::tolerate;
use crate::controllers::revisions::POD_LABEL;
use crate::pods::claim::controller_reference;
use crate::pods::{from_template, label, node_name};

/// The annotation by which earlier versions of this API counted templates.
const GENERATION: &str = "deprecated.daemonset.template.generation";
/// The label that carries it to pods.
const GENERATION_LABEL: &str = "pod-template-generation";

const NAME_FIELD: &str = "metadata.name";

/// What all pods of the set ask of their nodes.
pub(crate) fn daemon_spec(set: &DaemonSet) -> PodSpec {
    let mut spec = set.spec.template.spec.clone().unwrap_or_default();
    tolerate(&mut spec);
    spec
}

/// The pod for a node.
pub(crate) fn make(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let owner = controller_reference(set);
    let mut pod = from_template(&set.spec.template, set.metadata.namespace.clone(), owner);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_LABEL.to_owned(), hash.to_owned());
    if let Some(generation) = generation(set) {
        labels.insert(GENERATION_LABEL.to_owned(), generation.to_owned());
    }
    let mut spec = daemon_spec(set);
    tie(&mut spec, node);
    pod.spec = Some(spec);
    pod
}

/// Whether a pod has the template of now.
pub(crate) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let generation = generation(set);
    let same = |key, value: Option<&str>| value.is_some() && label(&pod.metadata, key) == value;
    same(POD_LABEL, Some(hash)) || same(GENERATION_LABEL, generation)
}

fn generation(set: &DaemonSet) -> Option<&str> {
    let generation = set.metadata.annotations.as_ref()?.get(GENERATION)?;
    generation.parse::<i64>().is_ok().then_some(generation)
}

/// Lets the scheduler put a pod on one node alone. Other required affinity was asked before and holds for it.
fn tie(spec: &mut PodSpec, node: &str) {
    let name = NodeSelectorRequirement {
        key: NAME_FIELD.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm {
        match_fields: Some(vec![name]),
        match_expressions: None,
    };
    let affinity = spec.affinity.get_or_insert_default();
    let affinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
        node_selector_terms: vec![term],
    });
}

/// The node of a pod: where it is, or where it is tied to.
pub(crate) fn target(pod: &Pod) -> Option<&str> {
    let bound = node_name(pod);
    if !bound.is_empty() {
        return Some(bound);
    }
    let affinity = pod
        .spec
        .as_ref()?
        .affinity
        .as_ref()?
        .node_affinity
        .as_ref()?;
    let required = affinity
        .required_during_scheduling_ignored_during_execution
        .as_ref()?;
    let fields = required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten());
    let mut names = fields.filter(|field| field.key == NAME_FIELD && field.operator == "In");
    match names.next()?.values.as_deref()? {
        [name] => Some(name),
        _ => None,
    }
}
