//! Every exchange recorded with a real kube-apiserver 1.35 is sent to our server, and the answers compared.
//!
//! What differs on purpose stands in [`DELIBERATE`], with the reason. Anything else that differs fails the test, and
//! so does an entry of that list that no longer differs.

mod golden;

use std::collections::BTreeSet;

use bytes::Bytes;
use golden::{Exchange, ManagedFields, Request, Rules, compare, kube_apiserver};
use http_body_util::{BodyExt, Full};
use kubewright_server::Server;
use serde_json::{Value, json};
use tower::ServiceExt;

/// Exchanges that are not replayed here, and why.
const ELSEWHERE: [(&str, &str); 7] = [
    ("SAR", "replayed with roles, in tests/access"),
    ("rules review", "replayed with roles, in tests/access"),
    (
        "impersonate forbidden",
        "replayed with roles, in tests/access",
    ),
    (
        "watchlist",
        "the recording server had the feature switched off",
    ),
    (
        "anon",
        "recorded with a client certificate besides the token",
    ),
    ("noauth", "recorded without its request"),
    ("bad token", "recorded without its request"),
];

/// Places that differ on purpose: the exchange (`*` for all), the place, and why.
const DELIBERATE: [(&str, &str, &str); 12] = [
    (
        "*",
        "/columnDefinitions/*/description",
        "descriptions are our own words, and built-in columns have none",
    ),
    (
        "CR many schema errors",
        "/message",
        "Go walks properties in random order, we walk them by name",
    ),
    (
        "CR many schema errors",
        "/details/causes/*/*",
        "Go walks properties in random order, we walk them by name",
    ),
    (
        "CR wrong group ver",
        "/http/warning",
        "the refusal says it all",
    ),
    ("version", "/minor", "another version"),
    ("version", "/emulationMinor", "another version"),
    ("version", "/minCompatibilityMinor", "another version"),
    ("version", "/gitVersion", "another version"),
    ("version", "/gitCommit", "another version"),
    ("version", "/goVersion", "not written in Go"),
    ("version", "/compiler", "not written in Go"),
    (
        "readyz verbose",
        "/",
        "other checks, because there are no other processes to wait for",
    ),
];

#[tokio::test(start_paused = true)]
async fn answers_are_those_of_a_real_server() {
    let server = Server::builder().start().await.expect("starts");
    prepare(&server).await;
    // The platform is wherever the test runs.
    let rules = Rules {
        ignored: &["/platform"],
        managed_fields: ManagedFields::Compared,
    };
    let mut report = Vec::new();
    let mut used = BTreeSet::new();
    for exchange in kube_apiserver() {
        if ELSEWHERE.iter().any(|(name, _)| *name == exchange.name) {
            continue;
        }
        let Some(request) = &exchange.request else {
            continue;
        };
        let request = &complete(&exchange.name, request);
        before(&server, &exchange).await;
        let (status, headers, body) = send(&server, request).await;
        for difference in compare(&exchange, status, &headers, &body, &rules) {
            let known = DELIBERATE.iter().position(|(name, place, _)| {
                (*name == "*" || *name == exchange.name)
                    && place_matches(place, &difference.pointer)
            });
            match known {
                Some(known) => drop(used.insert(known)),
                None => report.push(format!("{}: {difference}", exchange.name)),
            }
        }
    }
    let idle: Vec<_> = (0..DELIBERATE.len())
        .filter(|i| !used.contains(i))
        .map(|i| DELIBERATE[i])
        .collect();
    assert!(
        report.is_empty(),
        "{} differences:\n{}",
        report.len(),
        report.join("\n")
    );
    assert!(idle.is_empty(), "these no longer differ: {idle:?}");
}

/// `/a/*/b` matches any one step at the star.
fn place_matches(pattern: &str, place: &str) -> bool {
    let (pattern, place): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), place.split('/').collect());
    pattern.len() == place.len() && pattern.iter().zip(&place).all(|(a, b)| *a == "*" || a == b)
}

/// What the recording server had before the recording began.
async fn prepare(server: &Server) {
    let foos = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "foos.ex.io" },
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": { "plural": "foos", "kind": "Foo", "shortNames": ["fo"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "false": { "type": "integer" } } },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    });
    post(
        server,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldManager=kubectl-create",
        &foos,
    )
    .await;
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n1" } });
    post(
        server,
        "/api/v1/namespaces?fieldManager=kubectl-create",
        &namespace,
    )
    .await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "d2", "labels": { "app": "d2" } },
        "spec": { "selector": { "app": "d2" }, "ports": [{ "port": 80 }] },
    });
    post(
        server,
        "/api/v1/namespaces/default/services?fieldManager=kubectl-expose",
        &service,
    )
    .await;
}

/// What happened between two recordings.
async fn before(server: &Server, exchange: &Exchange) {
    if exchange.name.as_str() == "watch old rv" {
        let now = server.revision();
        server.compact(now).expect("it has been reached");
    }
}

/// The request with its whole body: two were too long for the recording.
fn complete(name: &str, request: &Request) -> Request {
    let body = match name {
        "bad crd" => definition(
            "x.y",
            json!({
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "properties": { "a": { "type": "string" } } },
                } } },
            }),
        ),
        "CRD create full" => definition("bars.ex.io", bars()),
        _ => return request.clone(),
    };
    Request {
        body: Some(body.to_string()),
        ..request.clone()
    }
}

fn definition(name: &str, version: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": { "plural": "bars", "kind": "Bar" },
            "versions": [version],
        },
    })
}

fn bars() -> Value {
    json!({
        "name": "v1", "served": true, "storage": true,
        "additionalPrinterColumns": [{ "name": "Num", "type": "integer", "jsonPath": ".spec.num" }],
        "subresources": {
            "status": {},
            "scale": { "specReplicasPath": ".spec.num", "statusReplicasPath": ".status.num" },
        },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": {
                "type": "object", "required": ["num"],
                "properties": {
                    "num": { "type": "integer", "minimum": 0 },
                    "name": { "type": "string", "maxLength": 3, "pattern": "^x" },
                    "mode": { "type": "string", "default": "a", "enum": ["a", "b"] },
                    "items": {
                        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                        "items": {
                            "type": "object", "required": ["k"],
                            "properties": { "k": { "type": "string" }, "v": { "type": "integer" } },
                        },
                    },
                },
                "x-kubernetes-validations": [
                    { "rule": "self.num < 10", "message": "too big" },
                    { "rule": "self.num >= oldSelf.num" },
                ],
            },
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        } } },
    })
}

async fn post(server: &Server, path: &str, body: &Value) {
    let request = Request {
        method: "POST".into(),
        path: path.into(),
        content_type: Some("application/json".into()),
        headers: Vec::new(),
        body: Some(body.to_string()),
    };
    let (status, _, answer) = send(server, &request).await;
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&answer));
}

async fn send(server: &Server, request: &Request) -> (u16, http::HeaderMap, Bytes) {
    let mut builder = http::Request::builder()
        .method(request.method.as_str())
        .uri(format!("https://localhost{}", request.path))
        .header("user-agent", "curl/8");
    if let Some(content_type) = &request.content_type {
        builder = builder.header("content-type", content_type);
    }
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    let body = Full::new(Bytes::from(request.body.clone().unwrap_or_default()));
    let request = builder.body(body).expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.expect("never fails").to_bytes();
    (parts.status.as_u16(), parts.headers, bytes)
}
