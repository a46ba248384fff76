//! Label selectors and label sets as one line of text.

use kubewright_schema::selector::LabelSelector;
use serde_json::Value;

use super::view::{at, map};

/// `a=b,c=d`, or `<none>`: a plain map of labels.
pub(super) fn labels(object: &Value, path: &str) -> String {
    let Some(labels) = map(object, path).filter(|labels| !labels.is_empty()) else {
        return "<none>".to_owned();
    };
    let mut pairs: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    pairs.join(",")
}

/// A label selector in the query syntax, `<none>` when it is empty, `<error>` when it is invalid.
pub(super) fn selector(object: &Value, path: &str) -> String {
    match query(object, path) {
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
        None => "<error>".to_owned(),
    }
}

/// A label selector in the query syntax: `a=b,c in (d,e),!f`, sorted by key. `None` when it makes no sense.
pub(super) fn query(object: &Value, path: &str) -> Option<String> {
    let selector = at(object, path).unwrap_or(&Value::Null);
    let selector = LabelSelector::from_object(selector).ok()?;
    Some(selector.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(selector_value: Value, expect: &str) {
        let object = json!({ "selector": selector_value });
        assert_eq!(selector(&object, "selector"), expect, "{object}");
    }

    #[test]
    fn selectors_are_written_sorted_by_key() {
        check(json!(null), "<none>");
        check(json!({}), "<none>");
        check(json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2");
        check(
            json!({"matchLabels": {"m": "1"}, "matchExpressions": [
                {"key": "z", "operator": "NotIn", "values": ["y", "x"]},
                {"key": "a", "operator": "In", "values": ["c", "b"]},
                {"key": "e", "operator": "Exists"},
                {"key": "d", "operator": "DoesNotExist"}]}),
            "a in (b,c),!d,e,m=1,z notin (x,y)",
        );
    }

    #[test]
    fn selector_that_cannot_be_understood_is_an_error() {
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "<error>",
        );
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
            "<error>",
        );
    }
}
