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
    BIND_COMPLETED, NO_PROVISIONER, allowed_nodes, claim_phase, class_of, has, usable_on,
    volume_of, waits_for_consumer,
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
    /// Claims that are bound once a node is chosen.
    pub(crate) waiting: Vec<Waiting>,
    /// Claims that only one pod of the cluster may use.
    pub(crate) exclusive: Vec<Key>,
}

/// A claim that is bound once a node is chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) claim: Key,
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
        volumes
            .waiting
            .push(Waiting::new(&claim.key, &found, &class, storage));
    }
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
            let free = |volume: &&Arc<PersistentVolume>| {
                !taken.contains(&volume.metadata.name)
                    && usable_on(volume).is_none_or(|terms| is_on(terms, place))
            };
            let volume = waiting.volumes.iter().find(free).cloned();
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
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;
    use crate::scheduler::board::Board;

    #[derive(Default)]
    struct Shelf {
        claims: BTreeMap<Key, Arc<PersistentVolumeClaim>>,
        volumes: BTreeMap<String, Arc<PersistentVolume>>,
        classes: BTreeMap<String, Arc<StorageClass>>,
    }

    impl Storage for Shelf {
        fn claim(&self, key: &Key) -> Option<Arc<PersistentVolumeClaim>> {
            self.claims.get(key).cloned()
        }

        fn volume(&self, name: &str) -> Option<Arc<PersistentVolume>> {
            self.volumes.get(name).cloned()
        }

        fn class(&self, name: &str) -> Option<Arc<StorageClass>> {
            self.classes.get(name).cloned()
        }

        fn volumes_for(&self, _: &str, _: &Key) -> Vec<Arc<PersistentVolume>> {
            self.volumes.values().cloned().collect()
        }
    }

    impl Shelf {
        fn put_claim(&mut self, name: &str, metadata: Value, spec: Value, phase: &str) {
            let mut claim = json!({"metadata": metadata, "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": phase}});
            claim["metadata"]["namespace"] = json!("d");
            claim["metadata"]["name"] = json!(name);
            for (key, value) in spec.as_object().into_iter().flatten() {
                claim["spec"][key] = value.clone();
            }
            let claim = serde_json::from_value(claim).expect("a claim");
            self.claims.insert(Key::new("d", name), Arc::new(claim));
        }

        /// A volume that can be used on one node.
        fn put_volume(&mut self, name: &str, size: &str, node: &str) {
            let terms = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]);
            let volume = json!({"metadata": {"name": name}, "status": {"phase": "Available"}, "spec": {
                "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
            let volume = serde_json::from_value(volume).expect("a volume");
            self.volumes.insert(name.to_owned(), Arc::new(volume));
        }

        fn put_class(&mut self, provisioner: &str, topologies: Value) {
            let class = json!({"metadata": {"name": "local"}, "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies});
            let class = serde_json::from_value(class).expect("a class");
            self.classes.insert("local".to_owned(), Arc::new(class));
        }

        fn assess(&self, names: &[&str]) -> Result<Volumes, Unusable> {
            let claim = |name: &&str| Claim {
                key: Key::new("d", name),
                origin: Origin::Named,
            };
            assess(&names.iter().map(claim).collect::<Vec<_>>(), self)
        }
    }

    /// The names of the volumes that claims get on a node; `new` for one that is made.
    fn chosen(volumes: &Volumes, node: &str) -> Option<Vec<String>> {
        let mut board = Board::default();
        board.put_node(&crate::scheduler::tests::node(node, json!({})));
        let choices = volumes.choose(board.node(node)?)?;
        let name = |choice: &Choice| {
            let volume = choice.volume.as_ref();
            volume.map_or("new".to_owned(), |v| {
                v.metadata.name.clone().unwrap_or_default()
            })
        };
        Some(choices.iter().map(name).collect())
    }

    /// `volumebinding/binder.go: findMatchingVolumes, checkVolumeProvisions`.
    #[test]
    fn claims_that_wait_get_volumes_that_can_be_used_on_the_node() {
        let mut shelf = Shelf::default();
        shelf.put_class("kubernetes.io/no-provisioner", Value::Null);
        shelf.put_volume("small", "1Gi", "a1");
        shelf.put_volume("large", "5Gi", "a1");
        shelf.put_volume("other", "1Gi", "b1");
        shelf.put_claim("one", json!({}), json!({}), "Pending");
        shelf.put_claim("two", json!({}), json!({}), "Pending");
        let both = shelf.assess(&["one", "two"]).expect("they wait");
        assert_eq!(
            chosen(&both, "a1"),
            Some(vec!["small".to_owned(), "large".to_owned()])
        );
        assert_eq!(chosen(&both, "b1"), None, "one volume for two claims");
        assert_eq!(chosen(&both, "c1"), None, "nobody makes any");
        shelf.put_class("csi.example.com", Value::Null);
        let both = shelf.assess(&["one", "two"]).expect("they wait");
        assert_eq!(
            chosen(&both, "b1"),
            Some(vec!["other".to_owned(), "new".to_owned()])
        );
        let zone = json!([{"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["c"]}]}]);
        shelf.put_class("csi.example.com", zone);
        let both = shelf.assess(&["one", "two"]).expect("they wait");
        assert_eq!(chosen(&both, "b1"), None, "made in another zone only");
        assert_eq!(
            chosen(&both, "c1"),
            Some(vec!["new".to_owned(), "new".to_owned()])
        );
    }

    /// `volumebinding/volume_binding.go: PreFilter` and `binder.go: GetPodVolumeClaims`.
    #[test]
    fn claims_that_cannot_be_used_are_named() {
        let mut shelf = Shelf::default();
        shelf.put_claim("lost", json!({}), json!({"volumeName": "gone"}), "Lost");
        shelf.put_claim(
            "named",
            json!({}),
            json!({"volumeName": "taken"}),
            "Pending",
        );
        let completed = json!({"annotations": {BIND_COMPLETED: "yes"}});
        shelf.put_claim(
            "dangling",
            completed,
            json!({"volumeName": "gone"}),
            "Bound",
        );
        for (name, expected) in [
            ("none", "persistentvolumeclaim \"none\" not found"),
            (
                "lost",
                "persistentvolumeclaim \"lost\" bound to non-existent persistentvolume \"gone\"",
            ),
            ("named", "pod has unbound immediate PersistentVolumeClaims"),
            (
                "dangling",
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ),
        ] {
            let why = shelf.assess(&[name]).expect_err("it cannot be used");
            assert_eq!(why.to_string(), expected);
        }
    }
}
