//! The four writes that bind a claim and a volume to each other, and the one that takes a volume back, as changes of the
//! objects. Pure; mirrors `pv_controller.go: bind, unbindVolume` and `pv_helpers.go: GetBindVolumeToClaim`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::objects::{
    BEFORE_RESIZE, BIND_COMPLETED, BOUND_BY_CONTROLLER, annotate, annotation, claim_phase,
    claim_ref, has, is_for, volume_of,
};

/// Says on a volume that it is a claim's. What the user has promised by name stays the user's choice.
pub(crate) fn bind_volume(volume: &mut PersistentVolume, claim: &PersistentVolumeClaim) {
    let chosen = !is_for(claim, volume);
    let uid = claim_ref(volume).and_then(|of| of.uid.as_deref());
    if chosen || uid != claim.metadata.uid.as_deref() {
        volume.spec.get_or_insert_default().claim_ref = Some(reference(claim));
    }
    if chosen && !has(&volume.metadata, BOUND_BY_CONTROLLER) {
        annotate(&mut volume.metadata, BOUND_BY_CONTROLLER, "yes");
    }
}

/// Says on a claim which volume is its own.
pub(crate) fn bind_claim(claim: &mut PersistentVolumeClaim, volume: &PersistentVolume) {
    if volume_of(claim) != volume.metadata.name.as_deref() {
        claim.spec.get_or_insert_default().volume_name = volume.metadata.name.clone();
        annotate(&mut claim.metadata, BOUND_BY_CONTROLLER, "yes");
    }
    if !has(&claim.metadata, BIND_COMPLETED) {
        annotate(&mut claim.metadata, BIND_COMPLETED, "yes");
    }
}

/// Sets the phase of a volume.
pub(crate) fn set_volume_phase(volume: &mut PersistentVolume, phase: &str) {
    volume.status.get_or_insert_default().phase = Some(phase.to_owned());
}

/// Sets the status of a claim that is bound. Its capacity is the volume's at that moment, and the resizer's from then on.
pub(crate) fn set_bound(claim: &mut PersistentVolumeClaim, volume: &PersistentVolume) {
    let (becomes, waited) = (
        claim_phase(claim) != "Bound",
        claim_phase(claim) == "Pending",
    );
    let mut given = volume.spec.clone().unwrap_or_default();
    if let Some(size) = annotation(&volume.metadata, BEFORE_RESIZE) {
        let usable = Quantity(size.to_owned());
        given.capacity = Some(BTreeMap::from([("storage".to_owned(), usable)]));
    }
    let status = claim.status.get_or_insert_default();
    status.phase = Some("Bound".to_owned());
    status.access_modes = given.access_modes;
    if becomes {
        status.capacity = given.capacity;
    }
    if waited {
        status.current_volume_attributes_class_name = given.volume_attributes_class_name;
    }
}

/// Sets the phase of a claim that has no volume.
pub(crate) fn set_unbound(claim: &mut PersistentVolumeClaim, phase: &str) {
    let status = claim.status.get_or_insert_default();
    status.phase = Some(phase.to_owned());
    (status.access_modes, status.capacity) = (None, None);
    status.current_volume_attributes_class_name = None;
}

/// Takes a volume back from its claim: as it was before the controller chose it, or promised as the user had it.
pub(crate) fn unbind_volume(volume: &mut PersistentVolume) {
    let by_controller = has(&volume.metadata, BOUND_BY_CONTROLLER);
    let spec = volume.spec.get_or_insert_default();
    if by_controller {
        spec.claim_ref = None;
        if let Some(annotations) = &mut volume.metadata.annotations {
            annotations.remove(BOUND_BY_CONTROLLER);
        }
    } else if let Some(claim) = &mut spec.claim_ref {
        claim.uid = None;
    }
}

/// What a volume says of its claim.
pub(crate) fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        name: claim.metadata.name.clone(),
        namespace: claim.metadata.namespace.clone(),
        uid: claim.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}
