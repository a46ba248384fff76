//! Custom resources from their definition to their end.

mod client;

use client::{create, delete, get, patch, send};
use kubewright_server::Server;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS_V1: &str = "/apis/ex.io/v1/namespaces/default/widgets";
const WIDGETS_V2: &str = "/apis/ex.io/v2/namespaces/default/widgets";

fn version(name: &str, storage: bool, spec: Value) -> Value {
    json!({
        "name": name, "served": true, "storage": storage, "subresources": { "status": {} },
        "selectableFields": [{ "jsonPath": ".spec.color" }],
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "properties": spec },
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } } },
    })
}

fn definition(versions: Vec<Value>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.ex.io" },
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "versions": versions,
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wg"], "categories": ["all"] },
        },
    })
}

fn color() -> Value {
    json!({ "color": { "type": "string" } })
}

fn widget(api_version: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": api_version, "kind": "Widget", "metadata": { "name": name }, "spec": spec })
}

async fn server_with(versions: Vec<Value>) -> Server {
    let server = Server::builder().start().await.expect("starts");
    create(&server, DEFINITIONS, definition(versions)).await;
    server
}

#[tokio::test]
async fn resource_is_served_as_soon_as_its_definition_is_answered() {
    let server = server_with(vec![version("v1", true, color())]).await;
    create(
        &server,
        WIDGETS_V1,
        widget("ex.io/v1", "a", json!({ "color": "red" })),
    )
    .await;
    let (_, resources) = get(&server, "/apis/ex.io/v1").await;
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wg"]));
    let (_, stored) = get(&server, &format!("{DEFINITIONS}/widgets.ex.io")).await;
    let conditions: Vec<_> = stored["status"]["conditions"]
        .as_array()
        .expect("conditions")
        .clone();
    assert!(
        conditions.iter().all(|c| c["status"] == "True"),
        "{conditions:?}"
    );
}

#[tokio::test]
async fn versions_share_objects_and_storage_can_move() {
    let server = server_with(vec![
        version("v1", true, color()),
        version("v2", false, color()),
    ])
    .await;
    create(
        &server,
        WIDGETS_V1,
        widget("ex.io/v1", "a", json!({ "color": "red" })),
    )
    .await;
    let (_, seen) = get(&server, &format!("{WIDGETS_V2}/a")).await;
    assert_eq!(seen["apiVersion"], "ex.io/v2");
    let moved = json!({ "spec": { "versions": [version("v1", false, color()), version("v2", true, color())] } });
    let stored = patch(&server, &format!("{DEFINITIONS}/widgets.ex.io"), moved).await;
    assert_eq!(stored["status"]["storedVersions"], json!(["v1", "v2"]));
    for (path, api_version) in [(WIDGETS_V1, "ex.io/v1"), (WIDGETS_V2, "ex.io/v2")] {
        let (_, list) = get(&server, path).await;
        assert_eq!(list["items"][0]["apiVersion"], api_version);
    }
    let (_, updated) = get(&server, &format!("{WIDGETS_V2}/a")).await;
    let (status, _) = send(
        &server,
        "PUT",
        &format!("{WIDGETS_V2}/a"),
        "application/json",
        &updated,
    )
    .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn defaults_that_come_later_show_in_older_objects() {
    let server = server_with(vec![version("v1", true, color())]).await;
    create(
        &server,
        WIDGETS_V1,
        widget("ex.io/v1", "a", json!({ "color": "red" })),
    )
    .await;
    let schema =
        json!({ "color": { "type": "string" }, "size": { "type": "integer", "default": 3 } });
    let change = json!({ "spec": { "versions": [version("v1", true, schema)] } });
    patch(&server, &format!("{DEFINITIONS}/widgets.ex.io"), change).await;
    let (_, list) = get(&server, WIDGETS_V1).await;
    assert_eq!(
        list["items"][0]["spec"],
        json!({ "color": "red", "size": 3 })
    );
}

#[tokio::test]
async fn field_selectors_see_selectable_fields() {
    let server = server_with(vec![version("v1", true, color())]).await;
    for (name, color) in [("a", "red"), ("b", "blue")] {
        create(
            &server,
            WIDGETS_V1,
            widget("ex.io/v1", name, json!({ "color": color })),
        )
        .await;
    }
    let (_, list) = get(
        &server,
        &format!("{WIDGETS_V1}?fieldSelector=spec.color%3Dblue"),
    )
    .await;
    let names: Vec<_> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|i| &i["metadata"]["name"])
        .collect();
    assert_eq!(names, ["b"]);
    let (status, _) = get(
        &server,
        &format!("{WIDGETS_V1}?fieldSelector=spec.size%3D1"),
    )
    .await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn definition_goes_when_its_last_object_is_gone() {
    let server = server_with(vec![version("v1", true, color())]).await;
    create(&server, WIDGETS_V1, widget("ex.io/v1", "free", json!({}))).await;
    let mut held = widget("ex.io/v1", "held", json!({}));
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    create(&server, WIDGETS_V1, held).await;

    let path = format!("{DEFINITIONS}/widgets.ex.io");
    let (status, _) = delete(&server, &path).await;
    assert_eq!(status, 200);
    let (_, going) = get(&server, &path).await;
    assert_eq!(
        going["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    assert_eq!(get(&server, &format!("{WIDGETS_V1}/free")).await.0, 404);
    let refused = send(
        &server,
        "POST",
        WIDGETS_V1,
        "application/json",
        &widget("ex.io/v1", "late", json!({})),
    )
    .await;
    assert_eq!(refused.0, 403, "nothing new while it goes");

    patch(
        &server,
        &format!("{WIDGETS_V1}/held"),
        json!({ "metadata": { "finalizers": null } }),
    )
    .await;
    assert_eq!(get(&server, &path).await.0, 404);
    assert_eq!(get(&server, WIDGETS_V1).await.0, 404);
}

#[tokio::test]
async fn nothing_but_reads_crosses_namespaces() {
    let server = server_with(vec![version("v1", true, color())]).await;
    let all = "/apis/ex.io/v1/widgets";
    assert_eq!(get(&server, all).await.0, 200);
    for (method, path, expected) in [
        ("DELETE", all, 404),
        ("POST", all, 404),
        ("PUT", all, 404),
        ("DELETE", "/api/v1/configmaps", 405),
        ("POST", "/api/v1/configmaps", 405),
    ] {
        let object = widget("ex.io/v1", "a", json!({}));
        let (code, answer) = send(&server, method, path, "application/json", &object).await;
        assert_eq!(code, expected, "{method} {path}: {answer:#}");
    }
}

#[tokio::test]
async fn names_that_are_taken_are_not_accepted() {
    let server = server_with(vec![version("v1", true, color())]).await;
    let mut rival = definition(vec![version("v1", true, color())]);
    rival["metadata"]["name"] = json!("gadgets.ex.io");
    rival["spec"]["names"] = json!({ "plural": "gadgets", "kind": "Widget" });
    create(&server, DEFINITIONS, rival).await;
    let (_, stored) = get(&server, &format!("{DEFINITIONS}/gadgets.ex.io")).await;
    let condition = &stored["status"]["conditions"][0];
    assert_eq!(condition["reason"], "ListKindConflict", "{stored:#}");
    assert_eq!(
        get(&server, "/apis/ex.io/v1/namespaces/default/gadgets")
            .await
            .0,
        404
    );
}
