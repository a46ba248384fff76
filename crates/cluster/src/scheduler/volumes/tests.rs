//! The claims of a pod: what its volumes mean for a node.

mod cases;

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
