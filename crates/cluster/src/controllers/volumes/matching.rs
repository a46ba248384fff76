//! Which volume a claim gets. Pure; mirrors `component-helpers/storage/volume/pv_helpers.go: FindMatchingVolume` and
//! `persistentvolume/index.go: findByClaim`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kubewright_runtime::Selector;

use super::objects::{capacity, class_of, is_for, request, volume_class, volume_phase};

/// Who looks for a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seeker {
    /// The controller, for a claim that is bound at once.
    Controller,
    /// The controller, for a claim that waits for a pod: only a volume that is promised to it will do.
    ControllerOfWaiting,
    /// The scheduler, for a claim that waits for a pod.
    Scheduler,
}

/// The volumes that a claim can have, the best first: one that is promised to it, then the smallest. The controller looks
/// among those with the fewest access modes first, the scheduler does not.
pub(crate) fn candidates(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    seeker: Seeker,
) -> Vec<Arc<PersistentVolume>> {
    let Some(selector) = selector(claim) else {
        return Vec::new();
    };
    let mut by_modes: BTreeMap<(usize, Vec<&str>), Vec<&Arc<PersistentVolume>>> = BTreeMap::new();
    for volume in volumes.iter().filter(|volume| may_have(claim, volume)) {
        let promised = is_for(claim, volume);
        let free = || seeker != Seeker::ControllerOfWaiting && is_free(claim, volume, &selector);
        if promised || free() {
            let modes = match seeker {
                Seeker::Scheduler => Vec::new(),
                _ => modes(volume),
            };
            by_modes
                .entry((modes.len(), modes))
                .or_default()
                .push(volume);
        }
    }
    let mut found = Vec::new();
    for (_, mut group) in by_modes {
        group.sort_by_key(|volume| {
            (
                !is_for(claim, volume),
                capacity(volume),
                volume.metadata.name.clone(),
            )
        });
        // A volume that is promised to the claim rules out all others.
        let promised = group.first().is_some_and(|first| is_for(claim, first));
        let take = if promised { 1 } else { group.len() };
        found.extend(group.into_iter().take(take).cloned());
        if promised {
            break;
        }
    }
    found
}

/// Why a claim cannot have the volume that it names (`pv_controller.go: checkVolumeSatisfyClaim`).
pub(crate) fn mismatch(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<String> {
    if volume.metadata.deletion_timestamp.is_some() {
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        return Some(format!("the volume is marked for deletion {name:?}"));
    }
    differs(claim, volume).map(str::to_owned)
}

fn differs(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Option<&'static str> {
    if request(claim) > capacity(volume) {
        return Some("requested PV is too small");
    }
    if class_of(claim) != volume_class(volume) {
        return Some("storageClassName does not match");
    }
    if attributes_class(claim) != volume_attributes_class(volume) {
        return Some("volumeAttributesClassName does not match");
    }
    if !is_same_mode(claim, volume) {
        return Some("incompatible volumeMode");
    }
    (!has_modes(claim, volume)).then_some("incompatible accessMode")
}

/// Whether a volume is nobody else's, stays, and can hold what the claim asks for.
fn may_have(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let somebody_elses = super::objects::claim_ref(volume).is_some() && !is_for(claim, volume);
    !somebody_elses
        && request(claim) <= capacity(volume)
        && is_same_mode(claim, volume)
        && attributes_class(claim) == volume_attributes_class(volume)
        && volume.metadata.deletion_timestamp.is_none()
        && has_modes(claim, volume)
}

fn is_free(claim: &PersistentVolumeClaim, volume: &PersistentVolume, selector: &Selector) -> bool {
    let labels = volume.metadata.labels.clone().unwrap_or_default();
    volume_phase(volume) == "Available"
        && selector.matches(&labels)
        && class_of(claim) == volume_class(volume)
}

/// What a claim selects; nothing if that cannot be read, and so is nothing.
fn selector(claim: &PersistentVolumeClaim) -> Option<Selector> {
    let given = claim.spec.as_ref().and_then(|spec| spec.selector.clone());
    Selector::try_from(&given.unwrap_or_default()).ok()
}

fn modes(volume: &PersistentVolume) -> Vec<&str> {
    let modes = volume
        .spec
        .iter()
        .flat_map(|spec| spec.access_modes.iter().flatten());
    let mut modes: Vec<&str> = modes.map(String::as_str).collect();
    modes.sort_unstable();
    modes.dedup();
    modes
}

fn has_modes(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let given = modes(volume);
    let mut wanted = claim
        .spec
        .iter()
        .flat_map(|spec| spec.access_modes.iter().flatten());
    wanted.all(|mode| given.contains(&mode.as_str()))
}

/// Whether a claim and a volume are for files, or blocks, both.
pub(crate) fn is_same_mode(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    mode(claim) == volume_mode(volume)
}

fn mode(claim: &PersistentVolumeClaim) -> &str {
    let mode = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_mode.as_deref());
    mode.unwrap_or("Filesystem")
}

fn volume_mode(volume: &PersistentVolume) -> &str {
    let mode = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_mode.as_deref());
    mode.unwrap_or("Filesystem")
}

fn attributes_class(claim: &PersistentVolumeClaim) -> &str {
    let spec = claim.spec.as_ref();
    let class = spec.and_then(|spec| spec.volume_attributes_class_name.as_deref());
    class.unwrap_or_default()
}

fn volume_attributes_class(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    let class = spec.and_then(|spec| spec.volume_attributes_class_name.as_deref());
    class.unwrap_or_default()
}
