//! ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, numbered. Pure.
//!
//! A revision holds a patch that would bring its template back; `kubectl rollout undo` applies it as it stands.

pub(crate) mod settle;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::Resource;
use serde_json::{Value, json};

use super::deployment::sets::age;
use crate::pods::claim::controller_reference;
use crate::pods::hash;

/// The label by which pods tell their revision.
pub(crate) const POD_LABEL: &str = "controller-revision-hash";
/// The label by which revisions of StatefulSets tell their hash.
pub(crate) const REVISION_LABEL: &str = "controller.kubernetes.io/hash";

/// The longest part of the owner's name in a revision's.
const PREFIX_LIMIT: usize = 223;

/// What makes the owner's template the latest revision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Latest {
    /// It is the latest revision already.
    Is(Arc<ControllerRevision>),
    /// It is an earlier one, which gets this number.
    Renumber(Arc<ControllerRevision>, i64),
    /// It is not among them; it gets this number.
    Create(i64),
}

/// The patch that brings a template back.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    // Types of the API have text for keys, so they always serialise.
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({"spec": {"template": template}})
}

/// The template that a revision brings back; none if it holds something else.
pub(crate) fn template(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.0.get("spec")?.get("template")?.clone();
    template.as_object_mut()?.remove("$patch");
    kubewright_cache::decode(template.to_string().as_bytes()).ok()
}

/// Sorts revisions from the first to the last.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by_cached_key(|revision| (number(revision), age(&revision.metadata)));
}

/// The number of a revision.
pub(crate) fn number(revision: &ControllerRevision) -> i64 {
    revision.revision.unwrap_or_default()
}

/// What makes a template the latest of sorted revisions.
pub(crate) fn latest(sorted: &[Arc<ControllerRevision>], data: &Value) -> Latest {
    let next = sorted
        .last()
        .map_or(0, |last| number(last))
        .saturating_add(1);
    match sorted.iter().rposition(|revision| revision.data.0 == *data) {
        None => Latest::Create(next),
        Some(at) if at + 1 == sorted.len() => Latest::Is(sorted[at].clone()),
        Some(at) => Latest::Renumber(sorted[at].clone(), next),
    }
}

/// A revision of `owner`'s template; its hash is under `label`.
pub(crate) fn make<K>(
    owner: &K,
    template: &PodTemplateSpec,
    number: i64,
    label: &str,
    collisions: Option<i32>,
) -> ControllerRevision
where
    K: Resource<DynamicType = ()>,
{
    let data = data(template);
    let hash = hash::of(&data, collisions);
    let mut prefix = owner.meta().name.clone().unwrap_or_default();
    prefix.truncate(PREFIX_LIMIT);
    let metadata = template.metadata.as_ref();
    let mut labels = metadata
        .and_then(|metadata| metadata.labels.clone())
        .unwrap_or_default();
    labels.insert(label.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.meta().namespace.clone(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            owner_references: Some(vec![controller_reference(owner)]),
            ..ObjectMeta::default()
        },
        data: RawExtension(data),
        revision: Some(number),
    }
}

/// Which revisions nobody uses: not among the `live` ones by what `key` reads from them.
pub(crate) fn unused<'a>(
    sorted: &'a [Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    key: impl Fn(&'a ControllerRevision) -> &'a str,
) -> Vec<Arc<ControllerRevision>> {
    let dead = sorted
        .iter()
        .filter(|revision| !live.contains(key(revision)));
    dead.cloned().collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::DaemonSet;

    use super::*;
    use crate::pods::samples;

    fn revision(image: &str, number: i64) -> Arc<ControllerRevision> {
        let owner = DaemonSet {
            metadata: samples::metadata("web"),
            ..DaemonSet::default()
        };
        let template = samples::template(image);
        Arc::new(make(&owner, &template, number, POD_LABEL, None))
    }

    #[test]
    fn a_revision_brings_its_template_back() {
        let revision = revision("nginx:1", 1);
        assert_eq!(template(&revision), Some(samples::template("nginx:1")));
        let foreign = ControllerRevision {
            data: RawExtension(json!({"spec": {"template": 3}})),
            ..ControllerRevision::default()
        };
        assert_eq!(template(&foreign), None);
    }

    #[test]
    fn the_name_is_that_of_the_owner_and_the_hash() {
        let revision = revision("nginx:1", 1);
        let hash = revision.metadata.labels.as_ref().expect("it is labelled")[POD_LABEL].clone();
        assert_eq!(revision.metadata.name, Some(format!("web-{hash}")));
    }

    #[test]
    fn the_template_becomes_the_latest_revision() {
        let (one, two, three) = (revision("a", 1), revision("b", 2), revision("c", 3));
        let sorted = [one.clone(), two, three.clone()];
        let check = |image: &str, expect| {
            let data = data(&samples::template(image));
            assert_eq!(latest(&sorted, &data), expect, "{image}");
        };
        check("c", Latest::Is(three));
        check("a", Latest::Renumber(one, 4));
        check("d", Latest::Create(4));
        assert_eq!(
            latest(&[], &data(&samples::template("a"))),
            Latest::Create(1)
        );
    }

    #[test]
    fn revisions_sort_by_number() {
        let mut revisions = [revision("c", 10), revision("a", 9), revision("b", 2)];
        sort(&mut revisions);
        assert_eq!(
            revisions.each_ref().map(|revision| number(revision)),
            [2, 9, 10]
        );
    }
}
