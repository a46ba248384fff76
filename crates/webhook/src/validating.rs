//! Validation: whether an object may be stored, and if not, why.

use std::future::{Future, ready};
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admission::{Admission, Operation, Request, Response, Subject};
use crate::field_error::FieldErrors;

/// Why something may not be done. The API server passes the words on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    code: u16,
    reason: &'static str,
    message: String,
    fields: FieldErrors,
    /// The kind and the name of the object, once they are known.
    object: Option<Box<(Subject, String)>>,
}

impl Denial {
    /// The rules do not allow it.
    ///
    /// ```
    /// # use kubewright_webhook::Denial;
    /// let denial = Denial::new("nobody may do that on a Friday");
    /// assert_eq!(denial.to_string(), "nobody may do that on a Friday");
    /// ```
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message: message.into(),
            fields: FieldErrors::default(),
            object: None,
        }
    }

    /// The object is not right, as API servers say it of their own kinds.
    ///
    /// ```
    /// # use kubewright_webhook::Denial;
    /// let denial = Denial::invalid("pages cannot be torn out");
    /// assert_eq!(denial.to_string(), "pages cannot be torn out");
    /// ```
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: 422,
            reason: "Invalid",
            message: message.into(),
            fields: FieldErrors::default(),
            object: None,
        }
    }

    /// The question makes no sense.
    ///
    /// ```
    /// # use kubewright_webhook::Denial;
    /// let denial = Denial::bad_request("the object has no spec");
    /// assert_eq!(denial.to_string(), "the object has no spec");
    /// ```
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: 400,
            reason: "BadRequest",
            message: message.into(),
            fields: FieldErrors::default(),
            object: None,
        }
    }

    /// The answer could not be found out; another try may help.
    ///
    /// ```
    /// # use kubewright_webhook::Denial;
    /// let denial = Denial::internal("the registry does not answer");
    /// assert_eq!(denial.to_string(), "the registry does not answer");
    /// ```
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            code: 500,
            reason: "InternalError",
            message: message.into(),
            fields: FieldErrors::default(),
            object: None,
        }
    }

    /// The same, because of these fields: API servers show them as causes.
    ///
    /// ```
    /// # use kubewright_webhook::{Denial, FieldError, FieldErrors};
    /// let fields = FieldErrors::from(FieldError::required("spec.name", ""));
    /// let denial = Denial::invalid("the object is not complete").fields(fields);
    /// # drop(denial);
    /// ```
    #[must_use]
    pub fn fields(mut self, fields: FieldErrors) -> Self {
        self.fields = fields;
        self
    }

    /// The same, of this object: where single fields are wrong, the message begins with its kind and name, as API servers'
    /// own do.
    pub(crate) fn of(mut self, request: &Request) -> Self {
        if !self.fields.is_empty() {
            let kind = &request.kind;
            let dot = if kind.group.is_empty() { "" } else { "." };
            let (name, errors) = (&request.name, &self.fields);
            let (kind, group) = (&kind.kind, &kind.group);
            self.message = format!("{kind}{dot}{group} {name:?} is invalid: {errors}");
            self.object = Some(Box::new((request.kind.clone(), name.clone())));
        }
        self
    }

    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "status": "Failure", "code": self.code, "reason": self.reason, "message": self.message,
        });
        if !self.fields.is_empty() {
            status["details"] = json!({ "causes": self.fields.to_causes() });
        }
        // As errors.NewInvalid of apimachinery does: kubectl begins with the kind and the name. Without causes it would print
        // nothing else.
        if let Some((kind, name)) = self.object.as_deref() {
            status["details"]["name"] = name.as_str().into();
            status["details"]["group"] = kind.group.as_str().into();
            status["details"]["kind"] = kind.kind.as_str().into();
        }
        status
    }
}

impl From<String> for Denial {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for Denial {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// What becomes of a validation: it is allowed, with these warnings for the user, or denied.
pub type ValidationResult = Result<Vec<String>, Denial>;

/// What a validating function may return.
pub trait IntoValidationResult: sealed::Sealed {
    /// Converts what the function returned.
    fn into_validation_result(self) -> ValidationResult;
}

mod sealed {
    pub trait Sealed {}
    impl<T, E> Sealed for Result<T, E> {}
}

impl<E: Into<Denial>> IntoValidationResult for Result<(), E> {
    fn into_validation_result(self) -> ValidationResult {
        self.map(|()| Vec::new()).map_err(Into::into)
    }
}

impl IntoValidationResult for ValidationResult {
    fn into_validation_result(self) -> ValidationResult {
        self
    }
}

/// Validates objects of a kind. Functions `fn(&K, Option<&K>) -> Result<(), E>` do: they are asked about new and changed
/// objects, with what was there before, and let deletions pass.
pub trait Validating<K>: Send + Sync + 'static {
    /// Whether an object may be created. By default it may.
    fn create(
        &self,
        _object: &K,
        _request: &Request,
    ) -> impl Future<Output = ValidationResult> + Send {
        ready(Ok(Vec::new()))
    }

    /// Whether an object may be changed. By default it may.
    fn update(
        &self,
        _object: &K,
        _old: &K,
        _request: &Request,
    ) -> impl Future<Output = ValidationResult> + Send {
        ready(Ok(Vec::new()))
    }

    /// Whether an object may be deleted. By default it may.
    fn delete(
        &self,
        _old: &K,
        _request: &Request,
    ) -> impl Future<Output = ValidationResult> + Send {
        ready(Ok(Vec::new()))
    }
}

impl<K, F, R> Validating<K> for F
where
    F: Fn(&K, Option<&K>) -> R + Send + Sync + 'static,
    R: IntoValidationResult,
{
    fn create(&self, object: &K, _: &Request) -> impl Future<Output = ValidationResult> + Send {
        ready(self(object, None).into_validation_result())
    }

    fn update(
        &self,
        object: &K,
        old: &K,
        _: &Request,
    ) -> impl Future<Output = ValidationResult> + Send {
        ready(self(object, Some(old)).into_validation_result())
    }

    fn delete(&self, _: &K, _: &Request) -> impl Future<Output = ValidationResult> + Send {
        ready(Ok(Vec::new()))
    }
}

/// Decodes the objects of a request for what validates them.
pub(crate) struct ValidatingHandler<K, V> {
    pub(crate) validating: V,
    pub(crate) kind: PhantomData<fn() -> K>,
}

impl<K, V> ValidatingHandler<K, V>
where
    K: DeserializeOwned + Send + Sync,
    V: Validating<K>,
{
    async fn validate(&self, request: &Request) -> ValidationResult {
        match request.operation {
            Operation::Create => self.validating.create(&request.decode()?, request).await,
            Operation::Update => {
                let (object, old) = (request.decode()?, request.decode_old()?);
                self.validating.update(&object, &old, request).await
            }
            Operation::Delete => {
                self.validating
                    .delete(&request.decode_old()?, request)
                    .await
            }
            Operation::Connect => Ok(Vec::new()),
        }
    }
}

impl<K, V> Admission for ValidatingHandler<K, V>
where
    K: DeserializeOwned + Send + Sync + 'static,
    V: Validating<K>,
{
    async fn admit(&self, request: Request) -> Response {
        match self.validate(&request).await {
            Ok(warnings) => warnings
                .into_iter()
                .fold(Response::allowed(), Response::warn),
            Err(denial) => Response::denied(denial.of(&request)),
        }
    }
}
