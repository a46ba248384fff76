//! What the claims of a pod mean for its node. Pure; mirrors `volumebinding/binder.go: FindPodVolumes` and
//! `volumerestrictions/volume_restrictions.go`.
//!
//! A claim that waits for its first pod is bound where the pod goes: to a volume that can be used there, or to one that
//! is made there. The scheduler chooses, and says so on the volume or on the claim; the binder does the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_cache::Key;

use super::board::Place;
use super::demand::{Claim, Origin};
use super::selector::term_matches;
use crate::controllers::volumes::matching::{Seeker, candidates};
use crate::controllers::volumes::objects::{
    BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE, allowed_nodes, annotation, claim_phase,
    class_of, has, request, usable_on, volume_of, waits_for_consumer,
};

/// Where claims, volumes and classes are looked up.
pub(crate) trait Storage {
    /// A claim.
    fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>>;
    /// A volume.
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    /// A class.
    fn class(&self, name: &str) -> Option<Arc<StorageClass>>;
    /// The free volumes of a class, and those that are promised to a claim.
    fn volumes_for(&self, class: &str, claim: &Key) -> Vec<Arc<PersistentVolume>>;
}

/// The claims of a pod, looked at together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Volumes {
    /// The node affinities of volumes that are bound: each must hold.
    pub(crate) affinities: Vec<Vec<NodeSelectorTerm>>,
    /// Claims that are bound once a node is chosen, the smallest first.
    pub(crate) waiting: Vec<Waiting>,
    /// Claims that only one pod of the cluster may use.
    pub(crate) exclusive: Vec<Key>,
}

/// A claim that is bound once a node is chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) claim: Key,
    /// The node that a volume is being made for already.
    selected: Option<String>,
    /// The volumes that it can have, the best first.
    volumes: Vec<Arc<PersistentVolume>>,
    provisioning: Provisioning,
}

/// Where a volume can be made for a claim.
#[derive(Debug, Clone, PartialEq)]
enum Provisioning {
    Nowhere,
    Anywhere,
    /// On nodes that one of these terms selects.
    On(Vec<NodeSelectorTerm>),
}

/// What a claim gets on the node that was chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) claim: Key,
    /// The volume that it gets; nothing if one is made.
    pub(crate) volume: Option<Arc<PersistentVolume>>,
}

/// Why a pod cannot run anywhere yet, in the words of the real scheduler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("persistentvolumeclaim {0:?} not found")]
    NotFound(String),
    #[error("waiting for ephemeral volume controller to create the persistentvolumeclaim {0:?}")]
    NotMade(String),
    #[error("PVC {0} was not created for pod (pod is not owner)")]
    SomebodyElses(Key),
    #[error("persistentvolumeclaim {0:?} bound to non-existent persistentvolume {1:?}")]
    Lost(String, String),
    #[error("persistentvolumeclaim {0:?} is being deleted")]
    Deleted(String),
    #[error("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")]
    NoVolume,
    #[error("pod has unbound immediate PersistentVolumeClaims")]
    Unbound,
}

/// Looks at the claims of a pod.
///
/// # Errors
/// Why the pod cannot run anywhere yet.
pub(crate) fn assess(claims: &[Claim], storage: &impl Storage) -> Result<Volumes, Unusable> {
    let mut volumes = Volumes::default();
    let mut waiting = Vec::new();
    for claim in claims {
        let found = usable(claim, storage)?;
        if is_exclusive(&found) {
            volumes.exclusive.push(claim.key.clone());
        }
        let named = volume_of(&found);
        if let Some(name) = named.filter(|_| has(&found.metadata, BIND_COMPLETED)) {
            let volume = storage.volume(name).ok_or(Unusable::NoVolume)?;
            volumes
                .affinities
                .extend(usable_on(&volume).map(<[_]>::to_vec));
            continue;
        }
        let class = storage.class(class_of(&found));
        let class = class.filter(|class| named.is_none() && waits_for_consumer(class));
        let class = class.ok_or(Unusable::Unbound)?;
        let size = request(&found);
        waiting.push((size, Waiting::new(&claim.key, &found, &class, storage)));
    }
    // The smallest claims choose first, so that the small volumes are left to them.
    waiting.sort_by(|(one, _), (other, _)| one.cmp(other));
    volumes.waiting = waiting.into_iter().map(|(_, waiting)| waiting).collect();
    Ok(volumes)
}

/// A claim that a pod may use, bound or not.
fn usable(claim: &Claim, storage: &impl Storage) -> Result<Arc<PersistentVolumeClaim>, Unusable> {
    let name = || claim.key.name().to_owned();
    let Some(found) = storage.claim(&claim.key) else {
        return Err(match &claim.origin {
            Origin::Named => Unusable::NotFound(name()),
            Origin::Ephemeral { .. } => Unusable::NotMade(name()),
        });
    };
    if let Origin::Ephemeral { pod } = &claim.origin
        && !is_made_for(&found, pod.as_deref())
    {
        return Err(Unusable::SomebodyElses(claim.key.clone()));
    }
    if claim_phase(&found) == "Lost" {
        let volume = volume_of(&found).unwrap_or_default().to_owned();
        return Err(Unusable::Lost(name(), volume));
    }
    if found.metadata.deletion_timestamp.is_some() {
        return Err(Unusable::Deleted(name()));
    }
    Ok(found)
}

/// Whether a claim was made for the pod of this uid (`component-helpers/storage/ephemeral: VolumeIsForPod`).
fn is_made_for(claim: &PersistentVolumeClaim, pod: Option<&str>) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == pod)
}

fn is_exclusive(claim: &PersistentVolumeClaim) -> bool {
    let modes = claim
        .spec
        .iter()
        .flat_map(|spec| spec.access_modes.iter().flatten());
    modes.into_iter().any(|mode| mode == "ReadWriteOncePod")
}

impl Waiting {
    fn new(
        key: &Key,
        claim: &PersistentVolumeClaim,
        class: &StorageClass,
        storage: &impl Storage,
    ) -> Self {
        let there = storage.volumes_for(class_of(claim), key);
        let provisioning = match allowed_nodes(class) {
            _ if class.provisioner == NO_PROVISIONER => Provisioning::Nowhere,
            None => Provisioning::Anywhere,
            Some(terms) => Provisioning::On(terms),
        };
        Self {
            claim: key.clone(),
            selected: annotation(&claim.metadata, SELECTED_NODE).map(str::to_owned),
            volumes: candidates(claim, &there, Seeker::Scheduler),
            provisioning,
        }
    }

    fn can_be_made_on(&self, place: &Place) -> bool {
        match &self.provisioning {
            Provisioning::Nowhere => false,
            Provisioning::Anywhere => true,
            Provisioning::On(terms) => is_on(terms, place),
        }
    }
}

impl Volumes {
    /// Whether all volumes that are bound can be used on a node.
    pub(crate) fn are_usable_on(&self, place: &Place) -> bool {
        self.affinities.iter().all(|terms| is_on(terms, place))
    }

    /// What the waiting claims get on a node; nothing if one of them gets none. No volume is chosen twice.
    pub(crate) fn choose(&self, place: &Place) -> Option<Vec<Choice>> {
        let mut taken = BTreeSet::new();
        let mut choices = Vec::with_capacity(self.waiting.len());
        for waiting in &self.waiting {
            let selected = waiting.selected.as_deref();
            if selected.is_some_and(|node| node != place.name) {
                return None;
            }
            let free = |volume: &&Arc<PersistentVolume>| {
                !taken.contains(&volume.metadata.name)
                    && usable_on(volume).is_none_or(|terms| is_on(terms, place))
            };
            // For a claim with a node a volume is being made: it takes no other.
            let mut volumes = waiting.volumes.iter().filter(|_| selected.is_none());
            let volume = volumes.find(free).cloned();
            match &volume {
                Some(volume) => drop(taken.insert(volume.metadata.name.clone())),
                None if waiting.can_be_made_on(place) => {}
                None => return None,
            }
            let claim = waiting.claim.clone();
            choices.push(Choice { claim, volume });
        }
        Some(choices)
    }
}

fn is_on(terms: &[NodeSelectorTerm], place: &Place) -> bool {
    let mut terms = terms.iter();
    terms.any(|term| term_matches(term, &place.name, &place.labels))
}

#[cfg(test)]
mod tests;
