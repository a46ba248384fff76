//! Tells configurations whom to trust: the `caBundle` of every entry that refers to a Service of this operator.

use serde_json::{Value, json};

/// An object that refers to the operator's webhooks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrustTarget {
    /// A MutatingWebhookConfiguration of this name.
    Mutating(String),
    /// A ValidatingWebhookConfiguration of this name.
    Validating(String),
    /// A CustomResourceDefinition whose versions are converted by a webhook.
    Definition(String),
}

impl TrustTarget {
    /// Where the object is on an API server.
    pub(super) fn path(&self) -> String {
        let (prefix, name) = match self {
            Self::Mutating(name) => (
                "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
                name,
            ),
            Self::Validating(name) => (
                "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
                name,
            ),
            Self::Definition(name) => ("apiextensions.k8s.io/v1/customresourcedefinitions", name),
        };
        format!("/apis/{prefix}/{name}")
    }

    /// The object as people call it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Mutating(name) => format!("mutatingwebhookconfiguration {name}"),
            Self::Validating(name) => format!("validatingwebhookconfiguration {name}"),
            Self::Definition(name) => format!("customresourcedefinition {name}"),
        }
    }
}

/// The Services whose certificate this is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) namespace: &'a str,
    pub(super) services: &'a [String],
}

/// The JSON patch after which an object trusts this bundle (in base64) wherever it refers to our Services; nothing if it does
/// already. The patch is a conflict if somebody else has changed the object since.
pub(super) fn patch(object: &Value, own: Own<'_>, bundle: &str) -> Option<Value> {
    let mut changes: Vec<Value> = clients(object)
        .filter(|(_, client)| is_ours(client, own) && client["caBundle"] != bundle)
        .map(|(path, _)| json!({"op": "add", "path": format!("{path}/caBundle"), "value": bundle}))
        .collect();
    if changes.is_empty() {
        return None;
    }
    let version = &object["metadata"]["resourceVersion"];
    let same =
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version.clone()});
    changes.insert(0, same);
    Some(Value::Array(changes))
}

/// All that says whom an API server asks, and where in the object it is.
fn clients(object: &Value) -> impl Iterator<Item = (String, &Value)> {
    const CONVERSION: &str = "/spec/conversion/webhook/clientConfig";
    let conversion = object.pointer(CONVERSION);
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let admission = webhooks.enumerate().map(|(index, webhook)| {
        let path = format!("/webhooks/{index}/clientConfig");
        (path, &webhook["clientConfig"])
    });
    conversion
        .map(|client| (CONVERSION.to_owned(), client))
        .into_iter()
        .chain(admission)
}

fn is_ours(client: &Value, own: Own<'_>) -> bool {
    let service = &client["service"];
    let name = service["name"].as_str().unwrap_or_default();
    service["namespace"] == own.namespace && own.services.iter().any(|own| own == name)
}
