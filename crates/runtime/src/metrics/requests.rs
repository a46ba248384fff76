//! What is asked of the API server, in client-go's series.

use std::time::Duration;

use super::{Counter, Histogram, Labelled, Metrics};

/// Upper bounds of the buckets of `rest_client_request_duration_seconds`.
const SECONDS: [f64; 12] = [
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];

/// Counts requests to API servers. Clones share the counts.
#[derive(Debug, Clone)]
pub struct RequestMetrics {
    total: Labelled<Counter, 3>,
    duration: Labelled<Histogram, 2>,
}

impl Metrics {
    /// The metrics of requests to API servers.
    pub fn requests(&self) -> RequestMetrics {
        RequestMetrics {
            total: self.built_in(
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "method", "host"],
                (),
            ),
            duration: self.built_in(
                "rest_client_request_duration_seconds",
                "Request latency in seconds. Broken down by verb, and host.",
                &["verb", "host"],
                SECONDS.into(),
            ),
        }
    }
}

impl RequestMetrics {
    /// A request was answered with this status, after this long to the head of the answer.
    pub fn answered(&self, method: &str, host: &str, status: u16, took: Duration) {
        self.record(method, host, &status.to_string(), took);
    }

    /// A request had no answer.
    pub fn unanswered(&self, method: &str, host: &str, took: Duration) {
        self.record(method, host, "<error>", took);
    }

    fn record(&self, method: &str, host: &str, code: &str, took: Duration) {
        self.total.with([code, method, host]).increment();
        self.duration.with([method, host]).observe_duration(took);
    }
}
