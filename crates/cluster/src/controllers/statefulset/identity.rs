//! Who a pod of a StatefulSet is: its ordinal, its name, its labels, its volumes.

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};

use crate::controllers::revisions::POD_LABEL;
use crate::pods::claim::controller_reference;
use crate::pods::{from_template, label};

/// The label that carries a pod's name.
pub(crate) const NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label that carries a pod's ordinal.
const INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// A template that the set had, by the name of its revision.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    /// The name of the ControllerRevision.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) template: PodTemplateSpec,
}

/// How many pods the set shall have.
pub(crate) fn replicas(set: &StatefulSet) -> i32 {
    set.spec.replicas.unwrap_or(1).max(0)
}

/// The ordinals of the pods that the set shall have.
pub(crate) fn ordinals(set: &StatefulSet) -> Range<i32> {
    let ordinals = set.spec.ordinals.as_ref();
    let start = ordinals
        .and_then(|ordinals| ordinals.start)
        .unwrap_or(0)
        .max(0);
    start..start.saturating_add(replicas(set))
}

/// The ordinal in a pod's name, if the name is one that this set gives.
pub(crate) fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (parent, digits) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let number: i32 = digits.parse().ok().filter(|number| *number >= 0)?;
    // `web-07` or `web-+7` is nobody's name.
    let ours = Some(parent) == set.metadata.name.as_deref() && digits == number.to_string();
    ours.then_some(number)
}

/// The name of the pod with an ordinal.
pub(crate) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!(
        "{}-{ordinal}",
        set.metadata.name.as_deref().unwrap_or_default()
    )
}

/// The revision of a pod.
pub(crate) fn revision(pod: &Pod) -> &str {
    label(&pod.metadata, POD_LABEL).unwrap_or_default()
}

/// The pod with an ordinal, as a revision makes it.
pub(crate) fn make(set: &StatefulSet, revision: &Revision, ordinal: i32) -> Pod {
    let owner = controller_reference(set);
    let mut pod = from_template(&revision.template, set.metadata.namespace.clone(), owner);
    let name = pod_name(set, ordinal);
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_LABEL.to_owned(), revision.name.clone());
    labels.extend(identity(&name, ordinal));
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(name);
    spec.subdomain = set.spec.service_name.clone();
    let volumes = spec.volumes.take().unwrap_or_default();
    let volumes = mounted(set, ordinal, volumes);
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    pod
}

fn identity(name: &str, ordinal: i32) -> BTreeMap<String, String> {
    [
        (NAME_LABEL.to_owned(), name.to_owned()),
        (INDEX_LABEL.to_owned(), ordinal.to_string()),
    ]
    .into()
}

/// The pod with the labels of its identity, if it lacks its name.
pub(crate) fn relabelled(pod: &Pod, ordinal: i32) -> Option<Pod> {
    let name = pod.metadata.name.as_deref()?;
    if label(&pod.metadata, NAME_LABEL) == Some(name) {
        return None;
    }
    let mut after = pod.clone();
    let labels = after.metadata.labels.get_or_insert_default();
    labels.extend(identity(name, ordinal));
    Some(after)
}

/// The claims of the pod with an ordinal, without owners.
pub(crate) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<PersistentVolumeClaim> {
    let spec = &set.spec;
    let templates = spec.volume_claim_templates.iter().flatten();
    let make = |template: &PersistentVolumeClaim| {
        let mut claim = template.clone();
        claim.metadata.name = Some(claim_name(set, template, ordinal));
        claim.metadata.namespace = set.metadata.namespace.clone();
        let selected = spec.selector.match_labels.clone().unwrap_or_default();
        claim
            .metadata
            .labels
            .get_or_insert_default()
            .extend(selected);
        claim.status = None;
        claim
    };
    templates.map(make).collect()
}

fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    let name = template.metadata.name.as_deref().unwrap_or_default();
    format!("{name}-{}", pod_name(set, ordinal))
}

/// The volumes of a pod: its claims, and what else the template mounts.
fn mounted(set: &StatefulSet, ordinal: i32, declared: Vec<Volume>) -> Vec<Volume> {
    let templates = set.spec.volume_claim_templates.iter().flatten();
    let claim = |template: &PersistentVolumeClaim| Volume {
        name: template.metadata.name.clone().unwrap_or_default(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(set, template, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes: Vec<Volume> = templates.map(claim).collect();
    let claimed = volumes.len();
    for volume in declared {
        if !volumes[..claimed]
            .iter()
            .any(|claim| claim.name == volume.name)
        {
            volumes.push(volume);
        }
    }
    volumes
}
