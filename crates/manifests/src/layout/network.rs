//! Who may reach the manager: whoever scrapes metrics, and the API server where there are webhooks.
//!
//! Policies are about the ports of pods, not of services. The kubelet's probes come from the node and are never
//! stopped by one. The API server is not a pod, so that no selector would match it: webhooks are open to all.

use serde_json::{Value, json};

use super::manager::{METRICS_PORT, WEBHOOK_PORT};
use super::{LayoutError, Operator, Tree};

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    let scrapers = json!({
        "from": [{ "namespaceSelector": { "matchLabels": { "metrics": "enabled" } } }],
        "ports": [{ "port": METRICS_PORT, "protocol": "TCP" }],
    });
    let metrics = policy(operator, "allow-metrics-traffic", scrapers);
    tree.add("network-policy/allow-metrics-traffic.yaml", metrics)?;
    if operator.has_webhooks() {
        let anybody = json!({ "ports": [{ "port": WEBHOOK_PORT, "protocol": "TCP" }] });
        let webhooks = policy(operator, "allow-webhook-traffic", anybody);
        tree.add("network-policy/allow-webhook-traffic.yaml", webhooks)?;
    }
    Ok(())
}

fn policy(operator: &Operator<'_>, name: &str, ingress: Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": operator.namespaced(name),
        "spec": {
            "ingress": [ingress],
            "podSelector": { "matchLabels": operator.pod_labels() },
            "policyTypes": ["Ingress"],
        },
    })
}
