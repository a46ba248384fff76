use kubewright_schema::catalog::Scope;
use serde_json::{Value, json};

use super::testing::CONTEXT;
use super::*;

#[test]
fn kinds_that_serve_their_status_have_a_strategy_for_it() {
    for resource in kubewright_schema::catalog::builtin() {
        let serves = resource
            .subresources
            .iter()
            .any(|part| &*part.name == "status");
        let knows = strategy(&resource.group, &resource.kind).has_status;
        assert!(!serves || knows, "{} {}", resource.group, resource.kind);
    }
}

/// Which kinds create on update and which insist on a resource version.
#[test]
fn facts_about_updates_are_those_of_the_server() {
    let rbac = "rbac.authorization.k8s.io";
    for (group, kind) in [
        ("", "Endpoints"),
        ("", "Event"),
        ("", "LimitRange"),
        ("", "Service"),
        (rbac, "Role"),
        (rbac, "RoleBinding"),
        (rbac, "ClusterRole"),
        (rbac, "ClusterRoleBinding"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
    ] {
        assert!(strategy(group, kind).allow_create_on_update, "{kind}");
    }
    for (group, kind) in [
        ("policy", "PodDisruptionBudget"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "VolumeAttachment"),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
        ),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ] {
        assert!(!strategy(group, kind).allow_unconditional_update, "{kind}");
    }
    for kind in ["Deployment", "StatefulSet"] {
        assert!(strategy("apps", kind).allow_unconditional_update);
        assert!(!strategy("apps", kind).allow_create_on_update);
    }
}

#[test]
fn some_kinds_answer_a_delete_with_the_object() {
    for kind in [
        "Pod",
        "Namespace",
        "Service",
        "PersistentVolumeClaim",
        "ServiceAccount",
        "PodTemplate",
    ] {
        assert!(strategy("", kind).returns_deleted_object, "{kind}");
    }
    assert!(!strategy("", "ConfigMap").returns_deleted_object);
    assert!(!strategy("apps", "Deployment").returns_deleted_object);
}

#[test]
fn kinds_without_field_labels_refuse_them() {
    assert_eq!(
        strategy("", "ConfigMap").check_field_label("spec.x").map_err(|e| e.to_string()),
        Err("\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"".to_owned())
    );
    assert_eq!(
        strategy("", "ConfigMap")
            .check_field_label("metadata.name")
            .map_err(|e| e.to_string()),
        Ok(())
    );
}

fn bar() -> Value {
    json!({
        "metadata": {"name": "b1", "namespace": "default", "resourceVersion": "1", "finalizers": ["ex.io/f"]},
        "spec": {"num": 1},
        "status": {"ready": true},
    })
}

/// Golden entry "add finalizer while deleting": the cause stands twice.
#[test]
fn custom_resources_refuse_new_finalizers_twice() {
    let mut old = bar();
    old["metadata"]["deletionTimestamp"] = json!("2026-11-15T19:19:16Z");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!(["ex.io/f", "ex.io/g"]);
    let custom = custom_strategy(true);
    custom.prepare_for_update(&mut new, &old);
    let errors = custom.validate_update(&new, &old, Scope::Namespaced);
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert_eq!(error.field, "metadata.finalizers");
        assert_eq!(
            error.message,
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"ex.io/g\"}"
        );
    }
}

#[test]
fn custom_resources_count_changes_outside_metadata() {
    let custom = custom_strategy(true);
    let mut old = bar();
    custom.prepare_for_create(&mut old, &CONTEXT);
    assert_eq!(old["metadata"]["generation"], 1);
    assert!(old.get("status").is_none());
    let generation = |strategy: &Strategy, edit: fn(&mut Value)| {
        let mut new = old.clone();
        edit(&mut new);
        strategy.prepare_for_update(&mut new, &old);
        new["metadata"]["generation"].clone()
    };
    let status: fn(&mut Value) = |new| new["status"] = json!({"ready": false});
    assert_eq!(generation(&custom, |new| new["spec"]["num"] = json!(2)), 2);
    assert_eq!(
        generation(&custom, |new| new["metadata"]["labels"] = json!({"a": "b"})),
        1
    );
    assert_eq!(generation(&custom, status), 1);
    assert_eq!(generation(&custom_strategy(false), status), 2);
}

#[test]
fn status_writes_of_custom_resources_keep_everything_else() {
    let old = bar();
    let mut new = old.clone();
    new["spec"]["num"] = json!(7);
    new["metadata"]["labels"] = json!({"a": "b"});
    new["metadata"]["finalizers"] = json!([]);
    new["status"] = json!({"ready": false});
    custom_strategy(true).prepare_for_status_update(&mut new, &old);
    let mut expect = old;
    expect["status"] = json!({"ready": false});
    assert_eq!(new, expect);
}
