//! A client for tests: a request in, a status and a JSON value out, in-process.

// Every test that uses the module uses another part of it.
#![allow(dead_code)]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::Server;
use serde_json::Value;
use tower::ServiceExt;

/// Sends a request and reads the whole answer.
pub(crate) async fn send(
    server: &Server,
    method: &str,
    path: &str,
    content_type: &str,
    body: &Value,
) -> (u16, Value) {
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = http::Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("content-type", content_type)
        .body(Full::new(Bytes::from(text)))
        .expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.expect("never fails").to_bytes();
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (parts.status.as_u16(), value)
}

/// GET.
pub(crate) async fn get(server: &Server, path: &str) -> (u16, Value) {
    send(server, "GET", path, "application/json", &Value::Null).await
}

/// POST that must create.
pub(crate) async fn create(server: &Server, path: &str, body: Value) -> Value {
    let (status, value) = send(server, "POST", path, "application/json", &body).await;
    assert_eq!(status, 201, "{value:#}");
    value
}

/// Merge patch that must succeed.
pub(crate) async fn patch(server: &Server, path: &str, body: Value) -> Value {
    let (status, value) = send(server, "PATCH", path, "application/merge-patch+json", &body).await;
    assert_eq!(status, 200, "{value:#}");
    value
}

/// DELETE.
pub(crate) async fn delete(server: &Server, path: &str) -> (u16, Value) {
    send(server, "DELETE", path, "application/json", &Value::Null).await
}
