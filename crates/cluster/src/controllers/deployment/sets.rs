//! The ReplicaSets of a Deployment: which is the new one, how they are ordered, how a new one is made.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::controllers::replicaset::plan::desired;
use crate::pods::claim::controller_reference;
use crate::pods::hash;

/// The label that keeps the pods of two templates apart.
pub(crate) const HASH_LABEL: &str = "pod-template-hash";

/// The longest name of an object.
const NAME_LIMIT: usize = 253;

/// A ReplicaSet as it is and as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    /// As it is; none for one that shall be created.
    pub(crate) before: Option<Arc<ReplicaSet>>,
    /// As it shall be.
    pub(crate) after: ReplicaSet,
}

impl Slot {
    fn existing(set: Arc<ReplicaSet>) -> Self {
        Self {
            after: ReplicaSet::clone(&set),
            before: Some(set),
        }
    }

    /// A set that does not exist yet.
    pub(crate) fn fresh(set: ReplicaSet) -> Self {
        Self {
            before: None,
            after: set,
        }
    }

    /// How many pods the set shall have.
    pub(crate) fn desired(&self) -> i32 {
        desired(&self.after)
    }

    /// How many pods the set last reported as available.
    pub(crate) fn available(&self) -> i32 {
        let status = self.after.status.as_ref();
        status
            .and_then(|status| status.available_replicas)
            .unwrap_or_default()
    }

    /// How many pods the set last reported.
    pub(crate) fn running(&self) -> i32 {
        self.after
            .status
            .as_ref()
            .map_or(0, |status| status.replicas)
    }

    /// Whether the set has or wants pods.
    pub(crate) fn is_active(&self) -> bool {
        self.desired() > 0
    }
}

/// The new set, if it exists, and the old ones from the oldest to the youngest. Where several sets have the template
/// the oldest of them is the new one.
pub(crate) fn split(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
) -> (Option<Slot>, Vec<Slot>) {
    let mut sets = sets.to_vec();
    sets.sort_by_cached_key(|set| age(&set.metadata));
    let is_new = |set: &Arc<ReplicaSet>| {
        let template = set.spec.template.as_ref();
        template.is_some_and(|template| same_template(template, &deployment.spec.template))
    };
    let new = sets.iter().position(is_new).map(|at| sets.remove(at));
    (
        new.map(Slot::existing),
        sets.into_iter().map(Slot::existing).collect(),
    )
}

/// The order of creation.
pub(crate) fn age(metadata: &ObjectMeta) -> (Option<Timestamp>, String) {
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, metadata.name.clone().unwrap_or_default())
}

/// Whether two templates make the same pods. The hash in the labels names a template and is not part of it.
pub(crate) fn same_template(one: &PodTemplateSpec, other: &PodTemplateSpec) -> bool {
    one.spec == other.spec && without_hash(one) == without_hash(other)
}

fn without_hash(template: &PodTemplateSpec) -> ObjectMeta {
    let mut metadata = template.metadata.clone().unwrap_or_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(HASH_LABEL);
    }
    metadata.labels = metadata.labels.filter(|labels| !labels.is_empty());
    metadata.annotations = metadata.annotations.filter(|all| !all.is_empty());
    metadata
}

/// The set for the Deployment's template, without pods and without annotations.
pub(crate) fn make(deployment: &Deployment) -> ReplicaSet {
    let collisions = deployment
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    // Types of the API have text for keys, so they always serialise.
    let template = serde_json::to_value(&deployment.spec.template).unwrap_or_default();
    let hash = hash::of(&template, collisions);
    let template = labelled(&deployment.spec.template, &hash);
    let labels = template
        .metadata
        .as_ref()
        .and_then(|meta| meta.labels.clone());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(name(deployment, &hash)),
            namespace: deployment.metadata.namespace.clone(),
            labels,
            owner_references: Some(vec![controller_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: deployment.spec.min_ready_seconds,
            selector: narrowed(&deployment.spec.selector, &hash),
            template: Some(template),
        },
        status: None,
    }
}

fn name(deployment: &Deployment, hash: &str) -> String {
    let mut name = deployment.metadata.name.clone().unwrap_or_default();
    // Names are ASCII, so any length is a boundary.
    name.truncate(NAME_LIMIT - 1 - hash.len());
    format!("{name}-{hash}")
}

fn labelled(template: &PodTemplateSpec, hash: &str) -> PodTemplateSpec {
    let mut template = template.clone();
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    template
}

fn narrowed(selector: &LabelSelector, hash: &str) -> LabelSelector {
    let mut selector = selector.clone();
    let labels = selector.match_labels.get_or_insert_default();
    labels.insert(HASH_LABEL.to_owned(), hash.to_owned());
    selector
}
