//! The file reads as it was written, and the comparison sees what matters.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::*;

fn headers(pairs: &[(String, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name: HeaderName = name.parse().expect("a header name");
        headers.append(name, HeaderValue::from_str(value).expect("a header value"));
    }
    headers
}

fn bytes(body: &Body) -> Vec<u8> {
    match body {
        Body::Empty => Vec::new(),
        Body::Json(document) => document.to_string().into_bytes(),
        Body::Lines(lines) => {
            let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
            lines.join("\n").into_bytes()
        }
        Body::Text(text) => text.clone().into_bytes(),
    }
}

/// The differences between two documents, as lines.
fn differences(expected: Value, actual: Value, rules: &Rules<'_>) -> Vec<String> {
    let expected = Exchange {
        name: "test".to_owned(),
        request: None,
        status: 200,
        headers: Vec::new(),
        response: Body::Json(expected),
    };
    compare(
        &expected,
        200,
        &HeaderMap::new(),
        actual.to_string().as_bytes(),
        rules,
    )
    .iter()
    .map(Difference::to_string)
    .collect()
}

#[track_caller]
fn check(expected: Value, actual: Value, expect: &[&str]) {
    assert_eq!(differences(expected, actual, &Rules::default()), expect);
}

#[test]
fn whole_file_is_understood() {
    let exchanges = kube_apiserver();
    assert_eq!(exchanges.len(), 99);
    let without_request: Vec<&str> = exchanges
        .iter()
        .filter(|exchange| exchange.request.is_none())
        .map(|exchange| exchange.name.as_str())
        .collect();
    assert_eq!(without_request, ["noauth", "bad token"]);
    for exchange in &exchanges {
        let json = exchange
            .headers
            .iter()
            .any(|(name, value)| name == "content-type" && value == "application/json");
        let text = matches!(exchange.response, Body::Text(_));
        assert!(!(json && text), "{} is not JSON", exchange.name);
    }
}

#[test]
fn requests_keep_headers_and_bodies() {
    let exchanges = kube_apiserver();
    let request = |name| find(&exchanges, name).request.clone().expect("a request");
    assert_eq!(
        request("ssa force"),
        Request {
            method: "PATCH".to_owned(),
            path: "/api/v1/namespaces/default/configmaps/gc1?fieldManager=m2&force=true".to_owned(),
            content_type: Some("application/apply-patch+yaml".to_owned()),
            headers: Vec::new(),
            body: Some(
                r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gc1"},"data":{"a":"9"}}"#
                    .to_owned()
            ),
        }
    );
    let accept = "application/json;as=Table;g=meta.k8s.io;v=v1".to_owned();
    assert_eq!(request("table").headers, [("accept".to_owned(), accept)]);
}

#[test]
fn answers_keep_status_headers_and_bodies() {
    let exchanges = kube_apiserver();
    let warned = find(&exchanges, "warn unknown");
    assert_eq!(warned.status, 201);
    let warnings = warned.headers.iter().filter(|(name, _)| name == "warning");
    assert_eq!(warnings.count(), 3);
    assert!(
        matches!(&find(&exchanges, "unknown path").response, Body::Text(text) if text == "404 page not found")
    );
    assert!(
        matches!(&find(&exchanges, "table watch").response, Body::Lines(events) if events.len() == 3)
    );
    assert_eq!(
        find(&exchanges, "openapi v3 stale hash").response,
        Body::Empty
    );
}

#[test]
fn every_answer_equals_itself() {
    let rules = Rules {
        managed_fields: ManagedFields::Compared,
        ..Rules::default()
    };
    for exchange in kube_apiserver() {
        let found = compare(
            &exchange,
            exchange.status,
            &headers(&exchange.headers),
            &bytes(&exchange.response),
            &rules,
        );
        assert_eq!(found, [], "{}", exchange.name);
    }
}

#[test]
fn what_no_two_servers_share_is_overlooked() {
    let answer = |uid: &str,
                  revision: &str,
                  moment: &str,
                  address: &str,
                  name: &str,
                  age: &str,
                  token: &str| {
        json!({
            "metadata": {"uid": uid, "resourceVersion": revision, "creationTimestamp": moment, "continue": token,
                "generateName": "gen-", "name": name, "managedFields": [{"manager": name}]},
            "spec": {"clusterIP": address, "clusterIPs": [address]},
            "rows": [{"cells": [age, address]}],
            "message": format!("too old resource version: 1 ({revision}), uid: {uid}"),
        })
    };
    check(
        answer(
            "61c8ac46-8332-4a29-a126-6ad0d45f5292",
            "246",
            "2026-11-15T19:16:11Z",
            "10.0.0.28",
            "gen-abcde",
            "2m10s",
            "x",
        ),
        answer(
            "d7c48d46-ddea-48d5-b2a0-03249b785de4",
            "7",
            "2027-01-01T00:00:00Z",
            "10.96.1.2",
            "gen-zzzzz",
            "0s",
            "yy",
        ),
        &[],
    );
}

#[test]
fn what_matters_is_known_by_its_place() {
    check(
        json!({"spec": {"replicas": 1, "a/b": true, "list": [1, 2]}, "status": {}}),
        json!({"spec": {"replicas": 2, "list": [1]}, "extra": "x"}),
        &[
            "/extra: expected nothing, got \"x\"",
            "/spec/a~1b: expected true, got nothing",
            "/spec/list/1: expected 2, got nothing",
            "/spec/replicas: expected 1, got 2",
            "/status: expected {}, got nothing",
        ],
    );
}

#[test]
fn look_alikes_still_differ() {
    for (key, expected, actual) in [
        ("resourceVersion", "5", ""),
        (
            "creationTimestamp",
            "2026-11-15T19:16:11Z",
            "2026-11-15T19:16:11.000000Z",
        ),
        ("clusterIP", "None", "10.0.0.1"),
        ("name", "gen-abcde", "gen-zzzzz"),
        ("uid", "61c8ac46-8332-4a29-a126-6ad0d45f5292", "1"),
        ("port", "10.0.0.1", "10.0.0.2"),
        ("cells", "5s", "<unknown>"),
        ("message", "at most 63 characters", "at most 64 characters"),
    ] {
        let found = differences(
            json!({key: expected}),
            json!({key: actual}),
            &Rules::default(),
        );
        assert_eq!(found.len(), 1, "{key}");
    }
}

#[test]
fn rules_take_places_out() {
    let rules = Rules {
        ignored: &["/items/*/spec", "/http/warning"],
        managed_fields: ManagedFields::Compared,
    };
    let item = |spec: i64, manager: &str| json!({"items": [{"spec": {"a": spec}, "metadata": {"managedFields": [{"manager": manager}]}}]});
    assert_eq!(
        differences(item(1, "a"), item(2, "b"), &rules),
        ["/items/0/metadata/managedFields/0/manager: expected \"a\", got \"b\""]
    );
}

#[test]
fn status_headers_and_kinds_of_body_are_compared() {
    let exchanges = kube_apiserver();
    let warned = find(&exchanges, "warn unknown");
    let mut given = headers(&warned.headers);
    given.remove("warning");
    given.insert("content-length", HeaderValue::from_static("1"));
    given.insert("audit-id", HeaderValue::from_static("x"));
    let found = compare(warned, 200, &given, b"<html>", &Rules::default());
    let places: Vec<&str> = found
        .iter()
        .map(|difference| difference.pointer.as_str())
        .collect();
    assert_eq!(places, ["/http/status", "/http/warning", "/"]);
}
