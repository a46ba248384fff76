//! Storage classes and the CSI kinds.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use crate::kinds::checks::{
    Errors, immutable, invalid_each, one_of_if_set, required, spec_is_immutable,
};
use crate::kinds::path::Path;
use crate::kinds::strategy::{Generation, StatusMeta, Strategy};
use crate::kinds::value::{
    alike, ensure, entries, is_empty, items, remove, set, set_default, text,
};

const SPEC: Path<'static> = Path::Root("spec");

pub(crate) static STORAGE_CLASS: Strategy = Strategy {
    returns_deleted_object: true,
    default: |object| {
        set_default(object, "reclaimPolicy", "Delete");
        set_default(object, "volumeBindingMode", "Immediate");
    },
    validate: validate_class,
    validate_update: validate_class_update,
    ..Strategy::PLAIN
};

pub(crate) static CSI_DRIVER: Strategy = Strategy {
    generation: Generation::Field("spec"),
    allow_unconditional_update: false,
    returns_deleted_object: true,
    // The server starts to count with the first change.
    create: |object, _| drop(remove(ensure(object, "metadata"), "generation")),
    default: |object| {
        let spec = ensure(object, "spec");
        set_default(spec, "attachRequired", true);
        set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        for field in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
        ] {
            set_default(spec, field, false);
        }
        if items(&spec["volumeLifecycleModes"]).is_empty() {
            set(spec, "volumeLifecycleModes", json!(["Persistent"]));
        }
    },
    validate: |object, errors| {
        one_of_if_set(
            &object["spec"]["fsGroupPolicy"],
            &["File", "None", "ReadWriteOnceWithFSType"],
            &SPEC.child("fsGroupPolicy"),
            errors,
        );
    },
    ..Strategy::PLAIN
};

pub(crate) static CSI_NODE: Strategy = Strategy {
    has_status: true,
    status_meta: StatusMeta::Closed,
    allow_unconditional_update: false,
    returns_deleted_object: true,
    ..Strategy::PLAIN
};

pub(crate) static CSI_STORAGE_CAPACITY: Strategy = Strategy {
    allow_unconditional_update: false,
    validate: |object, errors| {
        let class = text(&object["storageClassName"]);
        invalid_each(
            names::dns1123_subdomain(class),
            class,
            &Path::Root("storageClassName"),
            errors,
        );
    },
    validate_update: |new, old, errors| {
        for field in ["nodeTopology", "storageClassName"] {
            immutable(&new[field], &old[field], &Path::Root(field), errors);
        }
    },
    ..Strategy::PLAIN
};

pub(crate) static VOLUME_ATTACHMENT: Strategy = Strategy {
    has_status: true,
    status_meta: StatusMeta::Closed,
    allow_unconditional_update: false,
    returns_deleted_object: true,
    create: |object, _| set(object, "status", json!({"attached": false})),
    validate: |object, errors| {
        let spec = &object["spec"];
        required(&spec["attacher"], &SPEC.child("attacher"), errors);
        let source = &spec["source"];
        if source["persistentVolumeName"].is_null() == source["inlineVolumeSpec"].is_null() {
            let text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.push(FieldError::required(SPEC.child("source"), text));
        }
        let node = text(&spec["nodeName"]);
        invalid_each(
            names::dns1123_subdomain(node),
            node,
            &SPEC.child("nodeName"),
            errors,
        );
    },
    validate_update: spec_is_immutable,
    ..Strategy::PLAIN
};

pub(crate) static VOLUME_ATTRIBUTES_CLASS: Strategy = Strategy {
    returns_deleted_object: true,
    validate: |object, errors| {
        required(&object["driverName"], &Path::Root("driverName"), errors);
        if is_empty(&object["parameters"]) {
            let text = "must contain at least one key/value pair";
            errors.push(FieldError::required("parameters", text));
        }
    },
    validate_update: |new, old, errors| {
        if new["driverName"] != old["driverName"] {
            let text = "updates to driverName are forbidden.";
            errors.push(FieldError::forbidden("driverName", text));
        }
        if !alike(&new["parameters"], &old["parameters"]) {
            let text = "updates to parameters are forbidden.";
            errors.push(FieldError::forbidden("parameters", text));
        }
    },
    ..Strategy::PLAIN
};

fn validate_class(object: &Value, errors: &mut Errors) {
    let path = Path::Root("provisioner");
    match text(&object["provisioner"]) {
        "" => errors.push(FieldError::required(path, "")),
        name => {
            let lower = name.to_ascii_lowercase();
            invalid_each(names::qualified_name(&lower), lower.as_str(), &path, errors);
        }
    }
    let mut size = 0;
    for (key, value) in entries(&object["parameters"]) {
        if key.is_empty() {
            let text = "field can not be empty.";
            errors.push(FieldError::invalid("parameters", &"".into(), text));
        }
        size += key.len() + text(value).len();
    }
    if size > 256 * 1024 {
        errors.push(FieldError::too_long("parameters", 256 * 1024));
    }
    one_of_if_set(
        &object["reclaimPolicy"],
        &["Delete", "Retain"],
        &Path::Root("reclaimPolicy"),
        errors,
    );
    one_of_if_set(
        &object["volumeBindingMode"],
        &["Immediate", "WaitForFirstConsumer"],
        &Path::Root("volumeBindingMode"),
        errors,
    );
}

fn validate_class_update(new: &Value, old: &Value, errors: &mut Errors) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if !alike(&new[field], &old[field]) {
            let text = format!("updates to {field} are forbidden.");
            errors.push(FieldError::forbidden(field, &text));
        }
    }
    let mode = "volumeBindingMode";
    immutable(&new[mode], &old[mode], &Path::Root(mode), errors);
}
