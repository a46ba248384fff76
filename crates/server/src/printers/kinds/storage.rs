//! Volumes, claims, classes and drivers.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{
    AGE, Column, NAME, boolean, column as any, integer, text as column, wide,
};
use crate::printers::view::{View, at, flag, join, or, quantity};

const GROUP: &str = "storage.k8s.io";
const OLD_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const DEFAULT_ANNOTATIONS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

const VOLUME: &[Column] = &[
    NAME,
    column("Capacity"),
    column("Access Modes"),
    column("Reclaim Policy"),
    column("Status"),
    column("Claim"),
    column("StorageClass"),
    column("VolumeAttributesClass"),
    column("Reason"),
    AGE,
    wide("VolumeMode"),
];

const CLAIM: &[Column] = &[
    NAME,
    column("Status"),
    column("Volume"),
    column("Capacity"),
    column("Access Modes"),
    column("StorageClass"),
    column("VolumeAttributesClass"),
    AGE,
    wide("VolumeMode"),
];

const CLASS: &[Column] = &[
    NAME,
    column("Provisioner"),
    column("ReclaimPolicy"),
    column("VolumeBindingMode"),
    column("AllowVolumeExpansion"),
    AGE,
];

const ATTRIBUTES_CLASS: &[Column] = &[NAME, column("DriverName"), AGE];

const ATTACHMENT: &[Column] = &[
    NAME,
    any("Attacher", "string", "name", 0),
    column("PV"),
    column("Node"),
    boolean("Attached"),
    AGE,
];

const CSI_NODE: &[Column] = &[NAME, integer("Drivers"), AGE];

const CSI_DRIVER: &[Column] = &[
    NAME,
    boolean("AttachRequired"),
    boolean("PodInfoOnMount"),
    boolean("StorageCapacity"),
    column("TokenRequests"),
    boolean("RequiresRepublish"),
    column("Modes"),
    AGE,
];

pub(super) const KINDS: &[Entry] = &[
    entry("", "PersistentVolume", VOLUME, volume),
    entry("", "PersistentVolumeClaim", CLAIM, claim),
    entry(GROUP, "StorageClass", CLASS, class),
    entry(
        GROUP,
        "VolumeAttributesClass",
        ATTRIBUTES_CLASS,
        attributes_class,
    ),
    entry(GROUP, "VolumeAttachment", ATTACHMENT, attachment),
    entry(GROUP, "CSINode", CSI_NODE, csi_node),
    entry(GROUP, "CSIDriver", CSI_DRIVER, csi_driver),
];

fn volume(view: &View<'_>) -> Vec<Value> {
    let claim = match view.at("spec.claimRef") {
        Some(_) => format!(
            "{}/{}",
            view.text("spec.claimRef.namespace"),
            view.text("spec.claimRef.name")
        ),
        None => String::new(),
    };
    cells![
        view.name(),
        quantity(view.object, "spec.capacity.storage"),
        access_modes(view.list("spec.accessModes")),
        view.text("spec.persistentVolumeReclaimPolicy"),
        phase(view),
        claim,
        class_of(view),
        set_or_unset(view, "spec.volumeAttributesClassName"),
        view.text("status.reason"),
        view.age(),
        set_or_unset(view, "spec.volumeMode"),
    ]
}

fn claim(view: &View<'_>) -> Vec<Value> {
    let volume = view.text("spec.volumeName");
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (
            quantity(view.object, "status.capacity.storage"),
            access_modes(view.list("status.accessModes")),
        ),
    };
    cells![
        view.name(),
        phase(view),
        volume,
        capacity,
        modes,
        class_of(view),
        set_or_unset(view, "spec.volumeAttributesClassName"),
        view.age(),
        set_or_unset(view, "spec.volumeMode"),
    ]
}

fn phase<'a>(view: &View<'a>) -> &'a str {
    if view.is_being_deleted() {
        "Terminating"
    } else {
        view.text("status.phase")
    }
}

/// The annotation came first and still wins.
fn class_of<'a>(view: &View<'a>) -> &'a str {
    view.annotation(OLD_CLASS_ANNOTATION)
        .unwrap_or_else(|| view.text("spec.storageClassName"))
}

fn set_or_unset<'a>(view: &View<'a>, path: &str) -> &'a str {
    view.at(path).and_then(Value::as_str).unwrap_or("<unset>")
}

/// `RWO,ROX`: each mode once, in a fixed order.
fn access_modes(modes: &[Value]) -> String {
    let known = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<&str> = known
        .iter()
        .filter(|(long, _)| modes.iter().any(|mode| mode.as_str() == Some(long)))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

fn class(view: &View<'_>) -> Vec<Value> {
    let is_default = DEFAULT_ANNOTATIONS
        .iter()
        .any(|key| view.annotation(key) == Some("true"));
    let name = if is_default {
        format!("{} (default)", view.name())
    } else {
        view.name().to_owned()
    };
    cells![
        name,
        view.text("provisioner"),
        or(view.text("reclaimPolicy"), "Delete"),
        or(view.text("volumeBindingMode"), "Immediate"),
        flag(view.object, "allowVolumeExpansion"),
        view.age(),
    ]
}

fn attributes_class(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.text("driverName"), view.age()]
}

fn attachment(view: &View<'_>) -> Vec<Value> {
    cells![
        view.name(),
        view.text("spec.attacher"),
        view.text("spec.source.persistentVolumeName"),
        view.text("spec.nodeName"),
        flag(view.object, "status.attached"),
        view.age(),
    ]
}

fn csi_node(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.list("spec.drivers").len(), view.age()]
}

fn csi_driver(view: &View<'_>) -> Vec<Value> {
    let attach = view.at("spec.attachRequired").and_then(Value::as_bool);
    let tokens = match at(view.object, "spec.tokenRequests") {
        Some(_) => join(view.list("spec.tokenRequests"), Some("audience"), ","),
        None => "<unset>".to_owned(),
    };
    let modes = join(view.list("spec.volumeLifecycleModes"), None, ",");
    cells![
        view.name(),
        attach.unwrap_or(true),
        flag(view.object, "spec.podInfoOnMount"),
        flag(view.object, "spec.storageCapacity"),
        tokens,
        flag(view.object, "spec.requiresRepublish"),
        or(&modes, "<none>"),
        view.age(),
    ]
}
