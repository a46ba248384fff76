//! How a project is deployed, as far as that is its own choice. Kept in `PROJECT` beside the settings of other layouts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who makes the certificates that the manager serves with.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum CertificateSource {
    /// The manager makes and replaces them itself.
    #[default]
    Manager,
    /// cert-manager does, from the Issuer and the Certificates that are deployed with the manager.
    CertManager,
    /// Somebody puts them into Secrets and tells configurations whom to trust.
    Secret,
}

impl CertificateSource {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Choices about what is generated.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Options {
    /// The manager's image; without it `<project>:0.1.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether a ServiceMonitor is deployed. The cluster has to know that kind.
    #[serde(skip_serializing_if = "super::is_false")]
    pub prometheus: bool,
    /// Whether the manager can be reached from everywhere: no NetworkPolicy is deployed.
    #[serde(skip_serializing_if = "super::is_false")]
    pub without_network_policy: bool,
    /// Whether admission webhooks and conversions are left out of what is deployed.
    #[serde(skip_serializing_if = "super::is_false")]
    pub without_webhooks: bool,
    /// Who makes the certificates of the manager.
    #[serde(skip_serializing_if = "CertificateSource::is_default")]
    pub certificates: CertificateSource,
    /// Whether a Helm chart is generated.
    #[serde(skip_serializing_if = "super::is_false")]
    pub helm: bool,
    /// Whether a bundle for the Operator Lifecycle Manager is generated.
    #[serde(skip_serializing_if = "super::is_false")]
    pub olm: bool,
    /// Whether a Grafana dashboard is generated.
    #[serde(skip_serializing_if = "super::is_false")]
    pub grafana: bool,
    /// The namespaces that it works in, when the project is namespaced; without any, its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watch_namespaces: Vec<String>,
}

impl Options {
    /// What is kept. Something that cannot be read counts as nothing: defaults are safe.
    pub(super) fn read(kept: Option<&Value>) -> Self {
        let kept = kept.cloned().unwrap_or_default();
        serde_json::from_value(kept).unwrap_or_default()
    }

    /// What is to be kept, with what others keep beside it; nothing for the defaults.
    pub(super) fn write(&self, kept: Option<&Value>) -> Option<Value> {
        let mut map = match kept {
            Some(Value::Object(map)) => map.clone(),
            _ => Map::new(),
        };
        for name in [
            "image",
            "prometheus",
            "withoutNetworkPolicy",
            "withoutWebhooks",
            "certificates",
            "helm",
            "olm",
            "grafana",
            "watchNamespaces",
        ] {
            map.remove(name);
        }
        if let Ok(Value::Object(own)) = serde_json::to_value(self) {
            map.extend(own);
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }
}
