//! Admission: webhooks, policies and their bindings.

use serde_json::Value;

use super::{Entry, entry};
use crate::printers::column::{AGE, Column, NAME, integer, text as column};
use crate::printers::view::{View, at, list, map, text};

const GROUP: &str = "admissionregistration.k8s.io";

const WEBHOOKS: &[Column] = &[NAME, integer("Webhooks"), AGE];
const VALIDATING_POLICY: &[Column] = &[NAME, integer("Validations"), column("ParamKind"), AGE];
const MUTATING_POLICY: &[Column] = &[NAME, integer("Mutations"), column("ParamKind"), AGE];
const BINDING: &[Column] = &[NAME, column("PolicyName"), column("ParamRef"), AGE];

pub(super) const KINDS: &[Entry] = &[
    entry(GROUP, "MutatingWebhookConfiguration", WEBHOOKS, webhooks),
    entry(GROUP, "ValidatingWebhookConfiguration", WEBHOOKS, webhooks),
    entry(
        GROUP,
        "ValidatingAdmissionPolicy",
        VALIDATING_POLICY,
        |view| policy(view, "spec.validations"),
    ),
    entry(GROUP, "MutatingAdmissionPolicy", MUTATING_POLICY, |view| {
        policy(view, "spec.mutations")
    }),
    entry(GROUP, "ValidatingAdmissionPolicyBinding", BINDING, binding),
    entry(GROUP, "MutatingAdmissionPolicyBinding", BINDING, binding),
];

fn webhooks(view: &View<'_>) -> Vec<Value> {
    cells![view.name(), view.list("webhooks").len(), view.age()]
}

fn policy(view: &View<'_>, rules: &str) -> Vec<Value> {
    let kind = match view.at("spec.paramKind") {
        Some(kind) => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
        None => "<unset>".to_owned(),
    };
    cells![view.name(), view.list(rules).len(), kind, view.age()]
}

fn binding(view: &View<'_>) -> Vec<Value> {
    let parameters = view.at("spec.paramRef").and_then(parameters);
    cells![
        view.name(),
        view.text("spec.policyName"),
        parameters.unwrap_or_else(|| "<unset>".to_owned()),
        view.age(),
    ]
}

/// `namespace/name`; a name alone may mean any namespace.
fn parameters(reference: &Value) -> Option<String> {
    match (text(reference, "namespace"), text(reference, "name")) {
        (_, "") => at(reference, "selector").map(go_selector),
        ("", name) => Some(format!("*/{name}")),
        (namespace, name) => Some(format!("{namespace}/{name}")),
    }
}

/// A label selector as Go prints the struct, which is what the real server shows here.
fn go_selector(selector: &Value) -> String {
    let mut labels: Vec<String> = map(selector, "matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    labels.sort_unstable();
    let expressions: Vec<String> = list(selector, "matchExpressions")
        .iter()
        .map(|expression| {
            let values: Vec<&str> = list(expression, "values")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(expression, "key"),
                text(expression, "operator"),
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{}}},}}",
        labels.concat(),
        expressions.concat()
    )
}
