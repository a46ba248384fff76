//! A server in which roles decide, and callers of every kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kubewright_server::{ApiService, Authorization, Clock, Environment, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

pub(crate) const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// Where the clock stands at the start.
pub(crate) const START: i64 = 1_800_000_000;

/// A clock that is set by hand.
#[derive(Clone)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(self.0.load(Ordering::Relaxed)).expect("a moment")
    }
}

/// A builder with a clock that is set by hand, in which roles decide.
pub(crate) fn builder() -> (kubewright_server::Builder, Hand) {
    let clock = Hand(Arc::new(AtomicI64::new(START)));
    let environment = Environment::seeded(clock.clone(), 7);
    let builder = Server::builder()
        .environment(environment)
        .authorization(Authorization::Rbac);
    (builder, clock)
}

pub(crate) async fn server() -> Server {
    builder().0.start().await.expect("starts")
}

/// One caller of a server.
#[derive(Clone)]
pub(crate) struct Caller {
    service: ApiService,
    headers: Vec<(String, String)>,
}

impl Caller {
    pub(crate) fn admin(server: &Server) -> Self {
        Self::of(server.service())
    }

    pub(crate) fn user(server: &Server, name: &str) -> Self {
        Self::of(server.service_as(User::new(name, [""; 0])))
    }

    pub(crate) fn bearer(server: &Server, token: &str) -> Self {
        Self::of(server.service_by_token()).header("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn nobody(server: &Server) -> Self {
        Self::of(server.service_by_token())
    }

    fn of(service: ApiService) -> Self {
        let headers = Vec::new();
        Self { service, headers }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a request; the answer is JSON or nothing.
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let text = match body {
            Value::Null => String::new(),
            Value::String(raw) => raw.clone(),
            body => body.to_string(),
        };
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("content-type", content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request
            .body(Full::new(Bytes::from(text)))
            .expect("a request");
        let answer = self
            .service
            .clone()
            .oneshot(request)
            .await
            .expect("never fails");
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.expect("never fails").to_bytes();
        (
            parts.status.as_u16(),
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        )
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, &Value::Null).await
    }

    pub(crate) async fn status(&self, method: &str, path: &str, body: &Value) -> u16 {
        self.send(method, path, body).await.0
    }

    /// POST that must create.
    pub(crate) async fn create(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.send("POST", path, &body).await;
        assert_eq!(status, 201, "{path}: {value:#}");
        value
    }

    /// A request that must be refused; gives the text.
    pub(crate) async fn refused(
        &self,
        code: u16,
        method: &str,
        path: &str,
        body: &Value,
    ) -> String {
        let (status, value) = self.send(method, path, body).await;
        assert_eq!(status, code, "{method} {path}: {value:#}");
        value["message"].as_str().expect("a text").to_owned()
    }

    /// Gives a user these rules in a namespace, or everywhere when it is empty.
    pub(crate) async fn grant(&self, name: &str, namespace: &str, subject: Value, rules: Value) {
        let (kind, place) = match namespace {
            "" => ("ClusterRole", RBAC.to_owned()),
            namespace => ("Role", format!("{RBAC}/namespaces/{namespace}")),
        };
        let plural = kind.to_lowercase();
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        self.create(&format!("{place}/{plural}s"), role).await;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name },
            "subjects": [subject],
        });
        self.create(&format!("{place}/{plural}bindings"), binding)
            .await;
    }
}

pub(crate) fn user(name: &str) -> Value {
    json!({ "kind": "User", "name": name })
}

pub(crate) fn rule(verbs: &[&str], group: &str, resources: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": [group], "resources": resources })
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}
