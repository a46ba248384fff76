//! Whole requests to a server in this process: nothing that a client sends is answered with a server's failure.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kubewright_schema::decode::{self, Format};
use kubewright_server::{Builder, Server};
use serde_json::Value;
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

use super::{Read, Verdict, start};

/// Longest part of a URL; hyper reads no longer ones.
const MAX_QUERY: usize = 4 * 1024;

/// A server with a few objects.
pub(super) struct Site {
    pub(super) runtime: Runtime,
    pub(super) server: Server,
}

impl Site {
    fn start() -> Self {
        let site = Self::of(Server::builder());
        for name in ["a", "b", "c"] {
            let body = format!(r#"{{"metadata":{{"name":"{name}","labels":{{"n":"{name}"}}}}}}"#);
            site.send(
                Method::POST,
                "/api/v1/namespaces/default/configmaps",
                "application/json",
                body.as_bytes(),
            );
        }
        site
    }

    /// The server as it is built here, with nothing of ours in it.
    pub(super) fn of(builder: Builder) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let server = runtime.block_on(builder.start());
        Self {
            runtime,
            server: server.expect("a server starts in memory"),
        }
    }

    /// Sends a request and reads the answer to its end.
    pub(super) fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Option<(StatusCode, Bytes)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("content-type", content_type)
            .body(Full::new(Bytes::copy_from_slice(body)))
            .ok()?;
        Some(self.runtime.block_on(async {
            let answer = self.server.service().oneshot(request).await;
            let (parts, body) = answer.expect("the service is infallible").into_parts();
            let bytes = body.collect().await.map(|b| b.to_bytes());
            (parts.status, bytes.unwrap_or_default())
        }))
    }

    /// Sends a request whose failure must be the client's.
    fn expect_no_failure(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Verdict {
        let Some((status, bytes)) = self.send(method, path, content_type, body) else {
            return Verdict::refused("not a request");
        };
        let text = String::from_utf8_lossy(&bytes);
        let message = serde_json::from_slice::<Value>(&bytes)
            .ok()
            .and_then(|answer| answer["message"].as_str().map(str::to_owned))
            .unwrap_or_default();
        assert!(
            !status.is_server_error() || is_meant(status, &message),
            "{status}: {text}"
        );
        if status.is_success() {
            Verdict::accepted(status)
        } else {
            Verdict::refused(format!("{status} {}", start(&message)))
        }
    }
}

/// Failures that a real server answers with as well.
fn is_meant(status: StatusCode, message: &str) -> bool {
    status == StatusCode::GATEWAY_TIMEOUT && message.contains("Too large resource version")
        || message == "resourceVersion should not be set on objects to be created"
}

/// Continue tokens of lists.
pub(super) fn continue_token() -> Read {
    let site = Site::start();
    Box::new(move |input| {
        let token = escape(input, |_| false);
        let path = format!("/api/v1/namespaces/default/configmaps?limit=1&continue={token}");
        site.expect_no_failure(Method::GET, &path, "application/json", b"")
    })
}

/// Queries of lists.
pub(super) fn query() -> Read {
    let site = Site::start();
    Box::new(move |input| {
        // A watch ends only with its time, which is not a failure; lists and deletes read the same options.
        let query = escape(input, |byte| b"&=%+".contains(&byte)).replace("watch", "wotch");
        let path = format!("/api/v1/namespaces/default/configmaps?{query}");
        site.expect_no_failure(Method::GET, &path, "application/json", b"")
    })
}

/// New objects of every kind, in a dry run so that the server does not change.
pub(super) fn create() -> Read {
    let site = Site::start();
    Box::new(move |input| {
        let parsed = decode::parse(input, Format::Json);
        let Some(path) = parsed.ok().and_then(|parsed| collection(&parsed.value)) else {
            return Verdict::refused("of no kind");
        };
        let path = format!("{path}?dryRun=All&fieldManager=fuzz");
        site.expect_no_failure(Method::POST, &path, "application/json", input)
    })
}

/// Where objects of a kind are created.
fn collection(object: &Value) -> Option<String> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let catalog = kubewright_schema::catalog::builtin();
    let found = catalog.iter().find(|resource| {
        *resource.group == *group && *resource.version == *version && *resource.kind == *kind
    })?;
    let root = match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    Some(match found.scope {
        kubewright_schema::catalog::Scope::Namespaced => {
            format!("{root}/namespaces/default/{}", found.plural)
        }
        _ => format!("{root}/{}", found.plural),
    })
}

/// Bytes as a URL carries them.
fn escape(input: &[u8], keep: impl Fn(u8) -> bool) -> String {
    let mut text = String::new();
    for byte in input.iter().take(MAX_QUERY / 3) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(*byte))
            }
            byte if keep(*byte) => text.push(char::from(*byte)),
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
