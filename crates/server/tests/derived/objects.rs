//! Objects and requests that the tests share.

use std::time::Duration;

use http_body_util::BodyExt;
use kubewright_server::Server;
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const SERVICES: &str = "/api/v1/namespaces/default/services";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Longest wait for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn named(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

pub(crate) fn config_map(name: &str) -> Value {
    named("v1", "ConfigMap", name)
}

pub(crate) fn service(name: &str, spec: Value) -> Value {
    let mut service = named("v1", "Service", name);
    service["spec"] = spec;
    service
}

/// A namespaced kind `kind` of `example.com` with the versions v1 and v2, of which one is stored.
pub(crate) fn definition(plural: &str, stored: &str) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    let schema = json!({"openAPIV3Schema": {
        "type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
    }});
    let versions: Vec<Value> = ["v1", "v2"]
        .iter()
        .map(|v| json!({"name": v, "served": true, "storage": *v == stored, "schema": schema}))
        .collect();
    let mut definition = named(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &format!("{plural}.example.com"),
    );
    definition["spec"] = json!({
        "group": "example.com", "scope": "Namespaced", "versions": versions,
        "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind, "listKind": format!("{kind}List")},
    });
    definition
}

/// The path of the objects of such a kind.
pub(crate) fn custom(version: &str, plural: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/{plural}")
}

pub(crate) fn custom_object(version: &str, plural: &str, name: &str) -> Value {
    let kind = format!("{}{}", plural[..1].to_uppercase(), &plural[1..]);
    named(&format!("example.com/{version}"), &kind, name)
}

pub(crate) async fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    crate::client::send(server, "POST", path, "application/json", body).await
}

/// A watch whose events are read one by one.
pub(crate) struct Watch {
    body: kubewright_server::ResponseBody,
    rest: Vec<u8>,
}

impl Watch {
    pub(crate) async fn open(server: &Server, path: &str) -> Self {
        let request = http::Request::get(format!("https://localhost{path}?watch=true"));
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new());
        let answer = server.service().oneshot(request.expect("a request")).await;
        let answer = answer.expect("never fails");
        assert_eq!(answer.status(), 200);
        Self {
            body: answer.into_body(),
            rest: Vec::new(),
        }
    }

    /// The next event; none at the end of the watch, which is waited for.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
            let frame =
                frame.expect("timed out after 60 s waiting for an event or the end of a watch");
            let data = frame?.expect("never fails").into_data();
            self.rest.extend_from_slice(&data.unwrap_or_default());
        }
    }
}

/// Asks again until the answer is there.
pub(crate) async fn eventually<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    mut ask: impl FnMut() -> F,
) -> T {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let seen = match ask().await {
            Ok(answer) => return answer,
            Err(seen) => seen,
        };
        assert!(
            tokio::time::Instant::now() < end,
            "timed out after 60 s waiting for {what}; last seen: {seen}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
