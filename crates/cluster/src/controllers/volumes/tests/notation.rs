//! Claims, volumes and classes as short texts, so that a case is a line.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::{Value, json};

use super::super::objects::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONED_BY, SELECTED_NODE, STORAGE_PROVISIONER,
    claim_of, claim_phase, claim_uid, volume_of, volume_phase,
};
use super::super::provision::{DEFAULT_CLASS, PROVISIONER};

/// Words that stand for annotations, and what these say unless the word is `WORD=VALUE`.
const WORDS: [(&str, &str, &str); 8] = [
    ("by-controller", BOUND_BY_CONTROLLER, "yes"),
    ("completed", BIND_COMPLETED, "yes"),
    ("provisioned", PROVISIONED_BY, PROVISIONER),
    ("selected", SELECTED_NODE, "node1"),
    ("asked", STORAGE_PROVISIONER[0], PROVISIONER),
    (
        "migrated",
        "pv.kubernetes.io/migrated-to",
        "csi.example.com",
    ),
    (
        "beta-class",
        "volume.beta.kubernetes.io/storage-class",
        "yes",
    ),
    (
        "before-resize",
        "volume.alpha.kubernetes.io/pre-resize-capacity",
        "1Gi",
    ),
];

/// Reads `NAME SIZE [CLAIM[:UID]] PHASE WORDS..` as a volume; `-` stands for no claim or no phase.
pub(super) fn volume(text: &str) -> PersistentVolume {
    let mut words = text.split_whitespace();
    let mut next = || words.next().expect("a word");
    let (name, size, claim, phase) = (next(), next(), next(), next());
    let (claim, uid) = claim.split_once(':').unwrap_or((claim, ""));
    let claim = match claim {
        "-" => Value::Null,
        name => {
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "d", "name": name,
            "uid": Some(uid).filter(|uid| !uid.is_empty())})
        }
    };
    let mut volume = json!({"metadata": {"name": name}, "status": {"phase": Some(phase).filter(|phase| *phase != "-")},
        "spec": {"capacity": {"storage": size}, "claimRef": claim, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain"}});
    for word in words {
        apply(&mut volume, word);
    }
    serde_json::from_value(volume).expect("a volume")
}

/// Reads `NAME SIZE VOLUME PHASE WORDS..` as a claim with the uid `u-NAME`; `-` stands for no volume. One that is `Bound` or
/// `Lost` has what it asks for, unless it says otherwise.
pub(super) fn claim(text: &str) -> PersistentVolumeClaim {
    let mut words = text.split_whitespace();
    let mut next = || words.next().expect("a word");
    let (name, size, volume, phase) = (next(), next(), next(), next());
    let mut claim = json!({"metadata": {"namespace": "d", "name": name, "uid": format!("u-{name}")},
        "spec": {"volumeName": Some(volume).filter(|volume| *volume != "-"), "accessModes": ["ReadWriteOnce"],
            "storageClassName": "", "resources": {"requests": {"storage": size}}},
        "status": {"phase": phase}});
    if phase == "Bound" {
        claim["status"]["capacity"] = json!({"storage": size});
    }
    for word in words {
        apply(&mut claim, word);
    }
    serde_json::from_value(claim).expect("a claim")
}

fn apply(object: &mut Value, word: &str) {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    if let Some((_, annotation, usual)) = WORDS.iter().find(|(name, ..)| *name == key) {
        let value = if value.is_empty() { usual } else { value };
        object["metadata"]["annotations"][*annotation] = json!(value);
        return;
    }
    let spec = &mut object["spec"];
    match key {
        "class" => spec["storageClassName"] = json!(Some(value).filter(|name| *name != "nil")),
        "attributes" => spec["volumeAttributesClassName"] = json!(value),
        "mode" => spec["volumeMode"] = json!(value),
        "policy" => spec["persistentVolumeReclaimPolicy"] = json!(value),
        "source" => {
            spec["dataSource"] = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": value});
        }
        "driver" => spec["csi"] = json!({"driver": value, "volumeHandle": "h"}),
        "modes" => spec["accessModes"] = json!(value.split('+').collect::<Vec<_>>()),
        "selector" => spec["selector"] = json!({"matchLabels": {value: "true"}}),
        "label" => object["metadata"]["labels"] = json!({value: "true"}),
        "uid" => object["metadata"]["uid"] = json!(value),
        "deleted" => object["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z"),
        "has" => object["status"]["capacity"] = json!({"storage": value}),
        "current" => object["status"]["currentVolumeAttributesClassName"] = json!(value),
        _ => panic!("{word} means nothing"),
    }
}

/// What is compared: names, pointers, phases and who chose.
pub(super) fn shown_volume(volume: &PersistentVolume) -> String {
    let claim = claim_of(volume).map_or("-".to_owned(), |key| key.name().to_owned());
    let uid = claim_uid(volume).map_or(String::new(), |uid| format!(":{uid}"));
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    let annotations = shown_annotations(volume.metadata.annotations.as_ref());
    format!("{name} {claim}{uid} {}{annotations}", volume_phase(volume))
}

/// The same of a claim, with its class and what its status says that it has.
pub(super) fn shown_claim(claim: &PersistentVolumeClaim) -> String {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    let annotations = shown_annotations(claim.metadata.annotations.as_ref());
    let (volume, phase) = (volume_of(claim).unwrap_or("-"), claim_phase(claim));
    let spec = claim.spec.as_ref();
    let class = spec.and_then(|spec| spec.storage_class_name.as_deref());
    let status = claim.status.clone().unwrap_or_default();
    let has = status.capacity.unwrap_or_default();
    let current = status.current_volume_attributes_class_name;
    format!("{name} {volume} {phase} {class:?} {has:?} {current:?}{annotations}")
}

fn shown_annotations(annotations: Option<&BTreeMap<String, String>>) -> String {
    let value = |key: &str| annotations.and_then(|all| all.get(key));
    // Provisioners of before read the older word.
    let (now, before) = (value(STORAGE_PROVISIONER[0]), value(STORAGE_PROVISIONER[1]));
    assert!(
        before.is_none() || before == now,
        "{before:?} is not {now:?}"
    );
    let words = WORDS
        .iter()
        .filter_map(|(word, annotation, _)| Some((word, value(annotation)?)));
    words
        .map(|(word, value)| format!(" {word}={value}"))
        .collect()
}

/// A class with a provisioner and a binding mode.
pub(super) fn class(name: &str, provisioner: &str, mode: &str) -> StorageClass {
    let class = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode,
        "reclaimPolicy": "Delete"});
    serde_json::from_value(class).expect("a class")
}

/// The same class, for claims that name none.
pub(super) fn by_default(mut class: StorageClass) -> StorageClass {
    let annotations = class.metadata.annotations.get_or_insert_default();
    annotations.insert(DEFAULT_CLASS.to_owned(), "true".to_owned());
    class
}

/// The claim's uid, to make a volume that is promised to it.
pub(super) fn uid(claim: &str) -> String {
    format!("u-{claim}")
}
