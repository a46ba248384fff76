//! What a user writes: the reconciler.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use kubewright_cache::Key;

use crate::finalizer::Cleanup;
use crate::{Context, Error, Outcome};

/// Brings the actual state in line with what an object specifies.
///
/// A reconcile starts from the object as it is now, not from what changed: it is run when anything may have changed, also
/// when nothing did, and one object never in two runs at once.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// Makes the world as the object says.
    fn reconcile(
        &self,
        object: Arc<K>,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Cleans up after an object that is being deleted, where the controller has a
    /// [finalizer](crate::controller::Builder::finalizer). The object goes away when this returns [`Cleanup::Done`]; after
    /// [`Cleanup::NotYet`] it is called again, as its outcome says or when something changes.
    fn cleanup(
        &self,
        _object: Arc<K>,
        _cx: &Context,
    ) -> impl Future<Output = Result<Cleanup<Outcome>, Error>> + Send {
        async { Ok(Cleanup::Done) }
    }

    /// The [cache](crate::cache) holds no object of this key: it does not exist any more, or never did.
    ///
    /// It is called for keys in the namespaces that the cache and the controller's scope have, also for keys that another
    /// watch leads to. An object that merely left the controller's scope exists, and is not gone. Where the cache itself has
    /// selectors, an object that they no longer select looks the same as one that was deleted. What needs the
    /// object to be cleaned up belongs in a [finalizer](crate::finalizer) instead: this may never run.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Service;
    /// use kubewright_runtime::{Context, Error, Key, Outcome, Reconciler};
    ///
    /// struct Names;
    ///
    /// impl Reconciler<Service> for Names {
    ///     async fn reconcile(&self, _service: Arc<Service>, _cx: &Context) -> Result<Outcome, Error> {
    ///         Ok(Outcome::done())
    ///     }
    ///
    ///     /// What is counted for a Service that is gone is not counted any more.
    ///     async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome, Error> {
    ///         let sizes = cx.metrics().gauge("service_endpoints", "How many endpoints a Service has", &["service"])?;
    ///         sizes.remove([key.as_str()]);
    ///         Ok(Outcome::done())
    ///     }
    /// }
    /// ```
    fn gone(
        &self,
        _key: &Key,
        _cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send {
        async { Ok(Outcome::done()) }
    }
}

/// Does what a request asks for, in a controller [without objects of its own](crate::Controller::for_requests).
///
/// As with objects, one request is never in two runs at once, and a run starts from how things are now.
pub trait RequestReconciler<R>: Send + Sync + 'static {
    /// Makes the world as it should be for this request.
    fn reconcile(
        &self,
        request: R,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// Every function of a request and a context is a reconciler of requests.
impl<R, F, T> RequestReconciler<R> for F
where
    R: Send + 'static,
    F: Fn(R, Context) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    async fn reconcile(&self, request: R, cx: &Context) -> Result<Outcome, Error> {
        self(request, cx.clone()).await
    }
}

/// A reconciler from a function.
pub fn from_fn<K, F, R>(reconcile: F) -> impl Reconciler<K>
where
    K: Send + Sync + 'static,
    F: Fn(Arc<K>, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    FromFn(reconcile, PhantomData)
}

struct FromFn<K, F>(F, PhantomData<fn(K)>);

impl<K, F, R> Reconciler<K> for FromFn<K, F>
where
    K: Send + Sync + 'static,
    F: Fn(Arc<K>, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Outcome, Error>> + Send + 'static,
{
    async fn reconcile(&self, object: Arc<K>, cx: &Context) -> Result<Outcome, Error> {
        (self.0)(object, cx.clone()).await
    }
}
