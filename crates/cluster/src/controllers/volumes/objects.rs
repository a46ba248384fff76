//! What the binder, the scheduler and the protection of volumes ask of claims, volumes and classes. Plain functions.

use k8s_openapi::api::core::v1::{
    NodeSelectorRequirement, NodeSelectorTerm, ObjectReference, PersistentVolume,
    PersistentVolumeClaim,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewright_runtime::{Index, Key};
use kubewright_schema::quantity::Quantity;

/// On a claim: its binding was completed once, so that a volume that is missing is lost.
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or a volume: the controller chose its counterpart, and may choose another.
pub(crate) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume: who made it.
pub(crate) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a claim: which node the first pod that uses it will run on.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: who is to make a volume for it, in the word of now and of before.
pub(crate) const STORAGE_PROVISIONER: [&str; 2] = [
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];
/// On a claim or a volume: the CSI driver that took over from a provisioner inside Kubernetes.
pub(crate) const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// On a claim or a volume: its class, in the word of before. It comes first.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
/// On a volume that was made larger: what the file system on it holds until a node has grown that too.
pub(crate) const BEFORE_RESIZE: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// A provisioner that makes nothing: volumes are made by hand.
pub(crate) const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The index of volumes by who may have them.
pub(crate) const BY_PLACE: &str = "place";

/// Whether an object has an annotation.
pub(crate) fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|annotations| annotations.contains_key(annotation))
}

/// What an annotation says.
pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    let value = metadata.annotations.as_ref()?.get(name);
    value.map(String::as_str)
}

/// Sets an annotation.
pub(crate) fn annotate(metadata: &mut ObjectMeta, annotation: &str, value: &str) {
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(annotation.to_owned(), value.to_owned());
}

/// The claim that a volume is bound or promised to.
pub(crate) fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = claim_ref(volume)?;
    let (namespace, name) = (claim.namespace.as_deref()?, claim.name.as_deref()?);
    Some(Key::new(namespace, name))
}

/// What a volume says of its claim.
pub(crate) fn claim_ref(volume: &PersistentVolume) -> Option<&ObjectReference> {
    volume.spec.as_ref()?.claim_ref.as_ref()
}

/// The uid of the claim that a volume is bound to; nothing if it is only promised to a name.
pub(crate) fn claim_uid(volume: &PersistentVolume) -> Option<&str> {
    let uid = claim_ref(volume)?.uid.as_deref();
    uid.filter(|uid| !uid.is_empty())
}

/// Whether a volume is bound to a claim, or promised to one of its name (`pv_helpers.go: IsVolumeBoundToClaim`).
pub(crate) fn is_for(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    claim_ref(volume).is_some_and(|of| {
        of.name == claim.metadata.name
            && of.namespace == claim.metadata.namespace
            && claim_uid(volume).is_none_or(|uid| Some(uid) == claim.metadata.uid.as_deref())
    })
}

/// The volume that a claim names.
pub(crate) fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// The phase of a claim; empty where nobody has set one.
pub(crate) fn claim_phase(claim: &PersistentVolumeClaim) -> &str {
    let status = claim.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// The phase of a volume; empty where nobody has set one.
pub(crate) fn volume_phase(volume: &PersistentVolume) -> &str {
    let status = volume.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    phase.unwrap_or_default()
}

/// Whether a claim is bound through and through, so that a pod can use it.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    volume_of(claim).is_some() && claim_phase(claim) == "Bound"
}

/// The class that a claim names; nothing if it leaves that to the cluster (`pv_helpers.go: PersistentVolumeClaimHasClass`).
pub(crate) fn class_named(claim: &PersistentVolumeClaim) -> Option<&str> {
    let spec = || claim.spec.as_ref()?.storage_class_name.as_deref();
    annotation(&claim.metadata, OLD_CLASS).or_else(spec)
}

/// The class of a claim; empty for none.
pub(crate) fn class_of(claim: &PersistentVolumeClaim) -> &str {
    class_named(claim).unwrap_or_default()
}

/// The class of a volume; empty for none.
pub(crate) fn volume_class(volume: &PersistentVolume) -> &str {
    let spec = || volume.spec.as_ref()?.storage_class_name.as_deref();
    let named = annotation(&volume.metadata, OLD_CLASS).or_else(spec);
    named.unwrap_or_default()
}

/// How much a claim asks for.
pub(crate) fn request(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    Quantity::parse(&resources.requests.as_ref()?.get("storage")?.0).ok()
}

/// How much a volume holds.
pub(crate) fn capacity(volume: &PersistentVolume) -> Option<Quantity> {
    let capacity = volume.spec.as_ref()?.capacity.as_ref()?;
    Quantity::parse(&capacity.get("storage")?.0).ok()
}

/// Whether a class waits for the first pod that uses a claim.
pub(crate) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// The nodes that volumes of a class may be made for; nothing if for all.
pub(crate) fn allowed_nodes(class: &StorageClass) -> Option<Vec<NodeSelectorTerm>> {
    let terms = class
        .allowed_topologies
        .as_ref()
        .filter(|terms| !terms.is_empty())?;
    let term = |expressions: Vec<NodeSelectorRequirement>| NodeSelectorTerm {
        match_expressions: Some(expressions),
        match_fields: None,
    };
    let terms = terms.iter().map(|topology| {
        let requirements = topology.match_label_expressions.iter().flatten();
        let requirements = requirements.map(|requirement| NodeSelectorRequirement {
            key: requirement.key.clone(),
            operator: "In".to_owned(),
            values: Some(requirement.values.clone()),
        });
        term(requirements.collect())
    });
    Some(terms.collect())
}

/// The nodes that a volume can be used on; nothing if on all.
pub(crate) fn usable_on(volume: &PersistentVolume) -> Option<&[NodeSelectorTerm]> {
    let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
    Some(&affinity.required.as_ref()?.node_selector_terms)
}

/// An index of volumes by who may have them: all that want one of the class, or the claim that it is promised to.
pub(crate) fn place_index() -> Index<PersistentVolume> {
    Index::of(|volume| vec![place(volume)])
}

/// Where the free volumes of a class are in the index.
pub(crate) fn free_of(class: &str) -> String {
    format!("free {class}")
}

/// Where the volumes that are promised to a claim are in the index.
pub(crate) fn promised_to(claim: &Key) -> String {
    format!("for {claim}")
}

fn place(volume: &PersistentVolume) -> String {
    claim_of(volume).map_or_else(|| free_of(volume_class(volume)), |key| promised_to(&key))
}
