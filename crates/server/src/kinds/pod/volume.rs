//! Volumes of pods: defaults and sources.

use std::collections::BTreeMap;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use kubewright_schema::quantity::Quantity;
use serde_json::{Value, json};

use crate::kinds::checks::{Errors, invalid_each, one_of};
use crate::kinds::path::Path;
use crate::kinds::value::{
    entries, is_empty, items, items_mut, set_default, set_default_text, text,
};

const FILE_MODE_TEXT: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Volumes of a pod that are in order, by name; mounts must name one of them.
pub(super) type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

/// Defaults of one volume.
pub(super) fn default(volume: &mut Value) {
    if entries(volume).all(|(field, _)| field == "name") {
        set_default(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            set_default(source, "defaultMode", 0o644);
        }
    }
    if let Some(host_path) = volume.get_mut("hostPath") {
        set_default(host_path, "type", "");
    }
    if let Some(image) = volume.get_mut("image") {
        let policy = super::defaults::pull_policy(text(&image["reference"]));
        set_default_text(image, "pullPolicy", policy);
    }
    if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate/spec") {
        set_default(claim, "volumeMode", "Filesystem");
    }
    downward_items(volume.get_mut("downwardAPI"));
    let sources = volume
        .get_mut("projected")
        .and_then(|p| p.get_mut("sources"));
    for source in items_mut(sources) {
        downward_items(source.get_mut("downwardAPI"));
        if let Some(token) = source.get_mut("serviceAccountToken") {
            set_default(token, "expirationSeconds", 3600);
        }
    }
    network_disk(volume);
}

fn downward_items(source: Option<&mut Value>) {
    for item in items_mut(source.and_then(|s| s.get_mut("items"))) {
        if let Some(field) = item.get_mut("fieldRef") {
            set_default_text(field, "apiVersion", "v1");
        }
    }
}

/// Defaults of sources that pods and persistent volumes share.
pub(crate) fn network_disk(volume: &mut Value) {
    let texts: [(&str, &[(&str, &str)]); 4] = [
        ("iscsi", &[("iscsiInterface", "default")]),
        (
            "rbd",
            &[
                ("pool", "rbd"),
                ("user", "admin"),
                ("keyring", "/etc/ceph/keyring"),
            ],
        ),
        (
            "azureDisk",
            &[
                ("cachingMode", "ReadWrite"),
                ("kind", "Shared"),
                ("fsType", "ext4"),
            ],
        ),
        (
            "scaleIO",
            &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")],
        ),
    ];
    for (source, defaults) in texts {
        let Some(source) = volume.get_mut(source) else {
            continue;
        };
        for (field, value) in defaults {
            set_default_text(source, field, value);
        }
    }
    if let Some(disk) = volume.get_mut("azureDisk") {
        set_default(disk, "readOnly", false);
    }
}

/// Checks the volumes of a pod and gives those that are in order.
pub(super) fn validate<'a>(
    volumes: &'a Value,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Volumes<'a> {
    let mut good = Volumes::new();
    for (i, volume) in items(volumes).iter().enumerate() {
        let path = path.index(i);
        let before = errors.len();
        validate_source(volume, &path, errors);
        let name = text(&volume["name"]);
        let name_path = path.child("name");
        if name.is_empty() {
            errors.push(FieldError::required(name_path, ""));
        } else {
            invalid_each(names::dns1123_label(name), name, &name_path, errors);
        }
        if good.contains_key(name) {
            errors.push(FieldError::duplicate(name_path, &name.into()));
        }
        if errors.len() == before {
            good.insert(name, volume);
        }
    }
    good
}

/// Kinds of volumes in the order the server asks for them: the first one counts, all others are too many.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

fn validate_source(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut sources = SOURCES.iter().filter(|kind| !volume[**kind].is_null());
    let Some(first) = sources.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    validate_one_source(first, &volume[*first], &path.child(first), errors);
    for other in sources {
        let text = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(path.child(other), text));
    }
}

fn validate_one_source(kind: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let required: &[&str] = match kind {
        "hostPath" => &["path"],
        "secret" => &["secretName"],
        "configMap" => &["name"],
        "persistentVolumeClaim" => &["claimName"],
        "nfs" => &["server", "path"],
        "csi" => &["driver"],
        "image" => &["reference"],
        "gitRepo" => &["repository"],
        "ephemeral" => &["volumeClaimTemplate"],
        _ => &[],
    };
    for field in required {
        if is_empty(&source[*field]) {
            errors.push(FieldError::required(path.child(field), ""));
        }
    }
    file_mode(&source["defaultMode"], &path.child("defaultMode"), errors);
    match kind {
        "secret" | "configMap" => validate_items(&source["items"], &path.child("items"), errors),
        "hostPath" => validate_host_path(source, path, errors),
        "emptyDir" => validate_empty_dir(source, path, errors),
        "projected" => validate_projected(source, path, errors),
        _ => {}
    }
}

fn validate_empty_dir(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let size = Quantity::parse(text(&source["sizeLimit"]));
    if size.is_ok_and(|size| size.is_negative()) {
        errors.push(FieldError::forbidden(
            path.child("sizeLimit"),
            "SizeLimit field must be a valid resource quantity",
        ));
    }
}

fn validate_host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    no_backsteps(text(&source["path"]), &path.child("path"), errors);
    if let Some(kind) = source["type"].as_str() {
        let kinds = [
            "",
            "DirectoryOrCreate",
            "Directory",
            "FileOrCreate",
            "File",
            "Socket",
            "CharDevice",
            "BlockDevice",
        ];
        one_of(&kind.into(), &kinds, &path.child("type"), errors);
    }
}

fn validate_projected(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let sources = path.child("sources");
    for (i, one) in items(&source["sources"]).iter().enumerate() {
        let path = sources.index(i);
        let mut kinds = 0;
        for (kind, projection) in entries(one) {
            kinds += 1;
            let path = path.child(kind);
            if kinds > 1 {
                let text = "may not specify more than 1 volume type";
                errors.push(FieldError::forbidden(path, text));
                continue;
            }
            if matches!(kind.as_str(), "secret" | "configMap") {
                if is_empty(&projection["name"]) {
                    errors.push(FieldError::required(path.child("name"), ""));
                }
                validate_items(&projection["items"], &path.child("items"), errors);
            }
            if kind == "serviceAccountToken" {
                validate_token(projection, &path, errors);
            }
            if kind == "podCertificate" {
                validate_pod_certificate(projection, &path, errors);
            }
        }
    }
}

/// What a pod may ask of a certificate for itself.
fn validate_pod_certificate(projection: &Value, path: &Path<'_>, errors: &mut Errors) {
    const KEYS: [&str; 6] = [
        "RSA3072",
        "RSA4096",
        "ECDSAP256",
        "ECDSAP384",
        "ECDSAP521",
        "ED25519",
    ];
    /// An hour; a day for the signers of Kubernetes itself; 91 days for others.
    const SECONDS: (i64, i64, i64) = (3_600, 86_400, 7_862_400);
    one_of(
        &projection["keyType"],
        &KEYS,
        &path.child("keyType"),
        errors,
    );
    let signer = text(&projection["signerName"]);
    if signer.is_empty() {
        errors.push(FieldError::required(path.child("signerName"), ""));
    }
    let longest = if signer.starts_with("kubernetes.io/") {
        SECONDS.1
    } else {
        SECONDS.2
    };
    let why = match projection["maxExpirationSeconds"].as_i64() {
        Some(seconds) if seconds < SECONDS.0 => format!(">= {}", SECONDS.0),
        Some(seconds) if seconds > longest => format!("<= {longest}"),
        _ => return,
    };
    errors.push(FieldError::invalid(
        path.child("maxExpirationSeconds"),
        &projection["maxExpirationSeconds"],
        &format!("if provided, maxExpirationSeconds must be {why}"),
    ));
}

fn validate_token(token: &Value, path: &Path<'_>, errors: &mut Errors) {
    let seconds = &token["expirationSeconds"];
    let lifetime = seconds.as_i64().unwrap_or(3600);
    if lifetime < 600 {
        let text = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid(
            path.child("expirationSeconds"),
            seconds,
            text,
        ));
    }
    if lifetime > 1 << 32 {
        let text = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid(
            path.child("expirationSeconds"),
            seconds,
            text,
        ));
    }
    if is_empty(&token["path"]) {
        errors.push(FieldError::required(path.child("path"), ""));
    }
}

fn validate_items(list: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (i, item) in items(list).iter().enumerate() {
        let path = path.index(i);
        for field in ["key", "path"] {
            if is_empty(&item[field]) {
                errors.push(FieldError::required(path.child(field), ""));
            }
        }
        let target = text(&item["path"]);
        descending(target, &path.child("path"), errors);
        if target.starts_with("..") {
            let text = "must not start with '..'";
            errors.push(FieldError::invalid(
                path.child("path"),
                &target.into(),
                text,
            ));
        }
        file_mode(&item["mode"], &path.child("mode"), errors);
    }
}

fn file_mode(mode: &Value, path: &Path<'_>, errors: &mut Errors) {
    if mode.as_i64().is_some_and(|m| !(0..=0o777).contains(&m)) {
        errors.push(FieldError::invalid(path, mode, FILE_MODE_TEXT));
    }
}

/// Checks that a path leads down from where it starts.
pub(super) fn descending(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.starts_with('/') {
        let text = "must be a relative path";
        errors.push(FieldError::invalid(path, &target.into(), text));
    }
    no_backsteps(target, path, errors);
}

fn no_backsteps(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.split('/').any(|part| part == "..") {
        let text = "must not contain '..'";
        errors.push(FieldError::invalid(path, &target.into(), text));
    }
}
