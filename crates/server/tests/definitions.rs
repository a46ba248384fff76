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

/// What version 1 and version 2 have: both a color, version 1 a `size`, version 2 a `shape` with a default.
fn two_versions(stored: &str) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let first = json!({ "color": text, "size": { "type": "integer", "default": 1 } });
    let second = json!({ "color": text, "shape": { "type": "string", "default": "round" } });
    let mut versions = vec![
        version("v1", stored == "v1", first),
        version("v2", stored == "v2", second),
    ];
    versions[0]["selectableFields"] = json!([{ "jsonPath": ".spec.size" }]);
    versions
}

#[tokio::test]
async fn fields_that_the_stored_version_does_not_have_are_not_stored() {
    let server = server_with(two_versions("v2")).await;
    let sent = widget("ex.io/v1", "a", json!({ "color": "red", "size": 5 }));
    let dry = create(&server, &format!("{WIDGETS_V1}?dryRun=All"), sent.clone()).await;
    assert_eq!(dry["spec"], json!({ "color": "red" }));
    let made = create(&server, WIDGETS_V1, sent).await;
    assert_eq!(made["apiVersion"], "ex.io/v1");
    assert_eq!(made["spec"], json!({ "color": "red" }));
    let (_, first) = get(&server, &format!("{WIDGETS_V1}/a")).await;
    assert_eq!(first["spec"], json!({ "color": "red" }));
    let (_, second) = get(&server, &format!("{WIDGETS_V2}/a")).await;
    assert_eq!(
        second["spec"],
        json!({ "color": "red", "shape": "round" }),
        "what is stored has the defaults of its version"
    );
}

#[tokio::test]
async fn a_stored_version_that_is_not_served_prunes_as_well() {
    let mut versions = two_versions("v2");
    versions[1]["served"] = json!(false);
    let server = server_with(versions).await;
    let sent = widget("ex.io/v1", "a", json!({ "color": "red", "size": 5 }));
    let made = create(&server, WIDGETS_V1, sent).await;
    assert_eq!(made["spec"], json!({ "color": "red" }));
}

#[tokio::test]
async fn objects_from_before_the_stored_version_moved_lose_nothing() {
    let server = server_with(two_versions("v1")).await;
    let sent = widget("ex.io/v1", "a", json!({ "color": "red", "size": 5 }));
    create(&server, WIDGETS_V1, sent).await;
    let moved = json!({ "spec": { "versions": two_versions("v2") } });
    patch(&server, &format!("{DEFINITIONS}/widgets.ex.io"), moved).await;
    let (_, first) = get(&server, &format!("{WIDGETS_V1}/a")).await;
    assert_eq!(first["spec"], json!({ "color": "red", "size": 5 }));
    let (_, second) = get(&server, &format!("{WIDGETS_V2}/a")).await;
    assert_eq!(second["spec"], json!({ "color": "red" }));
    let label = json!({ "metadata": { "labels": { "written": "again" } } });
    patch(&server, &format!("{WIDGETS_V1}/a"), label).await;
    let (_, first) = get(&server, &format!("{WIDGETS_V1}/a")).await;
    assert_eq!(first["spec"], json!({ "color": "red" }));
}

/// The names of the objects that a list gives.
async fn listed(server: &Server, path: &str) -> Vec<String> {
    let (status, list) = get(server, path).await;
    assert_eq!(status, 200, "{list:#}");
    let items = list["items"].as_array().expect("items").iter();
    let name = |item: &Value| {
        item["metadata"]["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    };
    items.map(name).collect()
}

#[tokio::test]
async fn field_selectors_mean_the_same_whichever_version_wrote_the_object() {
    let text = json!({ "type": "string" });
    let first = json!({ "color": text, "shape": text });
    let second = json!({ "color": text, "shape": text, "size": { "type": "integer" } });
    let mut versions = vec![version("v1", true, first), version("v2", false, second)];
    versions[1]["selectableFields"] = json!([{ "jsonPath": ".spec.shape" }]);
    let server = server_with(versions).await;
    for (name, shape) in [
        ("a", "round"),
        ("b", "flat"),
        ("c", "round"),
        ("d", "round"),
    ] {
        let (path, version) = match name {
            "a" | "b" => (WIDGETS_V1, "ex.io/v1"),
            _ => (WIDGETS_V2, "ex.io/v2"),
        };
        let sent = widget(version, name, json!({ "color": "red", "shape": shape }));
        create(&server, path, sent).await;
    }
    let round = format!("{WIDGETS_V2}?fieldSelector=spec.shape%3Dround");
    assert_eq!(listed(&server, &round).await, ["a", "c", "d"]);
    let (_, first) = get(&server, &format!("{round}&limit=2")).await;
    let token = first["metadata"]["continue"].as_str().expect("a next page");
    let next = format!("{round}&limit=2&continue={token}");
    assert_eq!(listed(&server, &next).await, ["d"]);
    let one = format!("{round},metadata.name%3Db");
    assert_eq!(listed(&server, &one).await, [""; 0]);
    let red = format!("{WIDGETS_V1}?fieldSelector=spec.color%3Dred");
    assert_eq!(listed(&server, &red).await, ["a", "b", "c", "d"]);
    assert_eq!(delete(&server, &round).await.0, 200);
    assert_eq!(listed(&server, WIDGETS_V2).await, ["b"]);
}

#[tokio::test]
async fn field_selectors_see_fields_that_became_selectable_later() {
    let text = json!({ "type": "string" });
    let both = json!({ "color": text, "shape": text });
    let server = server_with(vec![version("v1", true, both.clone())]).await;
    let sent = widget("ex.io/v1", "a", json!({ "shape": "round" }));
    create(&server, WIDGETS_V1, sent).await;
    let mut more = version("v1", true, both);
    more["selectableFields"] = json!([{ "jsonPath": ".spec.shape" }]);
    let change = json!({ "spec": { "versions": [more] } });
    patch(&server, &format!("{DEFINITIONS}/widgets.ex.io"), change).await;
    let round = format!("{WIDGETS_V1}?fieldSelector=spec.shape%3Dround");
    assert_eq!(listed(&server, &round).await, ["a"]);
}
