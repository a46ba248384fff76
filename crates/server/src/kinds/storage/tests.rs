use serde_json::{Value, json};

use crate::kinds::testing::{create, create_errors, update_errors};

fn claim(size: &str) -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}},
    })
}

#[test]
fn claims_start_pending() {
    let object = create("", "PersistentVolumeClaim", claim("1Gi"));
    assert_eq!(object["status"], json!({"phase": "Pending"}));
    assert_eq!(object["spec"]["volumeMode"], "Filesystem");
}

#[test]
fn claims_need_a_mode_and_a_size() {
    let empty = json!({"metadata": {"name": "c", "namespace": "default"}, "spec": {}});
    assert_eq!(
        create_errors("", "PersistentVolumeClaim", empty),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ]
    );
    assert_eq!(
        create_errors("", "PersistentVolumeClaim", claim("0")),
        ["spec.resources[storage]: Invalid value: \"0\": must be greater than zero"]
    );
}

#[test]
fn only_bound_claims_grow() {
    let refusal = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let grow = |new: &mut Value| new["spec"]["resources"]["requests"]["storage"] = json!("2Gi");
    assert_eq!(
        update_errors("", "PersistentVolumeClaim", claim("1Gi"), grow),
        [refusal]
    );
    let bound = || {
        let mut bound = create("", "PersistentVolumeClaim", claim("1Gi"));
        bound["status"] = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        bound
    };
    let check = |edit: fn(&mut Value)| {
        crate::kinds::testing::edit_errors("", "PersistentVolumeClaim", bound(), edit)
    };
    assert_eq!(
        check(|new| new["spec"]["resources"]["requests"]["storage"] = json!("2Gi")),
        Vec::<String>::new()
    );
    assert_eq!(
        check(|new| new["spec"]["resources"]["requests"]["storage"] = json!("1Mi")),
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"]
    );
    assert_eq!(
        check(|new| new["spec"]["accessModes"] = json!(["ReadWriteMany"])),
        [refusal]
    );
}

#[test]
fn storage_classes_stay_what_they_are() {
    let class = json!({"metadata": {"name": "s"}, "provisioner": "ex.io/p"});
    let object = create("storage.k8s.io", "StorageClass", class.clone());
    assert_eq!(object["reclaimPolicy"], "Delete");
    assert_eq!(object["volumeBindingMode"], "Immediate");
    assert_eq!(
        update_errors("storage.k8s.io", "StorageClass", class, |new| {
            new["parameters"] = json!({"a": "b"});
            new["volumeBindingMode"] = json!("WaitForFirstConsumer");
        }),
        [
            "parameters: Forbidden: updates to parameters are forbidden.",
            "volumeBindingMode: Invalid value: \"WaitForFirstConsumer\": field is immutable",
        ]
    );
}

#[test]
fn volumes_keep_their_source() {
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}},
    });
    let object = create("", "PersistentVolume", volume.clone());
    assert_eq!(object["status"]["phase"], "Pending");
    assert_eq!(object["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    assert_eq!(
        update_errors(
            "",
            "PersistentVolume",
            volume,
            |new| new["spec"]["hostPath"]["path"] = json!("/e")
        ),
        [
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"
        ]
    );
}
