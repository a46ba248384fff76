//! Label selectors inside objects: are they well formed, and which labels do they choose.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::checks::{Errors, invalid_each};
use super::meta::validate_labels;
use super::path::Path;
use super::value::{entries, items, strings, text};

/// Checks a `LabelSelector` that is present.
pub(crate) fn validate(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    validate_labels(&selector["matchLabels"], &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (i, requirement) in items(&selector["matchExpressions"]).iter().enumerate() {
        validate_requirement(requirement, &expressions.index(i), errors);
    }
}

fn validate_requirement(requirement: &Value, path: &Path<'_>, errors: &mut Errors) {
    let values = items(&requirement["values"]);
    match text(&requirement["operator"]) {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            path.child("values"),
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
            path.child("values"),
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            path.child("operator"),
            &other.into(),
            "not a valid selector operator",
        )),
    }
    let key = text(&requirement["key"]);
    invalid_each(names::qualified_name(key), key, &path.child("key"), errors);
    for (i, value) in strings(&requirement["values"]).enumerate() {
        let path = path.child("values");
        invalid_each(names::label_value(value), value, &path.index(i), errors);
    }
}

/// Whether the selector chooses nothing in particular.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(&selector["matchLabels"]).next().is_none()
        && items(&selector["matchExpressions"]).is_empty()
}

/// Whether a selector that is present chooses these labels; an absent one chooses none. `None` when the selector
/// makes no sense, in which case [`validate`] has complained.
pub(crate) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let mut all =
        entries(&selector["matchLabels"]).all(|(key, value)| labels.get(key) == Some(value));
    for requirement in items(&selector["matchExpressions"]) {
        all &= requirement_matches(requirement, labels)?;
    }
    Some(all)
}

fn requirement_matches(requirement: &Value, labels: &Value) -> Option<bool> {
    let label = labels.get(text(&requirement["key"]));
    let values = items(&requirement["values"]);
    let listed = label.is_some_and(|label| values.contains(label));
    match (text(&requirement["operator"]), values.is_empty()) {
        ("In", false) => Some(listed),
        ("NotIn", false) => Some(!listed),
        ("Exists", true) => Some(label.is_some()),
        ("DoesNotExist", true) => Some(label.is_none()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expression(operator: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]})
    }

    #[test]
    fn expressions_choose_labels() {
        let (with, without) = (json!({"a": "1"}), json!({"b": "1"}));
        for (selector, first, second) in [
            (json!({"matchLabels": {"a": "1"}}), Some(true), Some(false)),
            (expression("In", &["1", "2"]), Some(true), Some(false)),
            (expression("NotIn", &["1"]), Some(false), Some(true)),
            (expression("Exists", &[]), Some(true), Some(false)),
            (expression("DoesNotExist", &[]), Some(false), Some(true)),
            (json!({}), Some(true), Some(true)),
            (expression("Near", &[]), None, None),
        ] {
            assert_eq!(matches(&selector, &with), first, "{selector}");
            assert_eq!(matches(&selector, &without), second, "{selector}");
        }
        assert_eq!(matches(&Value::Null, &with), Some(false));
    }

    #[test]
    fn broken_expressions_are_named() {
        let mut errors = Errors::new();
        validate(
            &expression("Near", &["-"]),
            &Path::Root("spec.selector"),
            &mut errors,
        );
        validate(
            &expression("In", &[]),
            &Path::Root("spec.selector"),
            &mut errors,
        );
        let fields: Vec<&str> = errors.iter().map(|e| e.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "spec.selector.matchExpressions[0].operator",
                "spec.selector.matchExpressions[0].values[0]",
                "spec.selector.matchExpressions[0].values"
            ]
        );
    }
}
