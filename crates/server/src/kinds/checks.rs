//! Checks that many kinds share: signs, ranges, one of several words, immutability, numbers or percentages.

use kubewright_schema::FieldError;
use kubewright_schema::names;
use serde_json::Value;

use super::path::Path;
use super::value::{alike, text};

/// What is wrong with an object, in the order it was found.
pub(crate) type Errors = Vec<FieldError>;

/// The words for a field that may not change.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// One `Invalid value` per complaint of a name rule.
pub(crate) fn invalid_each(
    complaints: Vec<String>,
    value: impl Into<Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if complaints.is_empty() {
        return;
    }
    let value = value.into();
    errors.extend(
        complaints
            .iter()
            .map(|text| FieldError::invalid(path, &value, text)),
    );
}

/// A number that is present is not below zero.
pub(crate) fn non_negative(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if value.as_i64().is_some_and(|n| n < 0) {
        errors.push(FieldError::invalid(
            path,
            value,
            "must be greater than or equal to 0",
        ));
    }
}

/// A field of the parent that is present is not below zero.
pub(crate) fn non_negative_fields(
    parent: &Value,
    fields: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for field in fields {
        non_negative(&parent[*field], &path.child(field), errors);
    }
}

/// A number that is present lies within bounds.
pub(crate) fn in_range(value: &Value, low: i64, high: i64, path: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = value.as_i64() {
        invalid_each(names::in_range(number, low, high), number, path, errors);
    }
}

/// A word is one of several; an absent word is reported like an empty one.
pub(crate) fn one_of(value: &Value, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !allowed.contains(&text(value)) {
        errors.push(FieldError::not_supported(
            path,
            &text(value).into(),
            allowed,
        ));
    }
}

/// A word that is present is one of several.
pub(crate) fn one_of_if_set(value: &Value, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if !value.is_null() {
        one_of(value, allowed, path, errors);
    }
}

/// A word is there, and one of several.
pub(crate) fn required_one_of(
    value: &Value,
    allowed: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if text(value).is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        one_of(value, allowed, path, errors);
    }
}

/// A word is there.
pub(crate) fn required(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if super::value::is_empty(value) {
        errors.push(FieldError::required(path, ""));
    }
}

/// The spec did not change.
pub(crate) fn spec_is_immutable(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"], &old["spec"]);
    immutable(new, old, &Path::Root("spec"), errors);
}

/// A field did not change.
pub(crate) fn immutable(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !alike(new, old) {
        errors.push(FieldError::invalid(path, new, IMMUTABLE));
    }
}

/// A whole number or a percentage, not below zero.
pub(crate) fn number_or_percent(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::String(percent) => {
            invalid_each(names::percent(percent), value.clone(), path, errors);
        }
        _ => non_negative(value, path, errors),
    }
}

/// A percentage is at most 100 %.
pub(crate) fn at_most_100_percent(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if percent_value(value).is_some_and(|n| n > 100) {
        errors.push(FieldError::invalid(
            path,
            value,
            "must not be greater than 100%",
        ));
    }
}

/// The number of a whole number or percentage, zero when it is neither.
pub(crate) fn number_value(value: &Value) -> i64 {
    percent_value(value)
        .or_else(|| value.as_i64())
        .or_else(|| text(value).parse().ok())
        .unwrap_or(0)
}

fn percent_value(value: &Value) -> Option<i64> {
    let percent = value.as_str()?;
    if !names::percent(percent).is_empty() {
        return None;
    }
    Some(percent.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// A port number.
pub(crate) fn port_number(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let port = value.as_i64().unwrap_or(0);
    invalid_each(names::port_number(port), port, path, errors);
}

/// A port by number or name.
pub(crate) fn port(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Value::String(name) => {
            invalid_each(names::port_name(name), value.clone(), path, errors);
        }
        _ => port_number(value, path, errors),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(check: impl Fn(&Path<'_>, &mut Errors)) -> Vec<String> {
        let mut errors = Errors::new();
        check(&Path::Root("f"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn complaints_read_like_the_api_server_writes_them() {
        assert_eq!(
            report(|p, e| non_negative(&json!(-1), p, e)),
            ["f: Invalid value: -1: must be greater than or equal to 0"]
        );
        assert_eq!(
            report(|p, e| one_of(&json!("x"), &["A", "B"], p, e)),
            ["f: Unsupported value: \"x\": supported values: \"A\", \"B\""]
        );
        assert_eq!(
            report(|p, e| immutable(&json!({"a": 1}), &json!({"a": 2}), p, e)),
            ["f: Invalid value: {\"a\":1}: field is immutable"]
        );
        assert_eq!(
            report(|p, e| port(&json!(0), p, e)),
            ["f: Invalid value: 0: must be between 1 and 65535, inclusive"]
        );
    }

    #[test]
    fn percentages_have_a_number() {
        assert_eq!(number_value(&json!("25%")), 25);
        assert_eq!(number_value(&json!(3)), 3);
        assert_eq!(number_value(&json!("x")), 0);
        assert_eq!(
            report(|p, e| at_most_100_percent(&json!("101%"), p, e)).len(),
            1
        );
        assert_eq!(
            report(|p, e| number_or_percent(&json!("1.5%"), p, e)).len(),
            1
        );
    }
}
