//! What leads the API server to the manager's webhooks.

use k8s_openapi::api::admissionregistration::v1::ServiceReference;
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
    let made = webhook::configurations(&operator.inventory.webhooks, &operator.webhook_service());
    let mutating = made.mutating.map(|configuration| json!(configuration));
    let validating = made.validating.map(|configuration| json!(configuration));
    for (file, configuration) in [("mutating", mutating), ("validating", validating)] {
        if let Some(configuration) = configuration {
            tree.add(
                format!("webhook/{file}.yaml"),
                operator.named(configuration),
            )?;
        }
    }
    Ok(())
}

impl Operator<'_> {
    pub(super) fn has_webhooks(&self) -> bool {
        !self.inventory.webhooks.is_empty()
    }

    /// Where the API server finds the webhooks.
    fn webhook_service(&self) -> ServiceReference {
        ServiceReference {
            name: self.name("webhook-service"),
            namespace: self.project.namespace(),
            ..ServiceReference::default()
        }
    }

    /// A configuration under a name of this project.
    fn named(&self, mut configuration: Value) -> Value {
        let name = configuration["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        configuration["metadata"] = self.metadata(&name);
        configuration
    }
}
