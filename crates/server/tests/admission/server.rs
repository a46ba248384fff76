//! Servers and objects that the tests share.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::{Admission, Plugin, Server};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) use crate::client::{create, delete, get, patch, send};

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

pub(crate) async fn server() -> Server {
    Server::builder().start().await.expect("starts")
}

/// A server that asks for service accounts too.
pub(crate) async fn server_with_accounts() -> Server {
    let admission = Admission::default().enable(Plugin::ServiceAccount);
    let builder = Server::builder().admission(admission);
    builder.start().await.expect("starts")
}

/// POST of JSON.
pub(crate) async fn post(server: &Server, path: &str, body: Value) -> (u16, Value) {
    send(server, "POST", path, "application/json", &body).await
}

/// POST that must be refused, with the message of the refusal.
pub(crate) async fn refused(server: &Server, path: &str, body: Value) -> (u16, String) {
    let (status, answer) = post(server, path, body).await;
    assert!(status >= 400, "{answer:#}");
    let message = answer["message"].as_str().unwrap_or("").to_owned();
    (status, message)
}

/// POST with the warnings of the answer.
pub(crate) async fn warned(server: &Server, path: &str, body: Value) -> (u16, Vec<String>) {
    let request = http::Request::builder()
        .method("POST")
        .uri(format!("https://localhost{path}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))
        .expect("a request");
    let answer = server
        .service()
        .oneshot(request)
        .await
        .expect("never fails");
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings
        .map(|w| w.to_str().expect("text").to_owned())
        .collect();
    let status = answer.status().as_u16();
    let _ = answer.into_body().collect().await;
    (status, warnings)
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub(crate) fn pod(name: &str, container: Value) -> Value {
    let mut container = container;
    container["name"] = json!("c");
    container["image"] = json!("i");
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})
}
