//! A server to attack, and what must hold after every attack.

use bytes::Bytes;
use kubewright_server::{ApiService, Server};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::call::{Answer, Ask};

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The largest body that the server reads.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;

/// No single request may take as long: work that grows with the square of its input does. A debug build on a busy
/// machine is far from it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with one of each to attack: a config map, a deployment, a custom object.
pub(crate) struct Host {
    pub(crate) server: Server,
    pub(crate) service: ApiService,
}

/// What an attack gets: the code, and the reason of the Status body. An empty reason is not looked at.
pub(crate) type Verdict = (u16, &'static str);

pub(crate) const TOO_LARGE: Verdict = (413, "RequestEntityTooLarge");
pub(crate) const BAD_REQUEST: Verdict = (400, "BadRequest");
pub(crate) const INVALID: Verdict = (422, "Invalid");
pub(crate) const CONFLICT: Verdict = (409, "Conflict");
pub(crate) const UNSUPPORTED: Verdict = (415, "UnsupportedMediaType");
pub(crate) const NOT_FOUND: Verdict = (404, "NotFound");
/// A path that names nothing at all is answered in plain text, as the API server does.
pub(crate) const NOTHING_THERE: Verdict = (404, "");

impl Host {
    pub(crate) async fn start() -> Self {
        Self::with(Server::builder().start().await.expect("starts")).await
    }

    /// A host around a server that has been configured by the test.
    pub(crate) async fn with(server: Server) -> Self {
        let host = Self {
            service: server.service(),
            server,
        };
        host.must(Ask::post(DEFINITIONS, widget_definition())).await;
        host.must(Ask::post(CONFIG_MAPS, config_map("victim")))
            .await;
        host.must(Ask::post(DEPLOYMENTS, deployment("victim")))
            .await;
        host.must(Ask::post(WIDGETS, widget("victim"))).await;
        host
    }

    pub(crate) async fn ask(&self, ask: Ask) -> Answer {
        ask.send(&self.service).await
    }

    /// Sends a request that must succeed.
    pub(crate) async fn must(&self, ask: Ask) -> Value {
        let answer = self.ask(ask.clone()).await;
        let shown = answer.text();
        assert!(
            answer.code < 300,
            "{} {}: {shown}",
            ask.method,
            shorten(&ask.path)
        );
        answer.json()
    }

    /// Sends an attack: it is refused as expected and in time, nothing is written, and the server goes on serving.
    pub(crate) async fn refuses(&self, attack: &str, ask: Ask, verdict: Verdict) -> Answer {
        let (before, started) = (self.server.revision(), Instant::now());
        let answer = self.ask(ask).await;
        let took = started.elapsed();
        assert!(took < PATIENCE, "{attack}: took {took:?}");
        assert_eq!(
            self.server.revision(),
            before,
            "{attack}: something was written"
        );
        judge(attack, &answer, verdict);
        self.serves().await;
        answer
    }

    /// A healthy client is served.
    pub(crate) async fn serves(&self) {
        let answer = self.ask(Ask::get(format!("{CONFIG_MAPS}/victim"))).await;
        assert_eq!(answer.code, 200, "a healthy request: {}", answer.text());
    }
}

/// Checks code and reason; refusals are Status objects that repeat the code.
pub(crate) fn judge(attack: &str, answer: &Answer, (code, reason): Verdict) {
    let shown = shorten(&answer.text());
    assert_eq!(answer.code, code, "{attack}: {shown}");
    if reason.is_empty() {
        return;
    }
    let status = answer.json();
    assert_eq!(status["kind"], "Status", "{attack}: {shown}");
    assert_eq!(status["reason"], reason, "{attack}: {shown}");
    assert_eq!(status["code"], code, "{attack}: {shown}");
    assert_eq!(status["status"], "Failure", "{attack}: {shown}");
}

pub(crate) fn shorten(text: &str) -> String {
    text.chars().take(500).collect()
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "image"}]},
            },
        },
    })
}

pub(crate) fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1}})
}

pub(crate) fn widget_definition() -> Value {
    let properties = json!({
        "size": {"type": "integer"},
        "small": {"type": "integer", "format": "int32"},
        "ratio": {"type": "number"},
        "text": {"type": "string"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    });
    definition("widgets", "Widget", &properties)
}

/// A definition in the group `example.com` whose spec has these properties.
pub(crate) fn definition(plural: &str, kind: &str, properties: &Value) -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// So many bytes of the same character.
pub(crate) fn padding(length: usize) -> String {
    "x".repeat(length)
}

/// The most memory this process has had, in bytes. It never falls, and all tests of the process count: bounds on it
/// are generous, and far below what an unbounded attack takes.
pub(crate) fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kilobytes.expect("the kernel tells the peak") * 1024
}

/// Memory that may be taken during an attack, other tests at the same time included.
pub(crate) const MEMORY: usize = 400 << 20;

/// A body of so many bytes that is one JSON object of a config map.
pub(crate) fn config_map_of(length: usize) -> Bytes {
    let head = r#"{"metadata":{"name":"large"},"data":{"a":""#;
    let tail = r#""}}"#;
    format!("{head}{}{tail}", padding(length - head.len() - tail.len())).into()
}
