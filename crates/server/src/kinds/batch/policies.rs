//! When a Job counts as failed or done: its pod failure, pod replacement and success policies.

use std::collections::BTreeSet;

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use crate::kinds::checks::{Errors, invalid_each, non_negative, one_of};
use crate::kinds::path::Path;
use crate::kinds::value::{is_empty, items, items_mut, set_default_text, text};

/// Defaults of a pod failure policy.
pub(super) fn default(spec: &mut Value) {
    let rules = spec
        .get_mut("podFailurePolicy")
        .and_then(|policy| policy.get_mut("rules"));
    for rule in items_mut(rules) {
        for pattern in items_mut(rule.get_mut("onPodConditions")) {
            set_default_text(pattern, "status", "True");
        }
    }
}

/// Checks the policies of a `JobSpec`.
pub(super) fn validate(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !spec["podFailurePolicy"].is_null() {
        let policy = path.child("podFailurePolicy");
        validate_failure(spec, &policy.child("rules"), errors);
    }
    validate_success(spec, &path.child("successPolicy"), errors);
    if let Some(replace) = spec["podReplacementPolicy"].as_str() {
        let allowed: &[&str] = if spec["podFailurePolicy"].is_null() {
            &["Failed", "TerminatingOrFailed"]
        } else {
            &["Failed"]
        };
        one_of(
            &replace.into(),
            allowed,
            &path.child("podReplacementPolicy"),
            errors,
        );
    }
}

fn validate_failure(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = items(&spec["podFailurePolicy"]["rules"]);
    if rules.len() > 20 {
        errors.push(FieldError::too_many(path, rules.len(), 20));
    }
    let template = &spec["template"]["spec"];
    let containers: BTreeSet<&str> = items(&template["containers"])
        .iter()
        .chain(items(&template["initContainers"]))
        .map(|container| text(&container["name"]))
        .collect();
    for (i, rule) in rules.iter().enumerate() {
        let path = path.index(i);
        validate_action(spec, rule, &path.child("action"), errors);
        let codes = &rule["onExitCodes"];
        if !codes.is_null() {
            validate_codes(codes, &containers, &path.child("onExitCodes"), errors);
        }
        let conditions = path.child("onPodConditions");
        for (j, pattern) in items(&rule["onPodConditions"]).iter().enumerate() {
            let (path, kind) = (conditions.index(j), text(&pattern["type"]));
            invalid_each(
                names::qualified_name(kind),
                kind,
                &path.child("type"),
                errors,
            );
            let statuses = ["False", "True", "Unknown"];
            one_of(&pattern["status"], &statuses, &path.child("status"), errors);
        }
    }
}

fn validate_action(spec: &Value, rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let action = &rule["action"];
    match text(action) {
        "" => {
            let text = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
            errors.push(FieldError::required(path, text));
        }
        "FailIndex" if spec["backoffLimitPerIndex"].is_null() => {
            let text = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(path, action, text));
        }
        _ => one_of(
            action,
            &["Count", "FailIndex", "FailJob", "Ignore"],
            path,
            errors,
        ),
    }
}

fn validate_codes(
    codes: &Value,
    containers: &BTreeSet<&str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    one_of(
        &codes["operator"],
        &["In", "NotIn"],
        &path.child("operator"),
        errors,
    );
    if let Some(name) = codes["containerName"].as_str()
        && !containers.contains(name)
    {
        let text = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(
            path.child("containerName"),
            &name.into(),
            text,
        ));
    }
    let values = path.child("values");
    if is_empty(&codes["values"]) {
        let text = "at least one value is required";
        errors.push(FieldError::invalid(values, &codes["values"], text));
    }
    let numbers: Vec<i64> = items(&codes["values"])
        .iter()
        .filter_map(Value::as_i64)
        .collect();
    let mut seen = BTreeSet::new();
    for (i, number) in numbers.iter().enumerate() {
        if text(&codes["operator"]) == "In" && *number == 0 {
            let text = "must not be 0 for the In operator";
            errors.push(FieldError::invalid(values.index(i), &0.into(), text));
        }
        if !seen.insert(number) {
            errors.push(FieldError::duplicate(values.index(i), &(*number).into()));
        }
    }
    if !numbers.is_sorted() {
        errors.push(FieldError::invalid(
            values,
            &codes["values"],
            "must be ordered",
        ));
    }
}

fn validate_success(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = &spec["successPolicy"];
    if policy.is_null() {
        return;
    }
    if text(&spec["completionMode"]) != "Indexed" {
        let text = "requires indexed completion mode";
        errors.push(FieldError::invalid(path, policy, text));
        return;
    }
    let rules_path = path.child("rules");
    let rules = items(&policy["rules"]);
    if rules.is_empty() {
        let text = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(rules_path, text));
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = rules_path.index(i);
        if rule["succeededCount"].is_null() && rule["succeededIndexes"].is_null() {
            let text = "at least one of succeededCount or succeededIndexes must be specified";
            errors.push(FieldError::required(path, text));
        }
        let (count, all) = (
            &rule["succeededCount"],
            spec["completions"].as_i64().unwrap_or(0),
        );
        non_negative(count, &path.child("succeededCount"), errors);
        if count.as_i64().is_some_and(|count| count > all) {
            let text = format!(
                "must be less than or equal to {all} (the number of specified completions)"
            );
            errors.push(FieldError::invalid(
                path.child("succeededCount"),
                count,
                &text,
            ));
        }
    }
}
