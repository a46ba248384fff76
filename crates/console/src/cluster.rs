//! The connection to the API server: requests as bytes, with the credentials of the user who started the console.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Builder;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::upgrade::Upgraded;
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

/// How long the API server may take for an answer that is not a stream.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer that is read: a page of a list.
const LARGEST: usize = 256 << 20;
/// The largest error that is read.
const LARGEST_STATUS: usize = 64 << 10;

/// A client of the API server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connection {
    client: kube::Client,
}

/// One request.
#[derive(Debug)]
pub(crate) struct Call {
    method: Method,
    path: String,
    accept: &'static str,
    body: Option<(&'static str, Vec<u8>)>,
}

/// What the API server refused, or why it did not answer.
#[derive(Debug, Clone, thiserror::Error, Serialize)]
#[error("{message}")]
pub(crate) struct ClusterError {
    /// The HTTP code; 502 where the server did not answer.
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What is wrong with which field.
    pub(crate) causes: Vec<FieldCause>,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FieldCause {
    #[serde(default)]
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl ClusterError {
    /// An answer that is not what was asked for.
    pub(crate) fn malformed(error: impl fmt::Display) -> Self {
        Self::plain(
            502,
            "Malformed",
            format!("the API server's answer was not understood: {error}"),
        )
    }

    fn unreachable(error: &dyn StdError) -> Self {
        let mut message = format!("the API server did not answer: {error}");
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::plain(502, "Unreachable", message)
    }

    fn plain(code: u16, reason: &str, message: String) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message,
            causes: Vec::new(),
        }
    }

    fn from_status(code: StatusCode, body: &[u8]) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Status {
            reason: String,
            message: String,
            details: Details,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Details {
            causes: Vec<FieldCause>,
        }
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let message = if status.message.is_empty() {
            String::from_utf8_lossy(&body[..body.len().min(256)]).into_owned()
        } else {
            status.message
        };
        Self {
            code: code.as_u16(),
            reason: status.reason,
            message,
            causes: status.details.causes,
        }
    }
}

impl Call {
    /// A request without a body. The path may have a query.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            accept: "application/json",
            body: None,
        }
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(crate) fn body(mut self, content_type: &'static str, body: Vec<u8>) -> Self {
        self.body = Some((content_type, body));
        self
    }
}

impl Connection {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// When the server refuses or does not answer in time.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes, ClusterError> {
        let what = format!("{} {}", call.method, call.path);
        let answered = async {
            let body = self.open(call).await?;
            let read = Limited::new(body, LARGEST).collect().await;
            Ok(read
                .map_err(|error| ClusterError::unreachable(&*error))?
                .to_bytes())
        };
        let late = |_| {
            ClusterError::plain(
                504,
                "Timeout",
                format!("{what} took longer than {PATIENCE:?}"),
            )
        };
        timeout(PATIENCE, answered).await.map_err(late)?
    }

    /// Sends a request and gives its body as it comes.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) async fn open(&self, call: Call) -> Result<Body, ClusterError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .header(ACCEPT, call.accept);
        let body = match call.body {
            Some((content_type, body)) => {
                request = request.header(CONTENT_TYPE, content_type);
                Body::from(body)
            }
            None => Body::empty(),
        };
        let request = request.body(body).map_err(ClusterError::malformed)?;
        let response = self
            .client
            .send(request)
            .await
            .map_err(|error| ClusterError::unreachable(&error))?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let read = Limited::new(body, LARGEST_STATUS).collect().await;
        let status = read.map(|all| all.to_bytes()).unwrap_or_default();
        Err(ClusterError::from_status(head.status, &status))
    }

    /// Sends a request that makes the connection another one than HTTP, and gives the headers of the answer with it.
    ///
    /// # Errors
    /// When the server refuses, does not answer in time, or goes on with HTTP.
    pub(crate) async fn upgrade(
        &self,
        request: Builder,
    ) -> Result<(HeaderMap, Upgraded), ClusterError> {
        let request = request
            .body(Body::empty())
            .map_err(ClusterError::malformed)?;
        let late = |_| {
            let message = format!("the API server did not answer within {PATIENCE:?}");
            ClusterError::plain(504, "Timeout", message)
        };
        let response = timeout(PATIENCE, self.client.send(request))
            .await
            .map_err(late)?
            .map_err(|error| ClusterError::unreachable(&error))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let headers = response.headers().clone();
            let upgraded = hyper::upgrade::on(response).await;
            let upgraded = upgraded.map_err(|error| ClusterError::unreachable(&error))?;
            return Ok((headers, upgraded));
        }
        let (head, body) = response.into_parts();
        let read = Limited::new(body, LARGEST_STATUS).collect().await;
        let status = read.map(|all| all.to_bytes()).unwrap_or_default();
        let code = if head.status.is_success() {
            StatusCode::BAD_GATEWAY
        } else {
            head.status
        };
        Err(ClusterError::from_status(code, &status))
    }

    /// Sends a request and reads the answer as JSON.
    ///
    /// # Errors
    /// When the server refuses, does not answer in time, or does not answer with JSON.
    pub(crate) async fn json(&self, call: Call) -> Result<Value, ClusterError> {
        let body = self.call(call).await?;
        serde_json::from_slice(&body).map_err(ClusterError::malformed)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

/// Percent-encodes everything but what is never special in a path or a query.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte))
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}
