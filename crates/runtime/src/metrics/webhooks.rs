//! What API servers ask of webhooks, in controller-runtime's series.

use std::time::Duration;

use super::{Counter, Gauge, Histogram, Labelled, Metrics};

/// Upper bounds of the buckets of `controller_runtime_webhook_latency_seconds`.
const SECONDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Counts what webhooks are asked. Clones share the counts.
#[derive(Debug, Clone)]
pub struct WebhookMetrics {
    total: Labelled<Counter, 2>,
    in_flight: Labelled<Gauge, 1>,
    latency: Labelled<Histogram, 1>,
}

/// A question that is being answered. It is no longer when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct InFlight(Gauge);

impl Metrics {
    /// The metrics of webhooks.
    pub fn webhooks(&self) -> WebhookMetrics {
        WebhookMetrics {
            total: self.built_in(
                "controller_runtime_webhook_requests_total",
                "Total number of admission requests by HTTP status code.",
                &["webhook", "code"],
                (),
            ),
            in_flight: self.built_in(
                "controller_runtime_webhook_requests_in_flight",
                "Current number of admission requests being served.",
                &["webhook"],
                (),
            ),
            latency: self.built_in(
                "controller_runtime_webhook_latency_seconds",
                "Histogram of the latency of processing admission requests",
                &["webhook"],
                SECONDS.into(),
            ),
        }
    }
}

impl WebhookMetrics {
    /// Counts a review that arrived at this path as in flight until the result is dropped.
    pub fn begin(&self, path: &str) -> InFlight {
        let gauge = self.in_flight.with([path]);
        gauge.add(1.0);
        InFlight(gauge)
    }

    /// It was answered with this status, after so long.
    pub fn answered(&self, path: &str, status: u16, took: Duration) {
        self.total.with([path, &status.to_string()]).increment();
        self.latency.with([path]).observe_duration(took);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}
