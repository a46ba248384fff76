//! What validation of a value found, in the words of the API server's OpenAPI validator.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::{FieldError, Reason};
use crate::go::Num;

/// The path of errors that belong to no field.
pub(super) const NOWHERE: &str = "<nil>";

/// Errors of a value, and how many checks it passed: of several failing alternatives the one that passed most
/// checks is reported.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<FieldError>,
    pub(super) matches: u32,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn merge(&mut self, other: Outcome) {
        self.errors.extend(other.errors);
        self.matches = self.matches.saturating_add(other.matches);
    }

    pub(super) fn add(&mut self, error: FieldError) {
        self.errors.push(error);
    }

    pub(super) fn matched(&mut self) {
        self.matches = self.matches.saturating_add(1);
    }

    /// Alternatives repeat errors of each other; each is reported once.
    pub(super) fn remove_repeated(&mut self) {
        let mut seen = HashSet::new();
        self.errors
            .retain(|e| seen.insert((e.field.clone(), e.message.clone())));
    }
}

/// `Invalid value: <printed>: detail`, the value printed as Go would.
pub(super) fn invalid_printed(path: &str, printed: &str, detail: &str) -> FieldError {
    FieldError {
        field: path.to_owned(),
        reason: Reason::Invalid,
        message: format!("Invalid value: {printed}: {detail}"),
    }
}

/// `Invalid value: <value>: <path> in body <detail>`
pub(super) fn invalid(path: &str, value: &Value, detail: &str) -> FieldError {
    FieldError::invalid(path, value, &format!("{path} in body {detail}"))
}

/// [`invalid`] for a number.
pub(super) fn invalid_number(path: &str, number: Num, detail: &str) -> FieldError {
    let detail = format!("{path} in body {detail}");
    invalid_printed(path, &number.display(), &detail)
}

/// An error without a field: the validator reports what concerns several fields this way.
pub(super) fn invalid_nowhere(detail: String) -> FieldError {
    FieldError::invalid(NOWHERE, &Value::from(""), &detail)
}

/// `<path> in body must be of type <expected>: "<found>"`
pub(super) fn wrong_type(path: &str, expected: &str, found: &str) -> FieldError {
    let detail = format!("{path} in body must be of type {expected}: {found:?}");
    FieldError::type_invalid(path, &Value::from(found), &detail)
}

/// `Too long`, with the unit in the singular where it belongs.
pub(super) fn too_long(path: &str, max: u64) -> FieldError {
    let unit = if max == 1 { "byte" } else { "bytes" };
    FieldError {
        field: path.to_owned(),
        reason: Reason::TooLong,
        message: format!("Too long: may not be more than {max} {unit}"),
    }
}

/// `Too many`, with the unit in the singular where it belongs.
pub(super) fn too_many(path: &str, actual: usize, max: u64) -> FieldError {
    let unit = if max == 1 { "item" } else { "items" };
    FieldError {
        field: path.to_owned(),
        reason: Reason::TooMany,
        message: format!("Too many: {actual}: must have at most {max} {unit}"),
    }
}

/// A value that is not in the `enum`.
pub(super) fn unsupported(path: &str, value: &Value, allowed: &[Value]) -> FieldError {
    let allowed: Vec<String> = allowed
        .iter()
        .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
        .collect();
    FieldError::not_supported(path, value, &allowed)
}
