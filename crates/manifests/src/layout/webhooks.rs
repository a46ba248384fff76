//! What leads the API server to the manager's webhooks.

use k8s_openapi::api::admissionregistration::v1::ServiceReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value, json};

use super::manager::WEBHOOK_PORT;
use super::{LayoutError, Operator, Tree, conversion};
use crate::{Webhook, WebhookKind, webhook};

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
    let hooks = operator.inventory.webhooks.iter().cloned();
    let hooks: Vec<Webhook> = hooks.map(|hook| operator.guarded(hook)).collect();
    let made = webhook::configurations(&hooks, &operator.webhook_service());
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
    /// Whether API servers ask the manager anything.
    pub(super) fn has_webhooks(&self) -> bool {
        let converts = || {
            self.inventory
                .definitions
                .iter()
                .any(conversion::is_by_webhook)
        };
        let is_asked = !self.inventory.webhooks.is_empty() || converts();
        is_asked && !self.options.without_webhooks
    }

    /// The kinds of configurations that there are, as their names end.
    pub(super) fn configurations(&self) -> Vec<&'static str> {
        let has = |kind: WebhookKind| self.inventory.webhooks.iter().any(|hook| hook.kind == kind);
        let kinds = [
            ("mutating", WebhookKind::Mutating),
            ("validating", WebhookKind::Validating),
        ];
        let kinds = kinds.into_iter().filter(|(_, kind)| has(*kind));
        kinds.map(|(name, _)| name).collect()
    }

    /// A webhook that is not asked about the manager's own namespace if it is about kinds of others: about the manager's pods it
    /// would be asked while no manager is there to answer, and there would never be one.
    fn guarded(&self, mut hook: Webhook) -> Webhook {
        let definitions = &self.inventory.definitions;
        let own = |group: &String| definitions.iter().any(|known| known.spec.group == *group);
        if hook.namespace_selector.is_none() && !hook.groups.iter().all(own) {
            let outside = LabelSelectorRequirement {
                key: "kubernetes.io/metadata.name".to_owned(),
                operator: "NotIn".to_owned(),
                values: Some(vec![self.project.namespace()]),
            };
            hook.namespace_selector = Some(LabelSelector {
                match_expressions: Some(vec![outside]),
                ..LabelSelector::default()
            });
        }
        hook
    }

    /// Where the API server finds the webhooks.
    pub(super) fn webhook_service(&self) -> ServiceReference {
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
        self.annotate_authority(&mut configuration);
        configuration
    }
}
