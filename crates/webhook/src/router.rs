//! All webhooks of a program: which function answers at which path.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::BoxFuture;
use crate::admission::{Admission, Request, Response};
use crate::conversion::{Converter, ObjectConversionError, Ways};
use crate::defaulting::{Defaulting, DefaultingHandler};
use crate::review::{AdmissionReview, ConversionReview, NoReview};
use crate::state::States;
use crate::validating::{Denial, Validating, ValidatingHandler};

/// What is sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// A review, in JSON.
    Review(Bytes),
    /// The body is not a review; the text has the reason.
    BadRequest(String),
    /// Nobody answers at this path.
    NotFound,
}

/// The webhooks of a program, by path. Cheap to clone.
#[derive(Clone, Default)]
#[must_use]
pub struct Webhooks {
    paths: BTreeMap<String, Route>,
    states: States,
}

#[derive(Clone)]
enum Route {
    Admission(Arc<dyn Erased>),
    /// Several kinds can be converted at one path.
    Conversion(Vec<Ways>),
}

impl Route {
    /// Both at one path; of two that do not go together the other.
    fn and(self, other: Self) -> Self {
        let (Self::Conversion(mut all), Self::Conversion(more)) = (self, other.clone()) else {
            return other;
        };
        for ways in more {
            let left = all
                .iter_mut()
                .try_fold(ways, |ways, known| known.join(ways));
            all.extend(left);
        }
        Self::Conversion(all)
    }
}

/// An [`Admission`] whose type nobody needs to know.
trait Erased: Send + Sync {
    fn admit(&self, request: Request) -> BoxFuture<'_, Response>;
}

impl<A: Admission> Erased for A {
    fn admit(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(Admission::admit(self, request))
    }
}

impl Webhooks {
    /// Creates a router without any webhooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the defaults of objects of a kind.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_webhook::Webhooks;
    /// fn default(map: &mut ConfigMap) {
    ///     map.immutable.get_or_insert(true);
    /// }
    /// let webhooks = Webhooks::new().defaulting("/mutate", default);
    /// assert!(!webhooks.is_empty());
    /// ```
    pub fn defaulting<K>(self, path: &str, defaulting: impl Defaulting<K>) -> Self
    where
        K: Serialize + DeserializeOwned + Send + 'static,
    {
        let kind = PhantomData;
        self.admission(path, DefaultingHandler { defaulting, kind })
    }

    /// Validates objects of a kind.
    pub fn validating<K>(self, path: &str, validating: impl Validating<K>) -> Self
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let kind = PhantomData;
        self.admission(path, ValidatingHandler { validating, kind })
    }

    /// Answers in its own way.
    pub fn admission(mut self, path: &str, admission: impl Admission) -> Self {
        let route = Route::Admission(Arc::new(admission));
        self.paths.insert(path.to_owned(), route);
        self
    }

    /// Converts objects of a kind, beside those of other kinds at the same path.
    pub fn converting<H>(self, path: &str, converter: Converter<H>) -> Self
    where
        H: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static,
    {
        let route = Route::Conversion(vec![converter.erase()]);
        self.and(Self {
            paths: [(path.to_owned(), route)].into(),
            states: States::default(),
        })
    }

    /// Gives functions a value of a type, which they get with [`Request::state`]. A manager that serves them gives them its own
    /// values as well; of two of one type that of the webhooks counts.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Gives functions these values, unless they have one of the same type.
    pub fn with_states(mut self, states: &States) -> Self {
        self.states.add_missing(states);
        self
    }

    /// Those of both. Of two at one path, and of two states of one type, the other's counts, unless both convert.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_webhook::Webhooks;
    /// let maps = Webhooks::new().defaulting("/mutate-map", |_: &mut ConfigMap| {});
    /// let secrets = Webhooks::new().defaulting("/mutate-secret", |_: &mut Secret| {});
    /// assert_eq!(maps.and(secrets).paths().count(), 2);
    /// ```
    pub fn and(mut self, mut other: Self) -> Self {
        other.states.add_missing(&self.states);
        self.states = other.states;
        for (path, route) in other.paths {
            let route = match self.paths.remove(&path) {
                Some(known) => known.and(route),
                None => route,
            };
            self.paths.insert(path, route);
        }
        self
    }

    /// Returns whether no webhook is registered.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Where they answer, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.keys().map(String::as_str)
    }

    /// The kinds that are converted: group, kind, and the versions that can be converted to one another.
    pub fn converted(&self) -> impl Iterator<Item = (&str, &str, Vec<&str>)> {
        let conversions = self.paths.values().filter_map(|route| match route {
            Route::Conversion(all) => Some(all),
            Route::Admission(_) => None,
        });
        conversions.flatten().map(Ways::known)
    }

    /// Answers what was posted to a path.
    ///
    /// ```
    /// # use kubewright_webhook::{Answer, Webhooks};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// # runtime.block_on(async {
    /// let webhooks = Webhooks::new();
    /// assert!(matches!(webhooks.answer("/nobody", b"{}").await, Answer::NotFound));
    /// # });
    /// ```
    pub async fn answer(&self, path: &str, body: &[u8]) -> Answer {
        let answered = match self.paths.get(path) {
            None => return Answer::NotFound,
            Some(Route::Admission(admission)) => self.admit(&**admission, path, body).await,
            Some(Route::Conversion(ways)) => convert(ways, body),
        };
        match answered {
            Ok(review) => Answer::Review(review.to_string().into()),
            Err(problem) => Answer::BadRequest(problem.to_string()),
        }
    }

    async fn admit(
        &self,
        admission: &dyn Erased,
        path: &str,
        body: &[u8],
    ) -> Result<Value, NoReview> {
        let (api_version, mut request) = AdmissionReview::read(body)?.into_parts();
        request.states = self.states.clone();
        let uid = request.uid.clone();
        let admitted = AssertUnwindSafe(async { admission.admit(request).await });
        let response = admitted.catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(path, uid, "a webhook panicked");
            Response::denied(Denial::internal("the webhook panicked"))
        });
        Ok(AdmissionReview::answer(&api_version, &uid, &response))
    }
}

fn convert(ways: &[Ways], body: &[u8]) -> Result<Value, NoReview> {
    let (api_version, request) = ConversionReview::read(body)?.into_parts();
    let convert = |object: Value| {
        let mut able = ways.iter().filter(|ways| ways.is_for(&object));
        let Some(ways) = able.next() else {
            let kind = object["kind"].clone();
            return Err(ObjectConversionError::UnknownKind(kind));
        };
        let converted = AssertUnwindSafe(|| ways.convert(object, &request.desired));
        std::panic::catch_unwind(converted).unwrap_or(Err(ObjectConversionError::Panicked))
    };
    let converted: Result<Vec<Value>, _> = request.objects.into_iter().map(convert).collect();
    Ok(ConversionReview::answer(
        &api_version,
        &request.uid,
        converted,
    ))
}

impl fmt::Debug for Webhooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.paths.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
