//! Definitions as this project deploys them: converted through its own Service, or not at all.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::Operator;
use crate::definition;

/// Whether an API server has a program convert objects of this kind.
pub(crate) fn is_by_webhook(definition: &CustomResourceDefinition) -> bool {
    let conversion = definition.spec.conversion.as_ref();
    conversion.is_some_and(|conversion| conversion.strategy == "Webhook")
}

impl Operator<'_> {
    /// The definitions of the program, with conversions as they are deployed.
    pub(super) fn definitions(&self) -> Vec<CustomResourceDefinition> {
        let all = self.inventory.definitions.iter().cloned();
        all.map(|definition| self.settled(definition)).collect()
    }

    fn settled(&self, mut definition: CustomResourceDefinition) -> CustomResourceDefinition {
        if !is_by_webhook(&definition) {
            return definition;
        }
        if self.options.without_webhooks {
            definition.spec.conversion = None;
            // Without a conversion an object of another version would lose what only that version knows.
            for version in &mut definition.spec.versions {
                version.served &= version.storage;
            }
        } else {
            definition.spec.conversion = Some(definition::converted_by(&self.webhook_service()));
        }
        definition
    }
}
