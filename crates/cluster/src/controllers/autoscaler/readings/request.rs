//! Requests to the metrics APIs: their paths, and what a client says of a refusal. Pure.

use std::fmt::{self, Write as _};

use kube::core::Status;

/// A metrics API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::autoscaler) enum MetricsApi {
    /// What pods use of resources.
    Resource,
    /// Metrics of pods and other objects.
    Custom,
    /// Metrics of what is outside of the cluster.
    External,
}

impl MetricsApi {
    /// Its API group.
    pub(super) fn group(self) -> &'static str {
        match self {
            Self::Resource => "metrics.k8s.io",
            Self::Custom => "custom.metrics.k8s.io",
            Self::External => "external.metrics.k8s.io",
        }
    }
}

impl fmt::Display for MetricsApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resource => "resource",
            Self::Custom => "custom",
            Self::External => "external",
        })
    }
}

/// One request to a metrics API.
#[derive(Debug, Clone)]
pub(super) struct Asking<'a> {
    pub(super) api: MetricsApi,
    pub(super) version: &'a str,
    pub(super) namespace: &'a str,
    /// The resource, as in `ingresses.networking.k8s.io`.
    pub(super) resource: &'a str,
    /// The object that the metric is of, or `*` for those that the query selects.
    pub(super) name: Option<&'a str>,
    /// The metric, where the path ends with it.
    pub(super) metric: Option<&'a str>,
    /// Parameters of the query. Those that are empty are left out.
    pub(super) query: Vec<(&'static str, String)>,
}

impl Asking<'_> {
    /// The path and the query.
    pub(super) fn path(&self) -> String {
        let group = self.api.group();
        let mut path = format!("/apis/{group}/{}/namespaces", self.version);
        let parts = [Some(self.namespace), Some(self.resource)];
        for part in parts.into_iter().chain([self.name, self.metric]).flatten() {
            path.push('/');
            escape(part, &mut path);
        }
        let given = self.query.iter().filter(|(_, value)| !value.is_empty());
        for (at, (name, value)) in given.enumerate() {
            path.push(if at == 0 { '?' } else { '&' });
            path.push_str(name);
            path.push('=');
            escape(value, &mut path);
        }
        path
    }

    /// What a client says of an answer that is not a list of metrics. Answers that are no `Status` have only their code, of
    /// which client-go makes a text (`errors.go: NewGenericServerResponse`).
    pub(super) fn refusal(&self, status: &Status) -> String {
        if status.reason != "Failed to parse error data" {
            return status.message.clone();
        }
        let (resource, group) = (self.resource, self.api.group());
        let name = self.name.map(|name| format!(" {name}")).unwrap_or_default();
        let about = format!("(get {resource}.{group}{name})");
        let text = &status.message;
        match status.code {
            403 => text.clone(),
            404 => format!("the server could not find the requested resource {about}"),
            503 => format!("the server is currently unable to handle the request {about}"),
            504 => format!(
                "the server was unable to return a response in the time allotted, but may still be processing the request {about}"
            ),
            500.. => format!(
                "an error on the server ({text:?}) has prevented the request from succeeding {about}"
            ),
            code => format!(
                "the server responded with the status code {code} but did not return more information {about}"
            ),
        }
    }
}

/// Writes a segment of a path or a value of a query. The star stands for all objects and is a character of paths.
fn escape(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(metric: &'static str) -> Asking<'static> {
        Asking {
            api: MetricsApi::Custom,
            version: "v1beta2",
            namespace: "default",
            resource: "pods",
            name: Some("*"),
            metric: Some(metric),
            query: vec![
                ("labelSelector", "app=web,tier in (a,b)".to_owned()),
                ("metricLabelSelector", String::new()),
            ],
        }
    }

    #[test]
    fn paths_are_those_of_the_real_client() {
        let prefix = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*";
        let query = "labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29";
        assert_eq!(pods("hits").path(), format!("{prefix}/hits?{query}"));
        assert_eq!(pods("a|b/c").path(), format!("{prefix}/a%7Cb%2Fc?{query}"));
        let backlog = Asking {
            api: MetricsApi::External,
            version: "v1beta1",
            resource: "s0-queue",
            name: None,
            metric: None,
            query: Vec::new(),
            ..pods("")
        };
        let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/s0-queue";
        assert_eq!(backlog.path(), path);
    }

    #[test]
    fn refusals_read_as_those_of_a_go_client() {
        let asking = pods("hits");
        let plain = |code, text: &str| {
            let status = Status::failure(text, "Failed to parse error data").with_code(code);
            asking.refusal(&status)
        };
        let unable = "the server is currently unable to handle the request (get pods.custom.metrics.k8s.io *)";
        assert_eq!(plain(503, "service unavailable"), unable);
        assert!(plain(500, "boom").starts_with("an error on the server (\"boom\")"));
        assert!(plain(418, "").contains("status code 418"));
        let status = Status::failure("no such metric", "NotFound").with_code(404);
        assert_eq!(asking.refusal(&status), "no such metric");
    }
}
