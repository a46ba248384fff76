//! What is to be done about a claim or a volume. Pure; mirrors `persistentvolume/pv_controller.go: syncUnboundClaim,
//! syncBoundClaim, syncVolume`.
//!
//! Claim and volume point to each other, and each pointer is a write of its own that may be the last before a crash. The
//! volume is written first: from then on nobody else takes it, and whoever looks at the claim next completes the rest.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;

use super::matching::{Seeker, candidates, is_same_mode, mismatch};
use super::objects::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, MIGRATED_TO, PROVISIONED_BY, SELECTED_NODE, annotation,
    claim_ref, claim_uid, has, is_for, volume_of, volume_phase, waits_for_consumer,
};
use super::provision::PROVISIONER;

/// What is known when a claim is looked at.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// The volume that the claim names, if it exists.
    pub(crate) named: Option<Arc<PersistentVolume>>,
    /// Free volumes of the claim's class, and those that are promised to it.
    pub(crate) volumes: Vec<Arc<PersistentVolume>>,
    pub(crate) class: Class,
}

/// The class of a claim.
#[derive(Debug, Default)]
pub(crate) enum Class {
    /// The claim says that it has none.
    #[default]
    None,
    /// The claim says nothing, and this is the class that it gets.
    Default(String),
    /// The claim names a class that does not exist.
    Missing(String),
    Found(Arc<StorageClass>),
}

/// What is to be done about a claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClaimStep {
    /// It is `Pending`, and perhaps there is something to say.
    Wait(Option<Note>),
    /// Claim and volume are bound to each other, in whatever part that is left to do.
    Bind(Arc<PersistentVolume>),
    /// It was bound, and is no more: `Lost`.
    Lose(Note),
    /// It gets the default class.
    SetClass(String),
    /// A volume has to be made.
    Provision(Arc<StorageClass>),
    /// Somebody has removed what says that it was bound; nothing is known to be right.
    Refuse(Note),
}

/// An event about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Note {
    fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        let (warning, message) = (false, message.into());
        Self {
            warning,
            reason,
            message,
        }
    }

    fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        let (warning, message) = (true, message.into());
        Self {
            warning,
            reason,
            message,
        }
    }
}

/// What is to be done about a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VolumeStep {
    /// Nothing: the claim is looked at instead.
    Leave,
    /// No claim has it: `Available`.
    MarkAvailable,
    MarkBound,
    /// Its claim is for files and it is for blocks, or the other way round: they are never bound.
    RefuseMode,
    /// Its claim is gone: `Released`, and then what its policy says.
    Release(Reclaim),
    /// Its claim has another volume: it is free again.
    Unbind,
}

/// What becomes of a volume whose claim is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reclaim {
    Retain,
    /// Whoever made it deletes it.
    DeleteByOthers,
    Delete,
    /// What it held is wiped, and it is free again.
    Recycle,
}

/// What is to be done about a claim.
pub(crate) fn claim_step(claim: &PersistentVolumeClaim, around: &Surroundings) -> ClaimStep {
    if has(&claim.metadata, BIND_COMPLETED) {
        return bound_claim(claim, around);
    }
    match volume_of(claim) {
        Some(name) => claim_of_named_volume(claim, name, around),
        None => unbound_claim(claim, around),
    }
}

fn bound_claim(claim: &PersistentVolumeClaim, around: &Surroundings) -> ClaimStep {
    if volume_of(claim).is_none() {
        let text =
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
        return ClaimStep::Lose(Note::warning("ClaimLost", text));
    }
    let Some(volume) = &around.named else {
        let text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
        return ClaimStep::Lose(Note::warning("ClaimLost", text));
    };
    if claim_ref(volume).is_none() || claim_uid(volume) == claim.metadata.uid.as_deref() {
        return ClaimStep::Bind(volume.clone());
    }
    let text = "Two claims are bound to the same volume, this one is bound incorrectly";
    ClaimStep::Lose(Note::warning("ClaimMisbound", text))
}

fn claim_of_named_volume(
    claim: &PersistentVolumeClaim,
    name: &str,
    around: &Surroundings,
) -> ClaimStep {
    let Some(volume) = &around.named else {
        return ClaimStep::Wait(None);
    };
    if claim_ref(volume).is_none() {
        return match mismatch(claim, volume) {
            None => ClaimStep::Bind(volume.clone()),
            Some(why) => {
                let text = format!("Cannot bind to requested volume {name:?}: {why}");
                ClaimStep::Wait(Some(Note::warning("VolumeMismatch", text)))
            }
        };
    }
    if is_for(claim, volume) {
        return ClaimStep::Bind(volume.clone());
    }
    let text = format!("volume {name:?} already bound to a different claim.");
    let note = Note::warning("FailedBinding", text);
    if has(&claim.metadata, BOUND_BY_CONTROLLER) {
        ClaimStep::Refuse(note)
    } else {
        ClaimStep::Wait(Some(note))
    }
}

fn unbound_claim(claim: &PersistentVolumeClaim, around: &Surroundings) -> ClaimStep {
    let waits = matches!(&around.class, Class::Found(class) if waits_for_consumer(class));
    let seeker = if waits {
        Seeker::ControllerOfWaiting
    } else {
        Seeker::Controller
    };
    if let Some(volume) = candidates(claim, &around.volumes, seeker)
        .into_iter()
        .next()
    {
        return ClaimStep::Bind(volume);
    }
    match &around.class {
        Class::Default(name) => ClaimStep::SetClass(name.clone()),
        Class::Found(_) if waits && !has(&claim.metadata, SELECTED_NODE) => {
            let text = "waiting for first consumer to be created before binding";
            ClaimStep::Wait(Some(Note::normal("WaitForFirstConsumer", text)))
        }
        Class::Found(class) => ClaimStep::Provision(class.clone()),
        Class::Missing(name) => {
            let text = format!("storageclass.storage.k8s.io {name:?} not found");
            ClaimStep::Wait(Some(Note::warning("ProvisioningFailed", text)))
        }
        Class::None => {
            let text = "no persistent volumes available for this claim and no storage class is set";
            ClaimStep::Wait(Some(Note::normal("FailedBinding", text)))
        }
    }
}

/// What is to be done about a volume. `claim` is the claim of the name that the volume says, whatever its uid.
pub(crate) fn volume_step(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
) -> VolumeStep {
    let Some(uid) = claim_uid(volume) else {
        return VolumeStep::MarkAvailable;
    };
    // One of the same name that was made after the volume's own is somebody else.
    let claim = claim.filter(|claim| claim.metadata.uid.as_deref() == Some(uid));
    let Some(claim) = claim else {
        return VolumeStep::Release(reclaim(volume));
    };
    match volume_of(claim) {
        None if !is_same_mode(claim, volume) => VolumeStep::RefuseMode,
        None => VolumeStep::Leave,
        Some(name) if Some(name) == volume.metadata.name.as_deref() => VolumeStep::MarkBound,
        Some(_) => match reclaim(volume) {
            how @ (Reclaim::Delete | Reclaim::DeleteByOthers)
                if has(&volume.metadata, PROVISIONED_BY) =>
            {
                VolumeStep::Release(how)
            }
            _ => VolumeStep::Unbind,
        },
    }
}

fn reclaim(volume: &PersistentVolume) -> Reclaim {
    let spec = volume.spec.as_ref();
    match spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()) {
        Some("Delete") if is_others(volume) => Reclaim::DeleteByOthers,
        Some("Delete") => Reclaim::Delete,
        Some("Recycle") => Reclaim::Recycle,
        _ => Reclaim::Retain,
    }
}

/// Whether a volume is deleted by others: by its provisioner, or its CSI driver (`pv_controller.go: findDeletablePlugin`).
fn is_others(volume: &PersistentVolume) -> bool {
    let by = annotation(&volume.metadata, PROVISIONED_BY);
    let driver = volume.spec.as_ref().is_some_and(|spec| spec.csi.is_some());
    let migrated = has(&volume.metadata, MIGRATED_TO);
    by.map_or(driver || migrated, |by| by != PROVISIONER)
}

/// Whether a volume has yet to be called released. A failure stays visible.
pub(crate) fn is_news_of_release(volume: &PersistentVolume) -> bool {
    !matches!(volume_phase(volume), "Released" | "Failed")
}
