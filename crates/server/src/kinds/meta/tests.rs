use serde_json::{Map, json};

use super::*;

fn created(meta: Value, scope: Scope) -> Vec<String> {
    let mut errors = Errors::new();
    validate(
        &json!({"metadata": meta}),
        scope,
        NameRule::Subdomain,
        &mut errors,
    );
    errors.iter().map(ToString::to_string).collect()
}

fn updated(new: Value, old: Value) -> Vec<String> {
    let mut errors = Errors::new();
    validate_update(
        &json!({"metadata": new}),
        &json!({"metadata": old}),
        &mut errors,
    );
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn good_metadata_passes() {
    let meta = json!({
        "name": "a", "namespace": "d", "generateName": "a-", "labels": {"ex.io/a": ""},
        "annotations": {"EX.io/A": "anything at all"}, "finalizers": ["ex.io/f"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}],
    });
    assert_eq!(created(meta, Scope::Namespaced), Vec::<String>::new());
}

#[test]
fn each_broken_field_is_named() {
    for (meta, scope, expect) in [
        (
            json!({}),
            Scope::Cluster,
            "metadata.name: Required value: name or generateName is required",
        ),
        (
            json!({"name": "a"}),
            Scope::Namespaced,
            "metadata.namespace: Required value",
        ),
        (
            json!({"name": "a", "namespace": "d"}),
            Scope::Cluster,
            "metadata.namespace: Forbidden: not allowed on this type",
        ),
        (
            json!({"name": "a", "labels": {"a": "b c"}}),
            Scope::Cluster,
            "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            json!({"name": "a", "annotations": {"a": "x".repeat(256 * 1024)}}),
            Scope::Cluster,
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
            Scope::Cluster,
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ),
        (
            json!({"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
            Scope::Cluster,
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
    ] {
        assert_eq!(created(meta, scope), [expect]);
    }
}

#[test]
fn only_one_owner_controls() {
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true});
    let errors = created(
        json!({"name": "a", "ownerReferences": [owner("p"), owner("q")]}),
        Scope::Cluster,
    );
    assert_eq!(errors.len(), 1);
    assert!(errors[0].ends_with(
        "Only one reference can have Controller set to true. Found \"true\" in references for Pod/p and Pod/q"
    ));
}

#[test]
fn finalizers_are_not_added_while_deleting() {
    let old = json!({"name": "b1", "resourceVersion": "1", "deletionTimestamp": "t", "finalizers": ["ex.io/f"]});
    let mut new = old.clone();
    new["finalizers"] = json!(["ex.io/f", "ex.io/g"]);
    assert_eq!(
        updated(new, old.clone()),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"ex.io/g\"}"
        ]
    );
    let mut fewer = old.clone();
    fewer["finalizers"] = json!([]);
    assert_eq!(updated(fewer, old), Vec::<String>::new());
}

#[test]
fn identity_stays() {
    let old = json!({"name": "a", "namespace": "n", "uid": "u", "creationTimestamp": "t", "resourceVersion": "1"});
    for (field, expect) in [
        (
            "name",
            "metadata.name: Invalid value: \"z\": field is immutable",
        ),
        (
            "namespace",
            "metadata.namespace: Invalid value: \"z\": field is immutable",
        ),
        (
            "uid",
            "metadata.uid: Invalid value: \"z\": field is immutable",
        ),
    ] {
        let mut new = old.clone();
        new[field] = json!("z");
        assert_eq!(updated(new, old.clone()), [expect]);
    }
    let mut new = old.clone();
    new["resourceVersion"] = json!("");
    assert_eq!(
        updated(new, old),
        ["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]
    );
}

#[test]
fn a_hundred_thousand_labels_are_no_trouble() {
    let labels: Map<String, Value> = (0..100_000)
        .map(|i| (format!("k{i}"), json!("v")))
        .collect();
    let meta = json!({"name": "a", "labels": labels});
    assert_eq!(created(meta, Scope::Cluster), Vec::<String>::new());
}
