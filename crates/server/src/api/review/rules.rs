//! What may the caller do in a namespace? `SelfSubjectRulesReview`.

use serde_json::{Value, json};

use crate::access::policy::{Held, missing_text};
use crate::access::rule::Rule;
use crate::access::{Access, Authorization};
use crate::api::call::Call;
use crate::auth::User;
use crate::status::ApiError;

/// All rules that apply. The answer shows neither what was asked nor by whom.
pub(super) fn answer(call: &Call, review: &mut Value) -> Result<Value, ApiError> {
    let namespace = review["spec"]["namespace"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    review["spec"] = json!({});
    review["metadata"] = json!({});
    let held = held(&call.core.access, &call.user, &namespace);
    let (mut resources, mut urls) = (Vec::new(), Vec::new());
    for rule in &held.rules {
        if !rule.resources.is_empty() {
            resources.push(resource_rule(rule));
        }
        if !rule.non_resource_urls.is_empty() {
            urls.push(json!({ "verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls }));
        }
    }
    let mut status =
        json!({ "resourceRules": resources, "nonResourceRules": urls, "incomplete": false });
    if !held.missing.is_empty() {
        status["evaluationError"] = json!(missing_text(&held.missing));
    }
    Ok(status)
}

fn held(access: &Access, user: &User, namespace: &str) -> Held {
    match access.mode() {
        Authorization::AlwaysAllow => Held {
            rules: Rule::everything().into(),
            missing: Vec::new(),
        },
        Authorization::Rbac => access.policy.read().held(user, namespace),
    }
}

fn resource_rule(rule: &Rule) -> Value {
    let mut value =
        json!({ "verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources });
    if !rule.resource_names.is_empty() {
        value["resourceNames"] = json!(rule.resource_names);
    }
    value
}
