//! Facts about owner references.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::*;

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.into()),
        namespace: Some(namespace.to_owned()).filter(|n| !n.is_empty()),
        uid: Some(format!("uid-of-{name}")),
        ..ObjectMeta::default()
    }
}

fn deployment(namespace: &str, name: &str) -> Deployment {
    Deployment {
        metadata: metadata(namespace, name),
        ..Deployment::default()
    }
}

fn config(namespace: &str) -> ConfigMap {
    ConfigMap {
        metadata: metadata(namespace, "config"),
        ..ConfigMap::default()
    }
}

#[test]
fn controller_is_set_once_and_found() {
    let (owner, mut object) = (deployment("a", "web"), config("a"));
    for _ in 0..2 {
        set_controller_reference(&owner, &mut object).expect("fits");
    }
    let expected = OwnerReference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: "web".into(),
        uid: "uid-of-web".into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    assert_eq!(controller_of(&object), Some(&expected));
    assert_eq!(controller_of(&config("a")), None);
    assert_eq!(references(&object), [expected]);
    assert!(has_controller_reference(&object) && is_controlled_by(&owner, &object));
    assert!(has_owner_reference(&owner, &object));
}

#[test]
fn controller_of_a_shared_object_is_found_and_outlives_the_look() {
    let (owner, mut object) = (deployment("a", "web"), config("a"));
    set_controller_reference(&owner, &mut object).expect("fits");
    let shared = [Arc::new(object)];
    assert!(shared.iter().all(has_controller_reference));
    let owners: Vec<&OwnerReference> = shared.iter().filter_map(controller_of).collect();
    assert_eq!(owners[0].name, "web");
    assert_eq!(controller_of(&shared[0]), controller_of(&*shared[0]));
}

#[test]
fn second_controller_is_refused_and_second_owner_is_not() {
    let mut object = config("a");
    set_controller_reference(&deployment("a", "web"), &mut object).expect("fits");
    let other = deployment("a", "other");
    let error = set_controller_reference(&other, &mut object).expect_err("it is owned");
    assert_eq!(
        error.to_string(),
        "Object a/config is already owned by another Deployment controller web"
    );
    set_owner_reference(&other, &mut object, OwnerDeletion::Free).expect("fits");
    assert_eq!(references(&object).len(), 2);
    assert_eq!(references(&object)[1].block_owner_deletion, None);
    set_owner_reference(&other, &mut object, OwnerDeletion::Blocked).expect("fits");
    assert_eq!(references(&object)[1].block_owner_deletion, Some(true));
    assert!(!is_controlled_by(&other, &object));
}

#[test]
fn owner_of_the_same_name_and_another_group_or_kind_is_another() {
    let mut object = config("a");
    set_controller_reference(&deployment("a", "web"), &mut object).expect("fits");
    let set = ReplicaSet {
        metadata: metadata("a", "web"),
        ..ReplicaSet::default()
    };
    assert!(set_controller_reference(&set, &mut object).is_err());
    assert!(!has_owner_reference(&set, &object));
}

#[test]
fn owner_created_anew_takes_over() {
    let (mut owner, mut object) = (deployment("a", "web"), config("a"));
    set_controller_reference(&owner, &mut object).expect("fits");
    owner.metadata.uid = Some("later".into());
    assert!(!is_controlled_by(&owner, &object));
    set_controller_reference(&owner, &mut object).expect("fits");
    assert_eq!(references(&object).len(), 1);
    assert!(is_controlled_by(&owner, &object));
}

#[test]
fn scopes_that_do_not_fit_are_refused() {
    let mut namespace = Namespace {
        metadata: metadata("", "b"),
        ..Namespace::default()
    };
    let owner = deployment("a", "web");
    let error = set_owner_reference(&owner, &mut namespace, OwnerDeletion::Free);
    let namespace = "a".to_owned();
    assert_eq!(error, Err(OwnerError::ClusterScoped { namespace }));
    let error = set_controller_reference(&owner, &mut config("b")).expect_err("crosses");
    assert_eq!(
        error.to_string(),
        "cross-namespace owner references are disallowed, owner's namespace a, obj's namespace b"
    );
    let node = Node {
        metadata: metadata("", "n1"),
        ..Node::default()
    };
    set_controller_reference(&node, &mut config("b")).expect("cluster scope owns everywhere");
}

#[test]
fn owner_that_was_never_created_is_refused() {
    let mut owner = deployment("a", "web");
    owner.metadata.uid = None;
    let result = set_controller_reference(&owner, &mut config("a"));
    assert_eq!(result, Err(OwnerError::Uncreated));
}

#[test]
fn references_are_removed() {
    let (owner, mut object) = (deployment("a", "web"), config("a"));
    set_owner_reference(&owner, &mut object, OwnerDeletion::Free).expect("fits");
    assert!(
        !remove_controller_reference(&owner, &mut object),
        "it owns, but does not control"
    );
    assert!(remove_owner_reference(&owner, &mut object));
    assert!(!remove_owner_reference(&owner, &mut object));
    assert_eq!(object.metadata.owner_references, None);
    set_controller_reference(&owner, &mut object).expect("fits");
    assert!(remove_controller_reference(&owner, &mut object));
}
