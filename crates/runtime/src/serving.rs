//! What an operator answers over HTTP: probes and metrics. Small GETs, with limits on what a stranger can cost.
//!
//! [`Listener`] is the socket, with or without TLS; [`Probes`] and [`MetricsServer`] are what is served on it. Bodies of
//! requests are not read.

mod access;
mod listener;
mod metrics;
mod probes;
mod tls;

use std::future::Future;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{Response, StatusCode};

pub use access::AccessGuard;
pub use listener::{BindError, Listener};
pub use metrics::MetricsServer;
pub use probes::Probes;
pub use tls::{Tls, TlsError};

/// Answers requests that have no body.
pub trait Handler: Send + Sync + 'static {
    /// The answer to a GET or HEAD.
    fn handle(&self, request: &Parts) -> impl Future<Output = Response<Bytes>> + Send;
}

/// An answer in plain text.
fn text(status: StatusCode, body: impl Into<String>) -> Response<Bytes> {
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer(status, plain, body.into().into())
}

fn answer(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn not_found() -> Response<Bytes> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests;
