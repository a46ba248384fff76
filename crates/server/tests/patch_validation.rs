//! Patches whose result is not an object of the kind.

mod client;

use client::{create, get, send};
use kubewright_server::Server;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

async fn server_with_map() -> Server {
    let server = Server::builder().start().await.expect("starts");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    create(&server, MAPS, map).await;
    server
}

/// The only cause of a refusal that is about the patch itself.
async fn refused(server: &Server, query: &str, kind: &str, patch: Value) -> String {
    let path = format!("{MAPS}/c{query}");
    let (code, answer) = send(server, "PATCH", &path, kind, &patch).await;
    assert_eq!(code, 422, "{patch}: {answer:#}");
    assert_eq!(answer["reason"], "Invalid", "{patch}");
    let details = &answer["details"];
    assert!(details.get("name").is_none(), "{details}");
    assert!(details.get("kind").is_none(), "{details}");
    let causes = details["causes"].as_array().expect("causes");
    assert_eq!(causes.len(), 1, "{details}");
    assert_eq!(causes[0]["field"], "patch");
    assert_eq!(causes[0]["reason"], "FieldValueInvalid");
    let cause = causes[0]["message"].as_str().expect("a message").to_owned();
    let message = format!(" \"\" is invalid: patch: {cause}");
    assert_eq!(answer["message"], message.as_str());
    cause
}

#[tokio::test]
async fn a_patch_that_gives_a_field_another_type_is_invalid() {
    let server = server_with_map().await;
    let labels = json!({"metadata": {"labels": "invalid"}});
    assert_eq!(
        refused(&server, "", STRATEGIC, labels.clone()).await,
        "Invalid value: \"map[metadata:map[labels:invalid]]\": cannot restore map from string"
    );
    let why = "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string";
    let merged = refused(&server, "", MERGE, labels).await;
    assert!(merged.ends_with(why), "{merged}");
    assert!(merged.starts_with("Invalid value: \"{"), "{merged}");
    assert!(merged.contains(r#"\"labels\":\"invalid\""#), "{merged}");
    let add = json!([{"op": "add", "path": "/metadata/labels", "value": "invalid"}]);
    let added = refused(&server, "", JSON_PATCH, add).await;
    assert!(added.ends_with(why), "{added}");
}

#[tokio::test]
async fn a_patch_that_makes_another_kind_is_invalid() {
    let server = server_with_map().await;
    let why = refused(&server, "", MERGE, json!({"kind": "Secret"})).await;
    assert!(
        why.ends_with("converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        "{why}"
    );
}

#[tokio::test]
async fn unknown_fields_of_a_patch_are_invalid_when_strict() {
    let server = server_with_map().await;
    let (strict, unknown) = ("?fieldValidation=Strict", json!({"unknown": 1}));
    assert_eq!(
        refused(&server, strict, STRATEGIC, unknown.clone()).await,
        "Invalid value: \"map[unknown:1]\": strict decoding error: unknown field \"unknown\""
    );
    let merged = refused(&server, strict, MERGE, unknown.clone()).await;
    let why = "strict decoding error: unknown field \"unknown\"";
    assert!(merged.ends_with(why), "{merged}");
    let path = format!("{MAPS}/c?fieldValidation=Strict");
    let mut map = get(&server, &format!("{MAPS}/c")).await.1;
    map["unknown"] = json!(1);
    let (code, answer) = send(&server, "PUT", &path, "application/json", &map).await;
    assert_eq!((code, &answer["reason"]), (400, &json!("BadRequest")));
}

#[tokio::test]
async fn a_patch_that_gives_a_custom_object_wrong_metadata_is_invalid() {
    let server = Server::builder().start().await.expect("starts");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object"}},
            }}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    create(&server, definitions, definition).await;
    let widgets = "/apis/ex.io/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}});
    create(&server, widgets, widget).await;
    for (query, patch) in [
        ("", json!({"metadata": {"labels": "invalid"}})),
        ("?fieldValidation=Strict", json!({"spec": {"unknown": 1}})),
    ] {
        let path = format!("{widgets}/a{query}");
        let (code, answer) = send(&server, "PATCH", &path, MERGE, &patch).await;
        assert_eq!(code, 422, "{answer:#}");
        assert_eq!(answer["details"]["causes"][0]["field"], "patch");
    }
}
