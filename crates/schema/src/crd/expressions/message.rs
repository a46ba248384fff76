//! The messages about rules that do not hold or cannot be evaluated.

use serde_json::Value;

use crate::field::{FieldError, Reason};
use crate::rules::Validation;

/// `Invalid value: "<type>": detail`, for what is wrong with a rule rather than with the value.
pub(super) fn invalid(field: &str, ty: &str, detail: &str) -> FieldError {
    FieldError::invalid(field, &Value::from(ty), detail)
}

/// The error of a rule that does not hold; objects and lists are not printed.
pub(super) fn broken(
    field: &str,
    (ty, value): (&str, &Value),
    detail: &str,
    reason: Option<&str>,
) -> FieldError {
    let printed = !matches!(ty, "object" | "array");
    let bare = |reason: Reason, message: String| FieldError {
        field: field.to_owned(),
        reason,
        message,
    };
    match reason {
        Some("FieldValueForbidden") => FieldError::forbidden(field, detail),
        Some("FieldValueRequired") => FieldError::required(field, detail),
        Some("FieldValueDuplicate") if printed => FieldError::duplicate(field, value),
        Some("FieldValueDuplicate") => bare(Reason::Duplicate, "Duplicate value".to_owned()),
        _ if printed => FieldError::invalid(field, value, detail),
        _ => bare(Reason::Invalid, format!("Invalid value: {detail}")),
    }
}

pub(super) fn failure(error: &str, rule: &Validation) -> String {
    let rule = named(rule);
    if error.starts_with("no such overload") {
        return format!(
            "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {rule}"
        );
    }
    format!("{error} evaluating rule: {rule}")
}

/// How errors name a rule: by its message if it has one.
pub(super) fn named(rule: &Validation) -> &str {
    if rule.message.is_empty() {
        rule.rule.trim()
    } else {
        rule.message.trim()
    }
}

pub(super) fn default_message(rule: &Validation) -> String {
    if rule.message.is_empty() {
        format!("failed rule: {}", rule.rule.trim())
    } else {
        rule.message.trim().to_owned()
    }
}
