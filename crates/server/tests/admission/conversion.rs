//! Conversion webhooks: reads, lists, watches and writes at versions that differ in shape.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::Server;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::hooks::Webhook;
use crate::server::{create, get, patch, post, send, server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/ex.io/v1/namespaces/default/crons";
const V2: &str = "/apis/ex.io/v2/namespaces/default/crons";

/// Version 1 has `spec.schedule`, version 2 has `spec.minute` and `spec.hour`.
fn convert(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = json!(to);
    let spec = &object["spec"];
    object["spec"] = match to {
        "ex.io/v1" => {
            let part = |name: &str| spec[name].as_str().unwrap_or("*").to_owned();
            json!({"schedule": format!("{} {}", part("minute"), part("hour"))})
        }
        _ => {
            let schedule = spec["schedule"].as_str().unwrap_or("* *");
            let (minute, hour) = schedule.split_once(' ').unwrap_or((schedule, "*"));
            json!({"minute": minute, "hour": hour})
        }
    };
    object
}

async fn converter() -> Webhook {
    Webhook::raw(|review| {
        let request = &review["request"];
        let to = request["desiredAPIVersion"].as_str().unwrap_or("");
        let objects = request["objects"].as_array().cloned().unwrap_or_default();
        let converted: Vec<Value> = objects.iter().map(|object| convert(object, to)).collect();
        let answer = json!({
            "apiVersion": review["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}},
        });
        (200, answer.to_string())
    })
    .await
}

fn definition(hook: &Webhook) -> Value {
    let text = json!({"type": "string"});
    let version = |name: &str, storage: bool, spec: Value| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec},
            }}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crons.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "crons", "kind": "Cron"},
            "versions": [
                version("v1", true, json!({"schedule": text})),
                version("v2", false, json!({"minute": text, "hour": text})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": hook.client_config(),
            }},
        },
    })
}

fn cron(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("ex.io/{version}"), "kind": "Cron", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn objects_are_stored_at_one_version_and_read_at_both() {
    let (server, hook) = (server().await, converter().await);
    create(&server, DEFINITIONS, definition(&hook)).await;
    create(&server, V1, cron("v1", "a", json!({"schedule": "5 4"}))).await;
    assert_eq!(
        hook.asked().len(),
        0,
        "the stored version needs no conversion"
    );
    let made = create(
        &server,
        V2,
        cron("v2", "b", json!({"minute": "1", "hour": "2"})),
    )
    .await;
    assert_eq!(made["spec"], json!({"minute": "1", "hour": "2"}));
    let (_, a) = get(&server, &format!("{V2}/a")).await;
    assert_eq!(a["apiVersion"], "ex.io/v2");
    assert_eq!(a["spec"], json!({"minute": "5", "hour": "4"}));
    let (_, b) = get(&server, &format!("{V1}/b")).await;
    assert_eq!(b["spec"], json!({"schedule": "1 2"}));
    let changed = patch(&server, &format!("{V2}/a"), json!({"spec": {"hour": "9"}})).await;
    assert_eq!(changed["spec"], json!({"minute": "5", "hour": "9"}));
    let (_, a) = get(&server, &format!("{V1}/a")).await;
    assert_eq!(a["spec"], json!({"schedule": "5 9"}));
    let asked = hook.asked().len();
    let (_, list) = get(&server, V2).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["items"][1]["spec"]["minute"], "1");
    assert_eq!(hook.asked().len(), asked + 1, "a list is converted at once");
}

#[tokio::test]
async fn a_watch_shows_the_version_that_is_watched() {
    let (server, hook) = (server().await, converter().await);
    create(&server, DEFINITIONS, definition(&hook)).await;
    create(&server, V1, cron("v1", "a", json!({"schedule": "5 4"}))).await;
    let mut events = watch(&server, &format!("{V2}?watch=true")).await;
    assert_eq!(next(&mut events).await["object"]["spec"]["hour"], "4");
    patch(
        &server,
        &format!("{V1}/a"),
        json!({"spec": {"schedule": "5 6"}}),
    )
    .await;
    let event = next(&mut events).await;
    assert_eq!(event["type"], "MODIFIED");
    assert_eq!(event["object"]["apiVersion"], "ex.io/v2");
    assert_eq!(event["object"]["spec"]["hour"], "6");
}

type Body = kubewright_server::ResponseBody;

async fn watch(server: &Server, path: &str) -> Body {
    let request = http::Request::builder().uri(format!("https://localhost{path}"));
    let request = request.body(Full::new(Bytes::new())).expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    answer.into_body()
}

async fn next(body: &mut Body) -> Value {
    let frame = tokio::time::timeout(Duration::from_secs(5), body.frame());
    let frame = frame
        .await
        .expect("in time")
        .expect("goes on")
        .expect("never fails");
    let line = frame.into_data().expect("data");
    serde_json::from_slice(&line).expect("an event")
}

#[tokio::test]
async fn the_stored_version_can_move() {
    let (server, hook) = (server().await, converter().await);
    create(&server, DEFINITIONS, definition(&hook)).await;
    create(&server, V1, cron("v1", "a", json!({"schedule": "5 4"}))).await;
    let (_, mut moved) = get(&server, &format!("{DEFINITIONS}/crons.ex.io")).await;
    moved["spec"]["versions"][0]["storage"] = json!(false);
    moved["spec"]["versions"][1]["storage"] = json!(true);
    let path = format!("{DEFINITIONS}/crons.ex.io");
    let (status, moved) = send(&server, "PUT", &path, "application/json", &moved).await;
    assert_eq!(status, 200, "{moved:#}");
    assert_eq!(moved["status"]["storedVersions"], json!(["v1", "v2"]));
    let (_, a) = get(&server, &format!("{V2}/a")).await;
    assert_eq!(a["spec"], json!({"minute": "5", "hour": "4"}));
    create(&server, V1, cron("v1", "b", json!({"schedule": "1 2"}))).await;
    let asked = hook.asked().len();
    let (_, b) = get(&server, &format!("{V2}/b")).await;
    assert_eq!(b["spec"], json!({"minute": "1", "hour": "2"}));
    assert_eq!(hook.asked().len(), asked, "it is stored at the new version");
}

#[tokio::test]
async fn a_conversion_that_fails_is_reported() {
    let server = server().await;
    let hook = Webhook::raw(|review| {
        let answer = json!({
            "apiVersion": review["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": review["request"]["uid"], "result": {"status": "Failed", "message": "cannot"}},
        });
        (200, answer.to_string())
    })
    .await;
    create(&server, DEFINITIONS, definition(&hook)).await;
    create(&server, V1, cron("v1", "a", json!({"schedule": "5 4"}))).await;
    let (status, answer) = get(&server, &format!("{V2}/a")).await;
    assert_eq!(status, 500);
    assert_eq!(
        answer["message"],
        "conversion webhook for ex.io/v1, Kind=Cron failed: cannot"
    );
    let (status, _) = post(&server, V2, cron("v2", "b", json!({}))).await;
    assert_eq!(status, 500);
    let (_, list) = get(&server, V1).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn webhooks_see_the_version_they_asked_for() {
    let (server, hook) = (server().await, converter().await);
    create(&server, DEFINITIONS, definition(&hook)).await;
    let admission = Webhook::admission(|request| {
        let hour = request["object"]["spec"]["hour"].as_str().unwrap_or("");
        match hour {
            "4" => {
                crate::hooks::patch(json!([{"op": "replace", "path": "/spec/hour", "value": "5"}]))
            }
            _ => json!({"allowed": true}),
        }
    })
    .await;
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["ex.io"], "apiVersions": ["v2"], "resources": ["crons"]}]);
    let webhook = json!({"clientConfig": admission.client_config(), "rules": rules});
    let configuration = crate::hooks::configuration("MutatingWebhookConfiguration", "w", webhook);
    create(&server, crate::server::MUTATING, configuration).await;
    let made = create(&server, V1, cron("v1", "a", json!({"schedule": "3 4"}))).await;
    assert_eq!(made["apiVersion"], "ex.io/v1");
    assert_eq!(made["spec"], json!({"schedule": "3 5"}));
    let request = &admission.asked()[0]["request"];
    assert_eq!(request["kind"]["version"], "v2");
    assert_eq!(request["requestKind"]["version"], "v1");
}

#[tokio::test]
async fn what_a_webhook_makes_for_the_store_is_pruned() {
    let server = server().await;
    let hook = Webhook::raw(|review| {
        let request = &review["request"];
        let to = request["desiredAPIVersion"].as_str().unwrap_or("");
        let mut object = convert(&request["objects"][0], to);
        object["spec"]["unknown"] = json!("field");
        let answer = json!({
            "apiVersion": review["apiVersion"], "kind": "ConversionReview",
            "response": {"uid": request["uid"], "convertedObjects": [object], "result": {"status": "Success"}},
        });
        (200, answer.to_string())
    })
    .await;
    create(&server, DEFINITIONS, definition(&hook)).await;
    let sent = cron("v2", "a", json!({"minute": "1", "hour": "2"}));
    let made = create(&server, V2, sent).await;
    assert_eq!(made["spec"], json!({"minute": "1", "hour": "2"}));
    let (_, stored) = get(&server, &format!("{V1}/a")).await;
    assert_eq!(stored["spec"], json!({"schedule": "1 2"}));
}

#[tokio::test]
async fn field_selectors_compare_with_what_a_webhook_makes() {
    let (server, hook) = (server().await, converter().await);
    let mut definition = definition(&hook);
    definition["spec"]["versions"][1]["selectableFields"] = json!([{"jsonPath": ".spec.hour"}]);
    create(&server, DEFINITIONS, definition).await;
    create(&server, V1, cron("v1", "a", json!({"schedule": "5 4"}))).await;
    let sent = cron("v2", "b", json!({"minute": "1", "hour": "4"}));
    create(&server, V2, sent).await;
    create(&server, V1, cron("v1", "c", json!({"schedule": "5 7"}))).await;
    let four = format!("{V2}?fieldSelector=spec.hour%3D4");
    let (_, list) = get(&server, &four).await;
    let names = list["items"].as_array().expect("items").iter();
    let names: Vec<&Value> = names.map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let mut events = watch(&server, &format!("{four}&watch=true")).await;
    for name in ["a", "b"] {
        let event = next(&mut events).await;
        assert_eq!(event["type"], "ADDED");
        assert_eq!(event["object"]["metadata"]["name"], name);
    }
    let schedule = |text: &str| json!({"spec": {"schedule": text}});
    patch(&server, &format!("{V1}/c"), schedule("6 7")).await;
    patch(&server, &format!("{V1}/c"), schedule("6 4")).await;
    let event = next(&mut events).await;
    assert_eq!(event["type"], "ADDED", "it matches now: {event:#}");
    assert_eq!(event["object"]["spec"]["minute"], "6");
    patch(&server, &format!("{V1}/a"), schedule("5 9")).await;
    let event = next(&mut events).await;
    assert_eq!(
        event["type"], "DELETED",
        "it does not match any more: {event:#}"
    );
    assert_eq!(event["object"]["metadata"]["name"], "a");
}
