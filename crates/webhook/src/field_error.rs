//! Errors of single fields, which API servers show as causes.

use std::fmt;

use serde_json::{Value, json};

use crate::validating::Denial;

/// Longest value that is repeated in a message; the rest is cut off.
const LONGEST_VALUE: usize = 200;

/// What is wrong with one field, in the words of API servers: `spec.port: Invalid value: 0: must be positive`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    path: String,
    reason: &'static str,
    message: String,
}

impl FieldError {
    fn new(path: impl Into<String>, reason: &'static str, message: String) -> Self {
        Self {
            path: path.into(),
            reason,
            message,
        }
    }

    /// The field has a value that it may not have.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::invalid("spec.port", 0, "must be positive");
    /// assert_eq!(error.to_string(), "spec.port: Invalid value: 0: must be positive");
    /// ```
    pub fn invalid(path: impl Into<String>, value: impl fmt::Debug, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(&value));
        Self::new(path, "FieldValueInvalid", message)
    }

    /// The field has no value and needs one.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::required("spec.name", "");
    /// assert_eq!(error.to_string(), "spec.name: Required value");
    /// ```
    pub fn required(path: impl Into<String>, detail: &str) -> Self {
        let message = with_detail("Required value", detail);
        Self::new(path, "FieldValueRequired", message)
    }

    /// The field has a value and may not have one.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::forbidden("spec.debug", "not in production");
    /// assert_eq!(error.to_string(), "spec.debug: Forbidden: not in production");
    /// ```
    pub fn forbidden(path: impl Into<String>, detail: &str) -> Self {
        let message = with_detail("Forbidden", detail);
        Self::new(path, "FieldValueForbidden", message)
    }

    /// The field repeats a value that has to be unique.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::duplicate("spec.ports[1]", "http");
    /// assert_eq!(error.to_string(), "spec.ports[1]: Duplicate value: \"http\"");
    /// ```
    pub fn duplicate(path: impl Into<String>, value: impl fmt::Debug) -> Self {
        let message = format!("Duplicate value: {}", shown(&value));
        Self::new(path, "FieldValueDuplicate", message)
    }

    /// The field has a value that is not one of those that it may have.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::not_supported("spec.mode", "c", &["a", "b"]);
    /// assert_eq!(error.to_string(), "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\"");
    /// ```
    pub fn not_supported(path: impl Into<String>, value: impl fmt::Debug, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|one| format!("{one:?}")).collect();
        let (value, known) = (shown(&value), known.join(", "));
        let message = format!("Unsupported value: {value}: supported values: {known}");
        Self::new(path, "FieldValueNotSupported", message)
    }

    /// The value of the field has more bytes than it may have.
    ///
    /// ```
    /// # use kubewright_webhook::FieldError;
    /// let error = FieldError::too_long("spec.title", 40);
    /// assert_eq!(error.to_string(), "spec.title: Too long: may not be more than 40 bytes");
    /// ```
    pub fn too_long(path: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self::new(path, "FieldValueTooLong", message)
    }

    /// The field that is wrong, as `spec.ports[0].name`.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn to_cause(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.path })
    }
}

/// What a value looks like in a message.
fn shown(value: &impl fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn with_detail(what: &str, detail: &str) -> String {
    if detail.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {detail}")
    }
}

/// All that is wrong with the fields of an object: the error of a validating function.
///
/// ```
/// use kubewright_webhook::{FieldError, FieldErrors};
///
/// fn validate(port: u16, name: &str) -> Result<(), FieldErrors> {
///     let mut errors = FieldErrors::new();
///     if port == 0 {
///         errors.push(FieldError::invalid("spec.port", port, "must be positive"));
///     }
///     if name.is_empty() {
///         errors.push(FieldError::required("spec.name", ""));
///     }
///     errors.into_result()
/// }
///
/// let errors = validate(0, "").unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "[spec.port: Invalid value: 0: must be positive, spec.name: Required value]",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// A list without any error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the error of a field.
    pub fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// Whether no field is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The errors, in the order in which they were added.
    ///
    /// ```
    /// # use kubewright_webhook::{FieldError, FieldErrors};
    /// let errors = FieldErrors::from(FieldError::too_long("spec.title", 40));
    /// let paths: Vec<&str> = errors.iter().map(FieldError::path).collect();
    /// assert_eq!(paths, ["spec.title"]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = &FieldError> {
        self.0.iter()
    }

    /// Whether the object is valid: fails with all errors if there are any.
    ///
    /// ```
    /// # use kubewright_webhook::{FieldError, FieldErrors};
    /// let mut errors = FieldErrors::new();
    /// assert!(errors.clone().into_result().is_ok());
    /// errors.push(FieldError::required("spec.name", ""));
    /// assert!(errors.into_result().is_err());
    /// ```
    ///
    /// # Errors
    /// When a field is wrong.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    pub(crate) fn to_causes(&self) -> Vec<Value> {
        self.0.iter().map(FieldError::to_cause).collect()
    }
}

impl From<FieldError> for FieldErrors {
    fn from(error: FieldError) -> Self {
        Self(vec![error])
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        self.0.extend(errors);
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<T: IntoIterator<Item = FieldError>>(errors: T) -> Self {
        Self(errors.into_iter().collect())
    }
}

impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        match &errors[..] {
            [one] => f.write_str(one),
            several => write!(f, "[{}]", several.join(", ")),
        }
    }
}

impl std::error::Error for FieldErrors {}

impl From<FieldErrors> for Denial {
    fn from(errors: FieldErrors) -> Self {
        Self::invalid(errors.to_string()).fields(errors)
    }
}

impl From<FieldError> for Denial {
    fn from(error: FieldError) -> Self {
        FieldErrors::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_errors_become_causes_of_the_status() {
        let mut errors = FieldErrors::new();
        errors.push(FieldError::not_supported("spec.mode", "c", &["a", "b"]));
        errors.push(FieldError::too_long("metadata.name", 52));
        let status = Denial::from(errors).to_status();
        assert_eq!(
            (&status["code"], &status["reason"]),
            (&json!(422), &json!("Invalid"))
        );
        let causes = json!([
            {
                "reason": "FieldValueNotSupported", "field": "spec.mode",
                "message": r#"Unsupported value: "c": supported values: "a", "b""#,
            },
            {
                "reason": "FieldValueTooLong", "field": "metadata.name",
                "message": "Too long: may not be more than 52 bytes",
            },
        ]);
        assert_eq!(status["details"]["causes"], causes);
    }

    #[test]
    fn each_field_error_has_the_reason_of_its_kind() {
        assert_eq!(FieldErrors::new().into_result(), Ok(()));
        let mut errors = FieldErrors::new();
        errors.push(FieldError::invalid("spec.a", 0, "is not positive"));
        errors.push(FieldError::required("spec.b", ""));
        errors.push(FieldError::forbidden("spec.c", "is set by the controller"));
        errors.push(FieldError::duplicate("spec.d[1]", "x"));
        let errors = errors.into_result().expect_err("there are some");
        let status = Denial::from(errors).to_status();
        let causes = status["details"]["causes"].as_array().expect("causes");
        let reasons: Vec<&str> = causes
            .iter()
            .filter_map(|cause| cause["reason"].as_str())
            .collect();
        let expected = ["Invalid", "Required", "Forbidden", "Duplicate"];
        assert_eq!(reasons, expected.map(|kind| format!("FieldValue{kind}")));
    }

    #[test]
    fn long_values_are_cut_in_messages() {
        let error = FieldError::invalid("spec.text", "x".repeat(1000), "is too much");
        assert!(error.to_string().len() < 300, "{error}");
    }
}
