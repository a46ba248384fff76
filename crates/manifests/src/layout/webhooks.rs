//! What leads the API server to the manager's webhooks.

use serde_json::{Value, json};

use super::manager::WEBHOOK_PORT;
use super::{LayoutError, Operator, Tree};
use crate::webhook;

pub(super) fn add(operator: &Operator<'_>, tree: &mut Tree) -> Result<(), LayoutError> {
    if !operator.has_webhooks() {
        return Ok(());
    }
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": operator.namespaced("webhook-service"),
        "spec": {
            "ports": [{ "port": 443, "protocol": "TCP", "targetPort": WEBHOOK_PORT }],
            "selector": operator.pod_labels(),
        },
    });
    tree.add("webhook/service.yaml", service)?;
    for configuration in configurations(operator) {
        let file = match configuration["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => "webhook/mutating.yaml",
            _ => "webhook/validating.yaml",
        };
        tree.add(file, configuration)?;
    }
    Ok(())
}

/// The configurations, under names of this project.
fn configurations(operator: &Operator<'_>) -> Vec<Value> {
    let made = webhook::configurations(
        &operator.inventory.webhooks,
        &operator.name("webhook-service"),
        &operator.project.namespace(),
    );
    let named = |configuration| {
        let mut value = json!(configuration);
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        value["metadata"] = operator.metadata(name);
        value
    };
    made.into_iter().map(named).collect()
}

impl Operator<'_> {
    pub(super) fn has_webhooks(&self) -> bool {
        !self.inventory.webhooks.is_empty()
    }
}
