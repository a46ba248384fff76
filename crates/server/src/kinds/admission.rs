//! Webhook configurations.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::{Value, json};

use super::admission_policy::validate_conditions;
use super::checks::{Errors, invalid_each, one_of, one_of_if_set};
use super::path::Path;
use super::scope::NAMES;
use super::selector;
use super::strategy::{Generation, Strategy};
use super::value::{is_empty, items, items_mut, set_default, strings, text};

/// ValidatingWebhookConfigurations.
pub(super) static VALIDATING_WEBHOOKS: Strategy = Strategy {
    generation: Generation::Field("webhooks"),
    allow_unconditional_update: false,
    default: default_webhooks,
    validate: validate_webhooks,
    ..Strategy::PLAIN
};

/// MutatingWebhookConfigurations.
pub(super) static MUTATING_WEBHOOKS: Strategy = Strategy {
    generation: Generation::Field("webhooks"),
    allow_unconditional_update: false,
    default: |object| {
        default_webhooks(object);
        for hook in items_mut(object.get_mut("webhooks")) {
            set_default(hook, "reinvocationPolicy", "Never");
        }
    },
    validate: |object, errors| {
        validate_webhooks(object, errors);
        let path = Path::Root("webhooks");
        for (i, hook) in items(&object["webhooks"]).iter().enumerate() {
            let at = path.index(i);
            let policies = ["IfNeeded", "Never"];
            let path = at.child("reinvocationPolicy");
            one_of_if_set(&hook["reinvocationPolicy"], &policies, &path, errors);
        }
    },
    ..Strategy::PLAIN
};

fn default_webhooks(object: &mut Value) {
    for hook in items_mut(object.get_mut("webhooks")) {
        set_default(hook, "failurePolicy", "Fail");
        set_default(hook, "matchPolicy", "Equivalent");
        set_default(hook, "namespaceSelector", json!({}));
        set_default(hook, "objectSelector", json!({}));
        set_default(hook, "timeoutSeconds", 10);
        for rule in items_mut(hook.get_mut("rules")) {
            set_default(rule, "scope", "*");
        }
        if let Some(service) = hook.pointer_mut("/clientConfig/service") {
            set_default(service, "port", 443);
        }
    }
}

fn validate_webhooks(object: &Value, errors: &mut Errors) {
    let path = Path::Root("webhooks");
    let mut seen = BTreeSet::new();
    for (i, hook) in items(&object["webhooks"]).iter().enumerate() {
        let path = path.index(i);
        validate_webhook(hook, &path, errors);
        validate_versions(hook, &path.child("admissionReviewVersions"), errors);
        let name = text(&hook["name"]);
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(path.child("name"), &name.into()));
        }
    }
}

fn validate_webhook(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_name(text(&hook["name"]), &path.child("name"), errors);
    let rules = path.child("rules");
    for (i, rule) in items(&hook["rules"]).iter().enumerate() {
        validate_rule(rule, &rules.index(i), errors);
    }
    let failure = ["Fail", "Ignore"];
    one_of_if_set(
        &hook["failurePolicy"],
        &failure,
        &path.child("failurePolicy"),
        errors,
    );
    let matching = ["Equivalent", "Exact"];
    one_of_if_set(
        &hook["matchPolicy"],
        &matching,
        &path.child("matchPolicy"),
        errors,
    );
    if hook["sideEffects"].is_null() {
        let text = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(path.child("sideEffects"), text));
    } else {
        let effects = ["None", "NoneOnDryRun"];
        one_of(
            &hook["sideEffects"],
            &effects,
            &path.child("sideEffects"),
            errors,
        );
    }
    let timeout = &hook["timeoutSeconds"];
    if timeout
        .as_i64()
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        let text = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(
            path.child("timeoutSeconds"),
            timeout,
            text,
        ));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector::validate(&hook[field], &path.child(field), errors);
    }
    let conditions = path.child("matchConditions");
    validate_conditions(&hook["matchConditions"], &NAMES[..3], &conditions, errors);
    validate_client(&hook["clientConfig"], &path.child("clientConfig"), errors);
}

fn validate_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let complaints = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !complaints.is_empty() {
        errors.push(FieldError::invalid(
            path,
            &name.into(),
            &complaints.join(","),
        ));
    } else if name.split('.').count() < 3 {
        let text = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, &name.into(), text));
    }
}

pub(super) fn validate_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operations = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    validate_wildcard(rule, "operations", "operations", path, errors);
    let at = path.child("operations");
    for (i, operation) in items(&rule["operations"]).iter().enumerate() {
        one_of(operation, &operations, &at.index(i), errors);
    }
    validate_wildcard(rule, "apiGroups", "API groups", path, errors);
    validate_wildcard(rule, "apiVersions", "API versions", path, errors);
    let resources = &rule["resources"];
    let at = path.child("resources");
    if is_empty(resources) {
        errors.push(FieldError::required(at, ""));
    }
    if items(resources).len() > 1 && strings(resources).any(|r| r == "*/*") {
        let text = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(at, resources, text));
    }
    let bare = |resource: &str| resource != "*" && !resource.contains('/');
    if strings(resources).any(|r| r == "*") && strings(resources).any(bare) {
        let text = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(at, resources, text));
    }
    let scopes = ["*", "Cluster", "Namespaced"];
    one_of_if_set(&rule["scope"], &scopes, &path.child("scope"), errors);
}

fn validate_wildcard(rule: &Value, field: &str, shown: &str, path: &Path<'_>, errors: &mut Errors) {
    let (list, path) = (&rule[field], path.child(field));
    if is_empty(list) {
        errors.push(FieldError::required(path, ""));
    } else if items(list).len() > 1 && strings(list).any(|one| one == "*") {
        let text = format!("if '*' is present, must not specify other {shown}");
        errors.push(FieldError::invalid(path, list, &text));
    }
}

fn validate_versions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let versions = &hook["admissionReviewVersions"];
    if is_empty(versions) {
        errors.push(FieldError::required(
            path,
            "must specify one of v1, v1beta1",
        ));
        return;
    }
    let mut seen = BTreeSet::new();
    for (i, version) in strings(versions).enumerate() {
        if !seen.insert(version) {
            let text = "duplicate version";
            errors.push(FieldError::invalid(path.index(i), &version.into(), text));
            continue;
        }
        invalid_each(
            names::dns1035_label(version),
            version,
            &path.index(i),
            errors,
        );
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        let text = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(path, versions, text));
    }
}

fn validate_client(client: &Value, path: &Path<'_>, errors: &mut Errors) {
    let service = &client["service"];
    match (client["url"].as_str(), service.is_null()) {
        (Some(_), false) | (None, true) => {
            let text = "exactly one of url or service is required";
            errors.push(FieldError::required(path, text));
        }
        (Some(url), true) => validate_url(url, &path.child("url"), errors),
        (None, false) => {
            let path = path.child("service");
            for field in ["name", "namespace"] {
                if is_empty(&service[field]) {
                    errors.push(FieldError::required(path.child(field), ""));
                }
            }
            let complaints = names::port_number(service["port"].as_i64().unwrap_or(0));
            if !complaints.is_empty() {
                let text = format!("port is not valid: {}", complaints.join(", "));
                errors.push(FieldError::invalid(
                    path.child("port"),
                    &service["port"],
                    &text,
                ));
            }
            let given = text(&service["path"]);
            if !given.is_empty() && !given.starts_with('/') {
                let text = "must start with a '/'";
                errors.push(FieldError::invalid(path.child("path"), &given.into(), text));
            }
        }
    }
}

fn validate_url(url: &str, path: &Path<'_>, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let mut complain = |value: &str, text: &str| {
        errors.push(FieldError::invalid(path, &value.into(), text));
    };
    if scheme != "https" {
        complain(
            scheme,
            &format!("'https' is the only allowed URL scheme{form}"),
        );
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() || scheme.is_empty() {
        complain("", &format!("host must be specified{form}"));
    }
    if !user.is_empty() {
        complain(user, "user information is not permitted in the URL");
    }
    let (before, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    if !fragment.is_empty() {
        complain(fragment, "fragments are not permitted in the URL");
    }
    if let Some((_, query)) = before.split_once('?')
        && !query.is_empty()
    {
        complain(query, "query parameters are not permitted in the URL");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{Edit, create, create_errors, update};

    const GROUP: &str = "admissionregistration.k8s.io";

    fn hooks(edit: impl Fn(&mut Value)) -> Value {
        let mut hook = json!({
            "name": "a.ex.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "s", "namespace": "d"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
        });
        edit(&mut hook);
        json!({"metadata": {"name": "w"}, "webhooks": [hook]})
    }

    #[test]
    fn webhooks_get_their_defaults() {
        let object = create(GROUP, "MutatingWebhookConfiguration", hooks(|_| {}));
        let hook = &object["webhooks"][0];
        for (field, value) in [
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
            ("reinvocationPolicy", json!("Never")),
        ] {
            assert_eq!(hook[field], value, "{field}");
        }
        assert_eq!(hook["rules"][0]["scope"], "*");
        assert_eq!(hook["clientConfig"]["service"]["port"], 443);
        let bundle = update(GROUP, "MutatingWebhookConfiguration", &object, |new| {
            new["webhooks"][0]["clientConfig"]["caBundle"] = json!("eA==");
        });
        assert_eq!(bundle["metadata"]["generation"], 2);
    }

    #[test]
    fn broken_webhooks_are_refused() {
        let edits: [(Edit, &str); 6] = [
            (
                |h| h["name"] = json!("a.io"),
                "webhooks[0].name: Invalid value: \"a.io\": should be a domain with at least three segments separated by dots",
            ),
            (
                |h| h["sideEffects"] = Value::Null,
                "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            ),
            (
                |h| h["admissionReviewVersions"] = json!(["v9"]),
                "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
            ),
            (
                |h| h["timeoutSeconds"] = json!(31),
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
            (
                |h| h["clientConfig"] = json!({}),
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                |h| h["clientConfig"] = json!({"url": "http://h/p"}),
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
        ];
        for (edit, expect) in edits {
            assert_eq!(
                create_errors(GROUP, "ValidatingWebhookConfiguration", hooks(edit)),
                [expect]
            );
        }
    }
}
