//! Serves webhooks: reviews in, reviews out, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use kubewright_webhook::{Answer, Webhooks};
use tokio::time::Instant;

use super::{Handler, answer, method_not_allowed, not_found, text};
use crate::metrics::{Metrics, WebhookMetrics};

/// Answers API servers. Serve with TLS: they ask nothing else.
#[derive(Debug)]
pub struct WebhookServer {
    webhooks: Webhooks,
    metrics: WebhookMetrics,
}

impl WebhookServer {
    /// Serves these webhooks and counts what they are asked.
    pub fn new(webhooks: Webhooks, metrics: &Metrics) -> Self {
        Self {
            webhooks,
            metrics: metrics.webhooks(),
        }
    }

    async fn review(&self, path: &str, body: &[u8]) -> Response<Bytes> {
        match self.webhooks.answer(path, body).await {
            Answer::Review(review) => answer(
                StatusCode::OK,
                HeaderValue::from_static("application/json"),
                review,
            ),
            Answer::BadRequest(problem) => text(StatusCode::BAD_REQUEST, problem + "\n"),
            _ => not_found(),
        }
    }
}

impl Handler for WebhookServer {
    /// Two objects of the largest size that API servers store, and what goes with them; controller-runtime's limit.
    const LARGEST_BODY: usize = 7 << 20;

    async fn handle(&self, _: &Parts) -> Response<Bytes> {
        method_not_allowed()
    }

    async fn post(&self, request: &Parts, body: Bytes) -> Response<Bytes> {
        let path = request.uri.path();
        // Strangers can post anywhere, and every path would be a series.
        if !self.webhooks.paths().any(|known| known == path) {
            return not_found();
        }
        if !is_json(request) {
            let wanted = "reviews come as application/json\n";
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, wanted);
        }
        let _in_flight = self.metrics.begin(path);
        let began = Instant::now();
        let response = self.review(path, &body).await;
        self.metrics
            .answered(path, response.status().as_u16(), began.elapsed());
        response
    }
}

fn is_json(request: &Parts) -> bool {
    let content_type = request.headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let media = content_type.and_then(|value| value.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// Whether webhooks are being served, for the probe of readiness.
#[derive(Debug, Clone, Default)]
pub(crate) struct Serves(Arc<AtomicBool>);

impl Serves {
    pub(crate) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.0.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err("webhooks are not served yet".to_owned())
        }
    }
}
