//! A ServiceMonitor for those who run the Prometheus operator.
//!
//! It sends a token, so it wants to know whom to: the certificate is checked against the Secret that the manager serves
//! with.

use serde_json::json;

use super::manager::METRICS_SERVICE;
use super::{LayoutError, Operator, Tree};

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let service = operator.name(METRICS_SERVICE);
    let secret = operator.metrics_secret();
    let mut labels = operator.labels();
    labels.insert("control-plane".to_owned(), json!("controller-manager"));
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": operator.namespaced("controller-manager-metrics-monitor"),
        "spec": {
            "endpoints": [{
                "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
                "path": "/metrics",
                "port": "https",
                "scheme": "https",
                "tlsConfig": {
                    "ca": { "secret": { "key": "ca.crt", "name": secret } },
                    "serverName": format!("{service}.{}.svc", operator.project.namespace()),
                },
            }],
            "selector": { "matchLabels": labels },
        },
    });
    tree.add("prometheus/monitor.yaml", monitor)
}
