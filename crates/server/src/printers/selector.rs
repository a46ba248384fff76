//! Label selectors and label sets as one line of text.

use serde_json::Value;

use super::view::{list, map, text};

/// A selector that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Invalid;

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
        Ok(text) if text.is_empty() => "<none>".to_owned(),
        Ok(text) => text,
        Err(Invalid) => "<error>".to_owned(),
    }
}

/// A label selector in the query syntax: `a=b,c in (d,e),!f`, sorted by key.
pub(super) fn query(object: &Value, path: &str) -> Result<String, Invalid> {
    let Some(selector) = super::view::at(object, path) else {
        return Ok(String::new());
    };
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in map(selector, "matchLabels").into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        requirements.push((key, format!("{key}={value}")));
    }
    for expression in list(selector, "matchExpressions") {
        requirements.push((text(expression, "key"), requirement(expression)?));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Ok(texts.join(","))
}

fn requirement(expression: &Value) -> Result<String, Invalid> {
    let key = text(expression, "key");
    let mut values: Vec<&str> = list(expression, "values")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    let values = values.join(",");
    let has_values = !list(expression, "values").is_empty();
    match (text(expression, "operator"), has_values) {
        ("In", true) => Ok(format!("{key} in ({values})")),
        ("NotIn", true) => Ok(format!("{key} notin ({values})")),
        ("Exists", false) => Ok(key.to_owned()),
        ("DoesNotExist", false) => Ok(format!("!{key}")),
        _ => Err(Invalid),
    }
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
