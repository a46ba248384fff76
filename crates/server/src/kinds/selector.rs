//! Label selectors inside objects: are they well formed, and which labels do they choose.

use kubewright_schema::selector::{LabelSelector, validate_label_selector};
use serde_json::Value;

use super::checks::Errors;
use super::path::Path;
use super::value::{entries, items};

/// Checks a `LabelSelector` that is present.
pub(crate) fn validate(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(validate_label_selector(selector, path));
}

/// Whether the selector chooses nothing in particular.
pub(crate) fn is_empty(selector: &Value) -> bool {
    entries(&selector["matchLabels"]).next().is_none()
        && items(&selector["matchExpressions"]).is_empty()
}

/// Whether a selector that is present chooses these labels; an absent one chooses none. `None` when the selector
/// makes no sense, in which case [`validate`] has complained.
pub(crate) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    let selector = LabelSelector::from_object(selector).ok()?;
    Some(selector.matches(labels))
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
}
