//! What an operator answers over HTTP: probes, metrics and webhooks, with limits on what a stranger can cost.
//!
//! [`Listener`] is the socket, with or without TLS; [`Probes`], [`MetricsServer`] and [`WebhookServer`] are what is served
//! on it. Bodies of requests are read where the handler says how large they may be.

mod access;
mod certificates;
mod listener;
mod metrics;
mod probes;
mod tls;
mod webhooks;

use std::future::{Future, ready};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{Response, StatusCode};

pub use access::AccessGuard;
pub use certificates::{CertificateError, CertificateOptions, Certificates, TrustTarget};
pub use listener::{BindError, Listener};
pub use metrics::MetricsServer;
pub use probes::Probes;
pub use tls::{Tls, TlsError};
pub(crate) use webhooks::Serves;
pub use webhooks::WebhookServer;

/// Answers requests of a server.
pub trait Handler: Send + Sync + 'static {
    /// The largest body of a POST that is read. Where it is zero there is no POST.
    const LARGEST_BODY: usize = 0;

    /// The answer to a GET or HEAD.
    fn handle(&self, request: &Parts) -> impl Future<Output = Response<Bytes>> + Send;

    /// The answer to a POST.
    fn post(&self, _request: &Parts, _body: Bytes) -> impl Future<Output = Response<Bytes>> + Send {
        ready(method_not_allowed())
    }
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

fn method_not_allowed() -> Response<Bytes> {
    text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n")
}

fn not_found() -> Response<Bytes> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests;
