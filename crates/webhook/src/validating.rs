//! Validation: whether an object may be stored, and if not, why.

use std::future::{Future, ready};
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::admission::{Admission, Operation, Request, Response};

/// Why something may not be done. The API server passes the words on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    code: u16,
    reason: &'static str,
    message: String,
}

impl Denial {
    /// The rules do not allow it.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message: message.into(),
        }
    }

    /// The object is not right, as API servers say it of their own kinds.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self {
            code: 422,
            reason: "Invalid",
            message: message.into(),
        }
    }

    /// The question makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self {
            code: 400,
            reason: "BadRequest",
            message: message.into(),
        }
    }

    /// The answer could not be found out; another try may help.
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            code: 500,
            reason: "InternalError",
            message: message.into(),
        }
    }

    pub(crate) fn to_status(&self) -> Value {
        json!({
            "status": "Failure", "code": self.code, "reason": self.reason, "message": self.message,
        })
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

/// Yes, with warnings or without, or why not.
pub type Verdict = Result<Vec<String>, Denial>;

/// What a validating function may return.
pub trait IntoVerdict {
    /// The verdict.
    fn into_verdict(self) -> Verdict;
}

impl<E: Into<Denial>> IntoVerdict for Result<(), E> {
    fn into_verdict(self) -> Verdict {
        self.map(|()| Vec::new()).map_err(Into::into)
    }
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Verdict {
        self
    }
}

/// Judges objects of a kind. Functions `fn(&K, Option<&K>) -> Result<(), E>` do: they are asked about new and changed
/// objects, with what was there before, and let deletions pass.
pub trait Validating<K>: Send + Sync + 'static {
    /// Whether an object may be created.
    fn create(&self, object: &K, request: &Request) -> impl Future<Output = Verdict> + Send;

    /// Whether an object may become another.
    fn update(
        &self,
        object: &K,
        old: &K,
        request: &Request,
    ) -> impl Future<Output = Verdict> + Send;

    /// Whether an object may be deleted.
    fn delete(&self, old: &K, request: &Request) -> impl Future<Output = Verdict> + Send;
}

impl<K, F, R> Validating<K> for F
where
    F: Fn(&K, Option<&K>) -> R + Send + Sync + 'static,
    R: IntoVerdict,
{
    fn create(&self, object: &K, _: &Request) -> impl Future<Output = Verdict> + Send {
        ready(self(object, None).into_verdict())
    }

    fn update(&self, object: &K, old: &K, _: &Request) -> impl Future<Output = Verdict> + Send {
        ready(self(object, Some(old)).into_verdict())
    }

    fn delete(&self, _: &K, _: &Request) -> impl Future<Output = Verdict> + Send {
        ready(Ok(Vec::new()))
    }
}

/// Gives questions their type.
pub(crate) struct Judge<K, V> {
    pub(crate) validating: V,
    pub(crate) kind: PhantomData<fn() -> K>,
}

impl<K, V> Judge<K, V>
where
    K: DeserializeOwned + Send + Sync,
    V: Validating<K>,
{
    async fn judge(&self, request: &Request) -> Verdict {
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

impl<K, V> Admission for Judge<K, V>
where
    K: DeserializeOwned + Send + Sync + 'static,
    V: Validating<K>,
{
    async fn admit(&self, request: Request) -> Response {
        match self.judge(&request).await {
            Ok(warnings) => warnings
                .into_iter()
                .fold(Response::allowed(), Response::warn),
            Err(denial) => Response::denied(denial),
        }
    }
}
