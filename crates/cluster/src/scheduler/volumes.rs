//! What the claims of a pod mean for its node.

use k8s_openapi::api::core::v1::{NodeSelectorTerm, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kubewright_cache::Key;
use std::sync::Arc;

use super::demand::{Claim, Origin};

/// Tells the provisioner which node the first pod of a claim runs on.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Where claims, volumes and classes are looked up.
pub(crate) trait Storage {
    /// A claim.
    fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>>;
    /// A volume.
    fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>>;
    /// A class.
    fn class(&self, name: &str) -> Option<Arc<StorageClass>>;
}

/// The claims of a pod, looked at together.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Volumes {
    /// The node affinities of volumes that are bound: each must hold.
    pub(crate) affinities: Vec<Vec<NodeSelectorTerm>>,
    /// Claims that are bound once a node is chosen.
    pub(crate) waiting: Vec<Key>,
}

/// Looks at the claims of a pod.
///
/// # Errors
/// Why the pod cannot run anywhere yet.
pub(crate) fn assess(claims: &[Claim], storage: &impl Storage) -> Result<Volumes, String> {
    let mut volumes = Volumes::default();
    for claim in claims {
        let name = claim.key.name();
        let Some(found) = storage.claim(&claim.key) else {
            return Err(match &claim.origin {
                Origin::Named => format!("persistentvolumeclaim {name:?} not found"),
                Origin::Ephemeral { .. } => format!(
                    "waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}"
                ),
            });
        };
        if let Origin::Ephemeral { pod } = &claim.origin
            && !is_made_for(&found, pod.as_deref())
        {
            return Err(format!(
                "PVC {} was not created for pod (pod is not owner)",
                claim.key
            ));
        }
        if found.metadata.deletion_timestamp.is_some() {
            return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
        }
        match volume_of(&found) {
            Some(volume) => {
                let volume = storage.volume(volume);
                volumes
                    .affinities
                    .extend(volume.as_deref().and_then(node_terms));
            }
            None if waits(&found, storage) => volumes.waiting.push(claim.key.clone()),
            None => {
                return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
            }
        }
    }
    Ok(volumes)
}

/// Whether a claim was made for the pod of this uid (`component-helpers/storage/ephemeral: VolumeIsForPod`).
fn is_made_for(claim: &PersistentVolumeClaim, pod: Option<&str>) -> bool {
    let mut owners = claim.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == pod)
}

/// The volume that a claim is bound to.
pub(crate) fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// The claim that a volume is promised to.
pub(crate) fn claim_of(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    let (namespace, name) = (claim.namespace.as_deref()?, claim.name.as_deref()?);
    Some(Key::new(namespace, name))
}

/// Whether a claim is bound through and through, so that a pod can use it.
pub(crate) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    volume_of(claim).is_some() && phase == Some("Bound")
}

fn node_terms(volume: &PersistentVolume) -> Option<Vec<NodeSelectorTerm>> {
    let affinity = volume.spec.as_ref()?.node_affinity.as_ref()?;
    Some(affinity.required.as_ref()?.node_selector_terms.clone())
}

/// Whether the class of a claim waits for the first pod that uses it.
fn waits(claim: &PersistentVolumeClaim, storage: &impl Storage) -> bool {
    let spec = claim.spec.as_ref();
    let class = spec.and_then(|s| s.storage_class_name.as_deref());
    let class = class.and_then(|name| storage.class(name));
    let mode = class
        .as_ref()
        .and_then(|c| c.volume_binding_mode.as_deref());
    mode == Some("WaitForFirstConsumer")
}
