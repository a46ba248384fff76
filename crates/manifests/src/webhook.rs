//! Configurations of admission webhooks, as controller-gen writes them.

mod address;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations,
    ServiceReference, ValidatingWebhook, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::{Webhook, WebhookKind};

pub use address::Address;

/// The configurations of an operator: at most one of each sort.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Configurations {
    /// Of those that change objects.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// Of those that judge them.
    pub validating: Option<ValidatingWebhookConfiguration>,
}

impl Configurations {
    /// Those that there are, in JSON.
    pub fn to_json(&self) -> Vec<Value> {
        let both = [json!(self.mutating), json!(self.validating)];
        both.into_iter().filter(|one| !one.is_null()).collect()
    }
}

/// The service of the manager, as kustomize renames it on the way to a cluster.
///
/// ```
/// let service = kubewright_manifests::webhook::service();
/// assert_eq!((service.namespace.as_str(), service.name.as_str()), ("system", "webhook-service"));
/// ```
pub fn service() -> ServiceReference {
    ServiceReference {
        name: "webhook-service".to_owned(),
        namespace: "system".to_owned(),
        ..ServiceReference::default()
    }
}

/// The configurations that these webhooks make, sorted by name, served by a service unless they say otherwise.
///
/// What is left out of a webhook is what is safe: it fails closed, has no side effects, understands `v1`.
pub fn configurations(webhooks: &[Webhook], service: &ServiceReference) -> Configurations {
    let of = |kind: WebhookKind| {
        let mut found: Vec<&Webhook> = webhooks.iter().filter(|hook| hook.kind == kind).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    };
    let named = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let mutating = of(WebhookKind::Mutating);
    let validating = of(WebhookKind::Validating);
    Configurations {
        mutating: (!mutating.is_empty()).then(|| MutatingWebhookConfiguration {
            metadata: named("mutating-webhook-configuration"),
            webhooks: Some(mutating.iter().map(|hook| mutator(hook, service)).collect()),
        }),
        validating: (!validating.is_empty()).then(|| ValidatingWebhookConfiguration {
            metadata: named("validating-webhook-configuration"),
            webhooks: Some(
                validating
                    .iter()
                    .map(|hook| validator(hook, service))
                    .collect(),
            ),
        }),
    }
}

fn mutator(hook: &Webhook, service: &ServiceReference) -> MutatingWebhook {
    MutatingWebhook {
        name: hook.name.clone(),
        client_config: client(hook, service),
        rules: Some(vec![rule(hook)]),
        failure_policy: Some(failure_policy(hook)),
        match_policy: hook.match_policy.clone(),
        side_effects: side_effects(hook),
        timeout_seconds: hook.timeout_seconds,
        admission_review_versions: review_versions(hook),
        reinvocation_policy: hook.reinvocation_policy.clone(),
        namespace_selector: hook.namespace_selector.clone(),
        object_selector: hook.object_selector.clone(),
        match_conditions: match_conditions(hook),
    }
}

fn validator(hook: &Webhook, service: &ServiceReference) -> ValidatingWebhook {
    ValidatingWebhook {
        name: hook.name.clone(),
        client_config: client(hook, service),
        rules: Some(vec![rule(hook)]),
        failure_policy: Some(failure_policy(hook)),
        match_policy: hook.match_policy.clone(),
        side_effects: side_effects(hook),
        timeout_seconds: hook.timeout_seconds,
        admission_review_versions: review_versions(hook),
        namespace_selector: hook.namespace_selector.clone(),
        object_selector: hook.object_selector.clone(),
        match_conditions: match_conditions(hook),
    }
}

fn match_conditions(hook: &Webhook) -> Option<Vec<MatchCondition>> {
    (!hook.match_conditions.is_empty()).then(|| hook.match_conditions.clone())
}

fn failure_policy(hook: &Webhook) -> String {
    hook.failure_policy
        .clone()
        .unwrap_or_else(|| "Fail".to_owned())
}

fn side_effects(hook: &Webhook) -> String {
    hook.side_effects
        .clone()
        .unwrap_or_else(|| "None".to_owned())
}

fn review_versions(hook: &Webhook) -> Vec<String> {
    if hook.admission_review_versions.is_empty() {
        vec!["v1".to_owned()]
    } else {
        hook.admission_review_versions.clone()
    }
}

fn client(hook: &Webhook, service: &ServiceReference) -> WebhookClientConfig {
    if let Some(url) = &hook.url {
        return WebhookClientConfig {
            url: Some(url.clone()),
            ..WebhookClientConfig::default()
        };
    }
    let own =
        |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
    WebhookClientConfig {
        service: Some(ServiceReference {
            name: own(&hook.service_name, &service.name),
            namespace: own(&hook.service_namespace, &service.namespace),
            path: Some(hook.path.clone()),
            port: hook.service_port.or(service.port),
        }),
        ..WebhookClientConfig::default()
    }
}

fn rule(hook: &Webhook) -> RuleWithOperations {
    let groups = hook.groups.iter().map(|group| match group.as_str() {
        "core" => String::new(),
        other => other.to_owned(),
    });
    RuleWithOperations {
        api_groups: Some(groups.collect()),
        api_versions: Some(hook.versions.clone()),
        resources: Some(hook.resources.clone()),
        operations: Some(
            hook.verbs
                .iter()
                .map(|verb| verb.to_ascii_uppercase())
                .collect(),
        ),
        scope: None,
    }
}
