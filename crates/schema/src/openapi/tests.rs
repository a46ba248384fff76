//! What clients find in the documents: the shapes that kubectl and schema readers rely on.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::*;
use crate::catalog::{Scope, Subresource, Verb, builtin};
use crate::types::{Shape, Table};

fn builtins() -> Vec<Described<'static>> {
    let describe = |resource| Described {
        resource,
        source: Source::Table,
    };
    builtin().iter().map(describe).collect()
}

fn v3(group: &str, version: &str) -> Value {
    read(v3::document(Table::builtin(), group, version, &builtins()))
}

fn read(document: Vec<u8>) -> Value {
    serde_json::from_slice(&document).expect("documents are JSON")
}

fn foo() -> Resource {
    let subresource = |name: &str, group: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        verbs: vec![Verb::Get, Verb::Patch, Verb::Update],
    };
    Resource {
        group: "stable.ex.io".into(),
        version: "v1".into(),
        plural: "foos".into(),
        singular: "foo".into(),
        kind: "Foo".into(),
        list_kind: "FooList".into(),
        scope: Scope::Namespaced,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: Verb::ALL.to_vec(),
        subresources: vec![
            subresource("scale", "autoscaling", "Scale"),
            subresource("status", "stable.ex.io", "Foo"),
        ],
    }
}

fn foo_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "description": "What is wanted.",
                "required": ["port", "maybe"],
                "properties": {
                    "port": {"x-kubernetes-int-or-string": true},
                    "maybe": {"type": "string", "nullable": true},
                    "either": {"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": -1}]},
                    "template": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": true,
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                },
            },
        },
    })
}

fn custom_v3(resource: &Resource, schema: &Value) -> Value {
    let described = Described {
        resource,
        source: Source::Custom(schema),
    };
    let all = [builtins(), vec![described]].concat();
    read(v3::document(
        Table::builtin(),
        &resource.group,
        &resource.version,
        &all,
    ))
}

/// The PATCH operations of a kind, as kubectl looks for them.
fn patches<'a>(document: &'a Value, kind: &Value) -> Vec<&'a Value> {
    let paths = document["paths"].as_object().expect("there are paths");
    paths
        .values()
        .filter_map(|path| path.get("patch"))
        .filter(|patch| &patch["x-kubernetes-group-version-kind"] == kind)
        .collect()
}

fn has_parameter(operation: &Value, name: &str) -> bool {
    operation["parameters"]
        .as_array()
        .is_some_and(|all| all.iter().any(|p| p["name"] == name))
}

fn kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

/// Every `$ref` of a document leads somewhere.
fn check_references(document: &Value, prefix: &str, definitions: &Value) {
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        if let Some(Value::String(target)) = value.get("$ref") {
            let name = target.strip_prefix(prefix).expect("references are local");
            assert!(definitions.get(name).is_some(), "{target}");
        }
        match value {
            Value::Object(fields) => pending.extend(fields.values()),
            Value::Array(items) => pending.extend(items),
            _ => {}
        }
    }
}

#[test]
fn every_builtin_resource_has_its_kind_and_list_in_the_table() {
    let table = Table::builtin();
    let is_struct = |group: &str, version: &str, kind: &str| {
        let id = table.kind(group, version, kind);
        id.is_some_and(|id| matches!(table.get(id).shape, Shape::Struct(_)))
    };
    for r in builtin() {
        assert!(is_struct(&r.group, &r.version, &r.kind), "{}", r.kind);
        if r.allows(Verb::List) {
            assert!(
                is_struct(&r.group, &r.version, &r.list_kind),
                "{}",
                r.list_kind
            );
        }
        for sub in r
            .subresources
            .iter()
            .filter(|s| !s.kind.ends_with("Options"))
        {
            assert!(
                is_struct(&sub.group, &sub.version, &sub.kind),
                "{}",
                sub.kind
            );
        }
    }
}

#[test]
fn references_lead_to_definitions_in_every_document() {
    let mut seen = HashSet::new();
    for r in builtin() {
        if seen.insert((&r.group, &r.version)) {
            let document = v3(&r.group, &r.version);
            let schemas = &document["components"]["schemas"];
            check_references(&document, "#/components/schemas/", schemas);
        }
    }
    let document = read(v2::document(Table::builtin(), &builtins()));
    check_references(&document, "#/definitions/", &document["definitions"]);
    let document = custom_v3(&foo(), &foo_schema());
    let schemas = &document["components"]["schemas"];
    check_references(&document, "#/components/schemas/", schemas);
}

#[test]
fn a_document_introduces_itself() {
    let document = v3("apps", "v1");
    assert_eq!(document["openapi"], "3.0.0");
    assert_eq!(
        document["info"],
        json!({"title": "Kubernetes", "version": "v1.37.0"})
    );
    assert_eq!(
        document["components"]["securitySchemes"]["BearerToken"]["type"],
        "apiKey"
    );
}

#[test]
fn apply_finds_field_validation_and_strategic_merge_on_builtin_kinds() {
    for (group, version, name) in [
        ("", "v1", "Namespace"),
        ("", "v1", "Pod"),
        ("apps", "v1", "Deployment"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ] {
        let document = v3(group, version);
        let found = patches(&document, &kind(group, version, name));
        assert!(!found.is_empty(), "{name}");
        for patch in found {
            for parameter in ["dryRun", "fieldManager", "fieldValidation", "force"] {
                assert!(has_parameter(patch, parameter), "{name} {parameter}");
            }
            let content = &patch["requestBody"]["content"];
            for media_type in [
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ] {
                assert!(content.get(media_type).is_some(), "{name} {media_type}");
            }
        }
    }
}

#[test]
fn apply_finds_field_validation_but_no_strategic_merge_on_custom_kinds() {
    let document = custom_v3(&foo(), &foo_schema());
    let found = patches(&document, &kind("stable.ex.io", "v1", "Foo"));
    assert_eq!(found.len(), 3, "the object, its scale and its status");
    for patch in found {
        assert!(has_parameter(patch, "fieldValidation"));
        let content = patch["requestBody"]["content"].as_object();
        let types: Vec<_> = content.expect("a body").keys().collect();
        assert_eq!(
            types,
            [
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ]
        );
    }
}

#[test]
fn operations_are_named_as_on_the_real_server() {
    let cases = [
        ("", "/api/v1/", "get", "getCoreV1APIResources", ""),
        (
            "",
            "/api/v1/pods",
            "get",
            "listCoreV1PodForAllNamespaces",
            "list",
        ),
        (
            "",
            "/api/v1/namespaces/{name}",
            "delete",
            "deleteCoreV1Namespace",
            "delete",
        ),
        (
            "",
            "/api/v1/namespaces/{name}/finalize",
            "put",
            "replaceCoreV1NamespaceFinalize",
            "put",
        ),
        (
            "",
            "/api/v1/namespaces/{namespace}/pods/{name}/exec",
            "post",
            "connectCoreV1PostNamespacedPodExec",
            "connect",
        ),
        (
            "",
            "/api/v1/nodes/{name}/proxy/{path}",
            "head",
            "connectCoreV1HeadNodeProxyWithPath",
            "connect",
        ),
        (
            "",
            "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            "post",
            "createCoreV1NamespacedServiceAccountToken",
            "post",
        ),
        (
            "",
            "/api/v1/watch/namespaces/{namespace}/pods/{name}",
            "get",
            "watchCoreV1NamespacedPod",
            "watch",
        ),
        (
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "get",
            "listAppsV1NamespacedDeployment",
            "list",
        ),
        (
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/deployments",
            "delete",
            "deleteAppsV1CollectionNamespacedDeployment",
            "deletecollection",
        ),
        (
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            "patch",
            "patchAppsV1NamespacedDeploymentScale",
            "patch",
        ),
        (
            "rbac.authorization.k8s.io",
            "/apis/rbac.authorization.k8s.io/v1/watch/clusterroles",
            "get",
            "watchRbacAuthorizationV1ClusterRoleList",
            "watchlist",
        ),
    ];
    for (group, path, method, id, action) in cases {
        let document = v3(group, "v1");
        let operation = &document["paths"][path][method];
        assert_eq!(operation["operationId"], id);
        let found = operation["x-kubernetes-action"].as_str();
        assert_eq!(found.unwrap_or_default(), action, "{id}");
    }
}

#[test]
fn operation_names_are_unique() {
    let document = read(v2::document(Table::builtin(), &builtins()));
    let mut seen = HashSet::new();
    for path in document["paths"].as_object().expect("paths").values() {
        for operation in path.as_object().expect("operations").values() {
            if let Some(id) = operation["operationId"].as_str() {
                assert!(seen.insert(id.to_owned()), "{id}");
            }
        }
    }
    assert!(seen.len() > 800, "{}", seen.len());
}

#[test]
fn parameters_of_all_operations_stand_at_the_path() {
    let document = v3("apps", "v1");
    let names = |parameters: &Value| -> Vec<String> {
        let all = parameters.as_array().cloned().unwrap_or_default();
        all.iter()
            .filter_map(|p| p["name"].as_str().map(String::from))
            .collect()
    };
    let path = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    assert_eq!(names(&path["parameters"]), ["name", "namespace", "pretty"]);
    assert_eq!(names(&path["get"]["parameters"]), [""; 0]);
    assert_eq!(
        names(&path["put"]["parameters"]),
        ["dryRun", "fieldManager", "fieldValidation"]
    );
    let list = &document["paths"]["/apis/apps/v1/deployments"];
    assert_eq!(
        names(&list["parameters"]),
        [
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "pretty",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ]
    );
}

#[test]
fn deleting_answers_a_status_or_the_object() {
    let document = v3("", "v1");
    let answer = |path: &str| {
        let content = &document["paths"][path]["delete"]["responses"]["200"]["content"];
        content["application/json"]["schema"]["$ref"].clone()
    };
    assert_eq!(
        answer("/api/v1/namespaces/{namespace}/pods/{name}"),
        "#/components/schemas/io.k8s.api.core.v1.Pod"
    );
    assert_eq!(
        answer("/api/v1/namespaces/{namespace}/configmaps/{name}"),
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.Status"
    );
}

#[test]
fn builtin_schemas_carry_what_merging_needs() {
    let document = v3("apps", "v1");
    let schemas = &document["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(
        deployment["x-kubernetes-group-version-kind"],
        json!([kind("apps", "v1", "Deployment")])
    );
    assert_eq!(
        deployment["properties"]["spec"],
        json!({
            "description": "Specification of the desired behavior of the Deployment.",
            "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"}],
            "default": {},
        })
    );
    let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"];
    assert_eq!(spec["required"], json!(["selector", "template"]));
    assert_eq!(
        undescribed(&spec["properties"]["replicas"]),
        json!({"type": "integer", "format": "int32"})
    );
    assert_eq!(
        spec["properties"]["strategy"]["x-kubernetes-patch-strategy"],
        "retainKeys"
    );
    assert_eq!(
        undescribed(&schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]),
        json!({
            "type": "array",
            "items": {
                "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}],
                "default": {},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
        })
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"]["x-kubernetes-map-type"],
        "atomic"
    );
    let status = &schemas["io.k8s.api.apps.v1.DaemonSetStatus"];
    assert_eq!(status["properties"]["desiredNumberScheduled"]["default"], 0);
    let container = &schemas["io.k8s.api.core.v1.Container"];
    assert_eq!(container["properties"]["name"]["default"], "");
    assert_eq!(
        container["properties"]["args"]["items"],
        json!({"type": "string", "default": ""})
    );
}

/// A schema without its description.
fn undescribed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let removed = schema.as_object_mut().and_then(|s| s.remove("description"));
    assert!(removed.is_some(), "{schema}");
    schema
}

#[test]
fn shared_types_name_the_kinds_of_their_document_only() {
    let document = v3("apps", "v1");
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"],
        json!([
            kind("", "v1", "DeleteOptions"),
            kind("apps", "v1", "DeleteOptions")
        ])
    );
    assert_eq!(
        schemas["io.k8s.api.autoscaling.v1.Scale"]["x-kubernetes-group-version-kind"],
        json!([kind("autoscaling", "v1", "Scale")])
    );
}

#[test]
fn scalars_are_written_in_each_dialect() {
    let quantity = "io.k8s.apimachinery.pkg.api.resource.Quantity";
    let int_or_string = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
    let three = v3("apps", "v1");
    let three = &three["components"]["schemas"];
    assert_eq!(
        three[quantity],
        json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
    );
    assert_eq!(
        three[int_or_string],
        json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
    );
    let two = read(v2::document(Table::builtin(), &builtins()));
    assert_eq!(two["definitions"][quantity], json!({"type": "string"}));
    assert_eq!(
        two["definitions"][int_or_string],
        json!({"type": "string", "format": "int-or-string"})
    );
}

#[test]
fn custom_kinds_become_whole_objects() {
    let document = custom_v3(&foo(), &foo_schema());
    let schemas = &document["components"]["schemas"];
    let object = &schemas["io.ex.stable.v1.Foo"];
    assert_eq!(
        object["x-kubernetes-group-version-kind"],
        json!([kind("stable.ex.io", "v1", "Foo")])
    );
    let metadata = json!({"allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]});
    assert_eq!(undescribed(&object["properties"]["metadata"]), metadata);
    let version = &object["properties"]["apiVersion"];
    assert_eq!(version["type"], "string");
    let text = version["description"].as_str().expect("a description");
    assert!(
        text.starts_with("APIVersion defines the versioned schema"),
        "{text}"
    );
    let spec = &object["properties"]["spec"];
    assert_eq!(spec["description"], "What is wanted.");
    assert_eq!(
        spec["properties"]["port"]["anyOf"],
        json!([{"type": "integer"}, {"type": "string"}])
    );
    let template = &spec["properties"]["template"];
    assert_eq!(undescribed(&template["properties"]["metadata"]), metadata);
    assert_eq!(template["required"], json!(["apiVersion", "kind"]));

    let list = &schemas["io.ex.stable.v1.FooList"];
    assert_eq!(
        list["properties"]["items"]["items"],
        json!({"$ref": "#/components/schemas/io.ex.stable.v1.Foo"})
    );
    assert_eq!(list["required"], json!(["items"]));
    assert_eq!(
        list["x-kubernetes-group-version-kind"],
        json!([kind("stable.ex.io", "v1", "FooList")])
    );
}

#[test]
fn custom_schemas_lose_what_version_2_cannot_say() {
    let (resource, schema) = (foo(), foo_schema());
    let described = Described {
        resource: &resource,
        source: Source::Custom(&schema),
    };
    let document = read(v2::document(Table::builtin(), &[described]));
    let object = &document["definitions"]["io.ex.stable.v1.Foo"];
    assert_eq!(
        object["properties"]["spec"],
        json!({
            "type": "object",
            "description": "What is wanted.",
            "required": ["port"],
            "properties": {
                "port": {"x-kubernetes-int-or-string": true},
                "maybe": {},
                "either": {"type": "integer"},
                "template": {
                    "x-kubernetes-embedded-resource": true,
                    "x-kubernetes-preserve-unknown-fields": true,
                },
            },
        })
    );
    assert_eq!(
        object["properties"]["metadata"],
        json!({"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"})
    );
}

#[test]
fn open_custom_kinds_list_no_properties_in_version_2() {
    let resource = foo();
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let described = Described {
        resource: &resource,
        source: Source::Custom(&schema),
    };
    let document = read(v2::document(Table::builtin(), &[described]));
    assert_eq!(
        document["definitions"]["io.ex.stable.v1.Foo"],
        json!({
            "type": "object",
            "x-kubernetes-group-version-kind": [kind("stable.ex.io", "v1", "Foo")],
        })
    );
}

#[test]
fn version_2_writes_bodies_as_parameters() {
    let document = read(v2::document(Table::builtin(), &builtins()));
    assert_eq!(document["swagger"], "2.0");
    let post = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"];
    let body = post["parameters"].as_array().and_then(|all| all.last());
    assert_eq!(
        body,
        Some(&json!({
            "name": "body",
            "in": "body",
            "required": true,
            "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
        }))
    );
    assert_eq!(
        post["responses"]["201"],
        json!({
            "description": "Created",
            "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
        })
    );
    assert_eq!(post["produces"][0], "application/json");
}

#[test]
fn the_index_gives_each_document_an_address_with_its_hash() {
    let core = v3::path("", "v1");
    let apps = v3::path("apps", "v1");
    assert_eq!(
        read(v3::index([(core, "AB"), (apps, "CD")])),
        json!({"paths": {
            "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=AB"},
            "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=CD"},
        }})
    );
}

#[test]
fn a_deep_schema_is_published_whole() {
    let nested = |levels: usize| {
        let leaf = json!({"x-kubernetes-int-or-string": true});
        (0..levels).fold(
            leaf,
            |schema, _| json!({"type": "object", "properties": {"next": schema}}),
        )
    };
    for (levels, completed) in [(50, true), (400, false)] {
        let (_, mut schema) = custom::object(&foo(), &nested(levels), Dialect::V3);
        for _ in 0..levels {
            schema = schema["properties"]["next"].take();
        }
        assert_eq!(schema["x-kubernetes-int-or-string"], true);
        assert_eq!(schema.get("anyOf").is_some(), completed, "{levels}");
    }
}
