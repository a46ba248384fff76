//! Serves `/metrics`, and whatever else an operator shows of itself, to those who may see it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderValue;
use http::request::Parts;
use http::{Response, StatusCode};
use serde_json::Value;

use super::{AccessGuard, Handler, answer, not_found, text};
use crate::metrics::Metrics;

type Page = Arc<dyn Fn(&Parts) -> Response<Bytes> + Send + Sync>;

/// The metrics, further pages, and who may read them.
#[must_use]
pub struct MetricsServer {
    metrics: Metrics,
    guard: Option<AccessGuard>,
    pages: BTreeMap<String, Page>,
}

impl MetricsServer {
    /// Serves `/metrics` to everybody who asks.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            metrics,
            guard: None,
            pages: BTreeMap::new(),
        }
    }

    /// Asks for a token, and whether its owner may read the path. Serve with TLS: the token is a secret.
    pub fn guard(mut self, guard: AccessGuard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// A further page, in JSON.
    pub fn json(self, path: &str, page: impl Fn() -> Value + Send + Sync + 'static) -> Self {
        self.page(path, move |_| {
            let json = HeaderValue::from_static("application/json");
            answer(StatusCode::OK, json, page().to_string().into())
        })
    }

    /// A further page of any sort.
    pub fn page(
        mut self,
        path: &str,
        page: impl Fn(&Parts) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.pages.insert(path.into(), Arc::new(page));
        self
    }

    fn show(&self, request: &Parts) -> Response<Bytes> {
        let path = request.uri.path();
        if let Some(page) = self.pages.get(path) {
            return page(request);
        }
        if path != "/metrics" {
            return not_found();
        }
        let format = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        answer(StatusCode::OK, format, self.metrics.render().into())
    }
}

impl Handler for MetricsServer {
    async fn handle(&self, request: &Parts) -> Response<Bytes> {
        if let Some(guard) = &self.guard
            && let Err(refusal) = guard.check(request).await
        {
            return text(refusal.status(), refusal.to_string() + "\n");
        }
        self.show(request)
    }
}

impl fmt::Debug for MetricsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetricsServer({:?})", self.pages.keys())
    }
}
