//! Field errors: what is wrong with one field of an object, in the words the API server uses.

use std::fmt;

use serde_json::Value;

/// The machine-readable class of a [`FieldError`]; its name is the `reason` of a `Status` cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A required value is absent.
    Required,
    /// A value breaks a rule.
    Invalid,
    /// A value has the wrong JSON type.
    TypeInvalid,
    /// A value is not one of the allowed ones.
    NotSupported,
    /// A value stands twice where it must be unique.
    Duplicate,
    /// A field may not be set, or not now.
    Forbidden,
    /// A string or object is too large.
    TooLong,
    /// A list has too many items.
    TooMany,
    /// A referenced value does not exist.
    NotFound,
    /// The server failed while checking.
    Internal,
}

impl Reason {
    /// The `reason` of the `Status` cause.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Invalid => "FieldValueInvalid",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::NotFound => "FieldValueNotFound",
            Reason::Internal => "InternalError",
        }
    }
}

/// One thing wrong with one field. `Display` gives `path: message`, as in `spec.replicas: Invalid value: -1: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Path of the field, such as `spec.containers[0].name`.
    pub field: String,
    /// Class of the error.
    pub reason: Reason,
    /// The text without the path.
    pub message: String,
}

impl FieldError {
    fn new(field: impl Into<String>, reason: Reason, message: String) -> Self {
        Self {
            field: field.into(),
            reason,
            message,
        }
    }

    /// Reports that a field is missing: `Required value[: detail]`.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(
            field,
            Reason::Required,
            with_detail("Required value", detail),
        )
    }

    /// `Invalid value: <value>: detail`, the value as compact JSON.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(
            field,
            Reason::Invalid,
            with_detail(&format!("Invalid value: {value}"), detail),
        )
    }

    /// `Invalid value: "<type found>": detail`, for a value of the wrong JSON type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new(
            field,
            Reason::TypeInvalid,
            with_detail(&format!("Invalid value: {value}"), detail),
        )
    }

    /// `Unsupported value: <value>: supported values: "a", "b"`, the values sorted as given.
    pub fn not_supported<S: AsRef<str>>(
        field: impl Into<String>,
        value: &Value,
        supported: &[S],
    ) -> Self {
        let mut message = format!("Unsupported value: {value}");
        if !supported.is_empty() {
            let quoted: Vec<String> = supported
                .iter()
                .map(|s| format!("{:?}", s.as_ref()))
                .collect();
            message.push_str(": supported values: ");
            message.push_str(&quoted.join(", "));
        }
        Self::new(field, Reason::NotSupported, message)
    }

    /// Reports a value that occurs twice: `Duplicate value: <value>`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new(
            field,
            Reason::Duplicate,
            format!("Duplicate value: {value}"),
        )
    }

    /// Reports a field that may not be set: `Forbidden: detail`.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, Reason::Forbidden, with_detail("Forbidden", detail))
    }

    /// `Too long: may not be more than <max> bytes`
    pub fn too_long(field: impl Into<String>, max: usize) -> Self {
        Self::new(
            field,
            Reason::TooLong,
            format!("Too long: may not be more than {max} bytes"),
        )
    }

    /// `Too many: <actual>: must have at most <max> items`
    pub fn too_many(field: impl Into<String>, actual: usize, max: usize) -> Self {
        Self::new(
            field,
            Reason::TooMany,
            format!("Too many: {actual}: must have at most {max} items"),
        )
    }

    /// Reports a reference to something that does not exist: `Not found: <value>`.
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(field, Reason::NotFound, format!("Not found: {value}"))
    }

    /// Reports a failure that is not the user's: `Internal error: detail`.
    pub fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::new(
            field,
            Reason::Internal,
            with_detail("Internal error", detail),
        )
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

fn with_detail(head: &str, detail: &str) -> String {
    if detail.is_empty() {
        head.to_owned()
    } else {
        format!("{head}: {detail}")
    }
}
