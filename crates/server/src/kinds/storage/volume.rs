//! PersistentVolumes.

use kubewright_schema::FieldError;
use serde_json::{Value, json};

use super::{validate_access_modes, validate_class_and_mode, validate_size};
use crate::kinds::checks::{Errors, immutable, one_of_if_set};
use crate::kinds::path::Path;
use crate::kinds::pod;
use crate::kinds::strategy::Strategy;
use crate::kinds::value::{
    alike, copy, ensure, entries, is_empty, items, remove, set, set_default, set_default_text,
};

pub(crate) static PERSISTENT_VOLUME: Strategy = Strategy {
    has_status: true,
    returns_deleted_object: true,
    default,
    create: |object, cx| {
        let status = json!({"phase": "Pending", "lastPhaseTransitionTime": cx.now});
        set(object, "status", status);
    },
    status_update: |new, old| {
        if new["status"]["phase"] == old["status"]["phase"]
            && new["status"]["lastPhaseTransitionTime"].is_null()
        {
            copy(
                ensure(new, "status"),
                &old["status"],
                "lastPhaseTransitionTime",
            );
        }
    },
    validate,
    validate_update,
    ..Strategy::PLAIN
};

/// Fields of the spec that are not the source of the volume.
const NOT_A_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

fn default(object: &mut Value) {
    set_default_text(ensure(object, "status"), "phase", "Pending");
    let spec = ensure(object, "spec");
    set_default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
    set_default(spec, "volumeMode", "Filesystem");
    pod::default_resource_list(spec.get_mut("capacity"));
    if let Some(host_path) = spec.get_mut("hostPath") {
        set_default(host_path, "type", "");
    }
    pod::default_network_disk(spec);
}

fn validate(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root("spec"));
    if items(&spec["accessModes"]).is_empty() {
        errors.push(FieldError::required(path.child("accessModes"), ""));
    }
    validate_access_modes(spec, &path, errors);
    let capacity = path.child("capacity");
    if is_empty(&spec["capacity"]) {
        errors.push(FieldError::required(capacity, ""));
    }
    if spec["capacity"]["storage"].is_null()
        || spec["capacity"].as_object().is_some_and(|c| c.len() > 1)
    {
        let text = &spec["capacity"];
        errors.push(FieldError::not_supported(capacity, text, &["storage"]));
    } else {
        validate_size(
            &spec["capacity"]["storage"],
            &capacity.key("storage"),
            errors,
        );
    }
    one_of_if_set(
        &spec["persistentVolumeReclaimPolicy"],
        &["Delete", "Recycle", "Retain"],
        &path.child("persistentVolumeReclaimPolicy"),
        errors,
    );
    validate_source(spec, &path, errors);
    validate_class_and_mode(spec, &path, errors);
}

fn validate_source(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let required = &spec["nodeAffinity"]["required"];
    if !required.is_null() {
        pod::validate_node_selector(required, &path.child("nodeAffinity.required"), errors);
    }
    let mut sources = entries(spec).filter(|(field, _)| !NOT_A_SOURCE.contains(&field.as_str()));
    let Some((kind, source)) = sources.next() else {
        errors.push(FieldError::required(path, "must specify a volume type"));
        return;
    };
    for (other, _) in sources {
        let text = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(path.child(other), text));
    }
    let fields: &[&str] = match kind.as_str() {
        "csi" => &["driver", "volumeHandle"],
        "nfs" => &["server", "path"],
        "hostPath" | "local" => &["path"],
        _ => &[],
    };
    let source_path = path.child(kind);
    for field in fields {
        if is_empty(&source[*field]) {
            errors.push(FieldError::required(source_path.child(field), ""));
        }
    }
    if kind == "local" && required.is_null() {
        let text = "Local volume requires node affinity";
        errors.push(FieldError::required(path.child("nodeAffinity"), text));
    }
}

fn source_of(spec: &Value) -> Value {
    let mut source = spec.clone();
    for field in NOT_A_SOURCE {
        remove(&mut source, field);
    }
    source
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"], &old["spec"]);
    let (mut now, before) = (source_of(new), source_of(old));
    let secret = "controllerExpandSecretRef";
    if !now["csi"].is_null() && before["csi"][secret].is_null() {
        remove(ensure(&mut now, "csi"), secret);
    }
    if !alike(&now, &before) {
        let text = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden("spec.persistentvolumesource", text));
    }
    immutable(
        &new["volumeMode"],
        &old["volumeMode"],
        &Path::Root("volumeMode"),
        errors,
    );
    if !old["nodeAffinity"].is_null() {
        let path = Path::Root("nodeAffinity");
        immutable(&new["nodeAffinity"], &old["nodeAffinity"], &path, errors);
    }
}
