//! Defaulting: fills in an object before it is validated and stored.

use std::future::{Future, ready};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::admission::{Admission, Operation, Request, Response};
use crate::overlay::overlay;
use crate::validating::Denial;

/// Sets the defaults of objects of a kind. Functions `fn(&mut K)` do.
///
/// What the type does not know of an object is left alone.
pub trait Defaulting<K>: Send + Sync + 'static {
    /// Sets the fields that are missing. It may be called more than once for one object, and must then give the same result.
    ///
    /// # Errors
    /// When the object may not be stored, or no default can be found.
    fn set_defaults(
        &self,
        object: &mut K,
        request: &Request,
    ) -> impl Future<Output = Result<(), Denial>> + Send;
}

impl<K, F> Defaulting<K> for F
where
    F: Fn(&mut K) + Send + Sync + 'static,
{
    fn set_defaults(
        &self,
        object: &mut K,
        _: &Request,
    ) -> impl Future<Output = Result<(), Denial>> + Send {
        self(object);
        ready(Ok(()))
    }
}

/// Decodes the object of a request for what sets its defaults.
pub(crate) struct DefaultingHandler<K, D> {
    pub(crate) defaulting: D,
    pub(crate) kind: PhantomData<fn() -> K>,
}

impl<K, D> DefaultingHandler<K, D>
where
    K: Serialize + DeserializeOwned + Send,
    D: Defaulting<K>,
{
    async fn defaulted(&self, request: &Request) -> Result<Value, Denial> {
        let mut object: K = request.decode()?;
        let before = encode(&object)?;
        self.defaulting.set_defaults(&mut object, request).await?;
        let after = encode(&object)?;
        Ok(overlay(request.object.clone(), &before, &after))
    }
}

impl<K, D> Admission for DefaultingHandler<K, D>
where
    K: Serialize + DeserializeOwned + Send + 'static,
    D: Defaulting<K>,
{
    async fn admit(&self, request: Request) -> Response {
        if !matches!(request.operation, Operation::Create | Operation::Update) {
            return Response::allowed();
        }
        match self.defaulted(&request).await {
            Ok(object) => Response::changed(&request.object, &object),
            Err(denial) => Response::denied(denial),
        }
    }
}

fn encode(object: &impl Serialize) -> Result<Value, Denial> {
    serde_json::to_value(object)
        .map_err(|error| Denial::internal(format!("the object does not encode: {error}")))
}
