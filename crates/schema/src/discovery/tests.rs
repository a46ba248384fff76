//! Facts about discovery that clients rely on.

use serde_json::{Value, json};

use super::*;
use crate::catalog::builtin;

fn custom(group: &str, version: &str, kind: &str) -> Resource {
    let singular = kind.to_lowercase();
    Resource {
        group: group.into(),
        version: version.into(),
        plural: format!("{singular}s").into(),
        singular: singular.as_str().into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        scope: Scope::Namespaced,
        short_names: vec!["f".into()],
        categories: Vec::new(),
        verbs: Verb::ALL.to_vec(),
        subresources: vec![Subresource {
            name: "scale".into(),
            group: "autoscaling".into(),
            version: "v1".into(),
            kind: "Scale".into(),
            verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
        }],
    }
}

fn with_builtin(customs: &[Resource]) -> Vec<&Resource> {
    // Custom resources first: the order given does not matter.
    customs.iter().chain(builtin()).collect()
}

fn read(document: Vec<u8>) -> Value {
    serde_json::from_slice(&document).expect("documents are JSON")
}

fn names(list: &Value, pointer: &str) -> Vec<String> {
    let name = |item: &Value| {
        item.pointer(pointer)
            .and_then(Value::as_str)
            .map(String::from)
    };
    list.as_array()
        .expect("a list")
        .iter()
        .filter_map(name)
        .collect()
}

#[test]
fn groups_stand_in_the_order_of_the_real_server() {
    let customs = [custom("z.io", "v1", "Foo"), custom("a.io", "v1", "Bar")];
    let groups = read(aggregated_groups(&with_builtin(&customs), Aggregated::V2));
    assert_eq!(
        names(&groups["items"], "/metadata/name"),
        [
            "apiregistration.k8s.io",
            "apps",
            "events.k8s.io",
            "authentication.k8s.io",
            "authorization.k8s.io",
            "autoscaling",
            "batch",
            "certificates.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "storage.k8s.io",
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "discovery.k8s.io",
            "resource.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "storagemigration.k8s.io",
            "a.io",
            "z.io",
        ]
    );
}

#[test]
fn the_core_group_has_no_name_and_is_only_under_api() {
    let core = read(aggregated_core(&with_builtin(&[]), Aggregated::V2));
    assert_eq!(core["kind"], "APIGroupDiscoveryList");
    assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
    assert_eq!(core["items"][0]["versions"][0]["freshness"], "Current");
    assert_eq!(core["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_old_aggregated_version_differs_in_name_only() {
    let resources = with_builtin(&[]);
    let mut old = read(aggregated_groups(&resources, Aggregated::V2Beta1));
    assert_eq!(old["apiVersion"], "apidiscovery.k8s.io/v2beta1");
    old["apiVersion"] = "apidiscovery.k8s.io/v2".into();
    assert_eq!(old, read(aggregated_groups(&resources, Aggregated::V2)));
}

#[test]
fn an_aggregated_resource_reads_as_the_real_one() {
    let apps = read(aggregated_groups(&with_builtin(&[]), Aggregated::V2));
    let deployments = &apps["items"][1]["versions"][0]["resources"][2];
    assert_eq!(
        *deployments,
        json!({
            "resource": "deployments",
            "responseKind": {"group": "", "version": "", "kind": "Deployment"},
            "scope": "Namespaced",
            "singularResource": "deployment",
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
            "shortNames": ["deploy"],
            "categories": ["all"],
            "subresources": [
                {
                    "subresource": "scale",
                    "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
                    "verbs": ["get", "patch", "update"],
                },
                {
                    "subresource": "status",
                    "responseKind": {"group": "", "version": "", "kind": "Deployment"},
                    "verbs": ["get", "patch", "update"],
                },
            ],
        })
    );
}

#[test]
fn a_custom_resource_names_its_group_and_version() {
    let customs = [custom("ex.io", "v1", "Foo")];
    let groups = read(aggregated_groups(&with_builtin(&customs), Aggregated::V2));
    let last = groups["items"]
        .as_array()
        .and_then(|g| g.last())
        .expect("ex.io");
    assert_eq!(
        last["versions"][0]["resources"][0]["responseKind"],
        json!({"group": "ex.io", "version": "v1", "kind": "Foo"})
    );
}

#[test]
fn the_preferred_version_comes_first() {
    let customs = [
        custom("ex.io", "v1alpha1", "Foo"),
        custom("ex.io", "v1", "Foo"),
        custom("ex.io", "v1beta1", "Foo"),
    ];
    let resources = with_builtin(&customs);
    for (name, versions) in [
        ("autoscaling", vec!["v2", "v1"]),
        ("ex.io", vec!["v1", "v1beta1", "v1alpha1"]),
    ] {
        let document = read(group(&resources, name).expect("the group is served"));
        assert_eq!(document["kind"], "APIGroup");
        assert_eq!(names(&document["versions"], "/version"), versions);
        assert_eq!(
            document["preferredVersion"],
            json!({"groupVersion": format!("{name}/{}", versions[0]), "version": versions[0]})
        );
    }
    assert_eq!(group(&resources, "nope"), None);
}

#[test]
fn plain_lists_name_versions_and_groups() {
    let resources = with_builtin(&[]);
    assert_eq!(
        read(api_versions(&resources, "10.0.0.1:6443")),
        json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "10.0.0.1:6443"}],
        })
    );
    let list = read(group_list(&resources));
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("APIGroupList"), &json!("v1"))
    );
    assert_eq!(
        list["groups"][1],
        json!({
            "name": "apps",
            "versions": [{"groupVersion": "apps/v1", "version": "v1"}],
            "preferredVersion": {"groupVersion": "apps/v1", "version": "v1"},
        })
    );
}

#[test]
fn a_resource_list_names_subresources_after_their_parent() {
    let list = read(resource_list(&with_builtin(&[]), "apps", "v1").expect("apps/v1 is served"));
    assert_eq!(list["groupVersion"], "apps/v1");
    assert_eq!(
        names(&list["resources"], "/name")[..6],
        [
            "controllerrevisions",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
        ]
    );
    assert_eq!(
        list["resources"][4],
        json!({
            "name": "deployments/scale",
            "singularName": "",
            "namespaced": true,
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(resource_list(&with_builtin(&[]), "apps", "v2"), None);
}

#[test]
fn stored_resources_have_one_storage_hash_over_all_versions() {
    let resources = with_builtin(&[]);
    let hash = |group: &str, version: &str, at: usize| {
        let list = read(resource_list(&resources, group, version).expect("served"));
        list["resources"][at]["storageVersionHash"].clone()
    };
    let v2 = hash("autoscaling", "v2", 0);
    assert_eq!(v2, hash("autoscaling", "v1", 0));
    assert_eq!(v2.as_str().map(str::len), Some(12), "eight bytes in base64");
    assert_ne!(v2, hash("batch", "v1", 0));
    assert_eq!(hash("authentication.k8s.io", "v1", 0), Value::Null);
    assert_eq!(hash("", "v1", 0), Value::Null, "bindings are not stored");
}
