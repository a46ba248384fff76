//! What a worker reconciles: the objects of a kind, or requests without an object.

use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Key, Reader, Scope};

use super::finalizing::Finalizing;
use crate::cache::Narrow;
use crate::client::{Client, Informers, Object, Objects};
use crate::reconciler::{Reconciler, RequestReconciler};
use crate::requests::Request;
use crate::{Context, Error, Outcome};

/// The part of a worker that knows what is reconciled.
pub(crate) trait Target<R: Request>: Send + Sync + 'static {
    /// What one worker reads from and reconciles with.
    fn view(self: Arc<Self>, client: &Client) -> Box<dyn View<R>>;
}

/// What is reconciled, as one worker sees it.
pub(crate) trait View<R: Request>: Send + Sync + 'static {
    /// Every request that exists, so that a replica which takes over from another knows what to do. None if they cannot
    /// be listed: such requests are not sharded, and every replica works on all of them.
    fn all(&self) -> Option<Vec<R>>;

    fn reconcile<'a>(
        &'a self,
        request: &'a R,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;
}

/// Objects of a kind, read from the cache for each reconcile.
pub(super) struct ObjectTarget<K, T> {
    pub(super) objects: fn(&Client, &ApiResource) -> Objects<K>,
    pub(super) resource: ApiResource,
    pub(super) scope: Option<Scope>,
    /// What comes before and after, if objects are held until the reconciler has cleaned up.
    pub(super) finalizer: Option<Arc<dyn Finalizing<K>>>,
    pub(super) reconciler: T,
}

impl<K: Object, T: Reconciler<K>> ObjectTarget<K, T> {
    /// Reconciles an object, or cleans up after it if it is being deleted.
    async fn reconcile_object(&self, object: Arc<K>, cx: &Context) -> Result<Outcome, Error> {
        let Some(finalizer) = &self.finalizer else {
            return self.reconciler.reconcile(object, cx).await;
        };
        // That of the reconcile, so that its writes are among those of the reconcile.
        let objects = (self.objects)(cx.client(), &self.resource);
        finalizer.run(objects, object, &self.reconciler, cx).await
    }
}

/// The objects as one worker sees them.
struct ObjectView<K, T> {
    target: Arc<ObjectTarget<K, T>>,
    objects: Objects<K>,
    informers: Informers<K>,
    /// What of the objects the controller sees.
    narrow: Narrow,
    reader: Reader<K>,
    /// Whether the cache keeps only a part of the objects.
    partial: bool,
}

/// How long a key waits whose object exists and is not in the cache yet.
const CATCH_UP: Duration = Duration::from_millis(500);

impl<K: Object, T: Reconciler<K>> Target<Key> for ObjectTarget<K, T> {
    fn view(self: Arc<Self>, client: &Client) -> Box<dyn View<Key>> {
        let objects = (self.objects)(client, &self.resource);
        let informers = objects.informer();
        Box::new(ObjectView {
            reader: informers.reader(),
            // The watch of the objects has failed to start if there is anything wrong with it.
            narrow: objects.narrowed(self.scope.as_ref()).unwrap_or_default(),
            partial: client.factory().is_selected(&self.resource),
            target: self,
            objects,
            informers,
        })
    }
}

impl<K: Object, T: Reconciler<K>> View<Key> for ObjectView<K, T> {
    fn all(&self) -> Option<Vec<Key>> {
        let snapshot = self.reader.snapshot();
        let seen = snapshot.iter().filter(|entry| self.narrow.admits(entry));
        Some(seen.map(|entry| entry.key().clone()).collect())
    }

    fn reconcile<'a>(
        &'a self,
        key: &'a Key,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.reconcile_key(key, cx))
    }
}

impl<K: Object, T: Reconciler<K>> ObjectView<K, T> {
    async fn reconcile_key(&self, key: &Key, cx: &Context) -> Result<Outcome, Error> {
        if !self.objects.covers(key) || !self.narrow.covers(key) {
            tracing::debug!("the key is outside of what the controller sees");
            return Ok(Outcome::done());
        }
        self.objects.caught_up(&self.informers, key).await?;
        let Some(entry) = self.reader.entry(key) else {
            // The shard may have come before its objects.
            if self.partial && self.objects.get_live(key).await?.is_some() {
                return Ok(Outcome::requeue_after(CATCH_UP));
            }
            return self.target.reconciler.gone(key, cx).await;
        };
        if !self.narrow.admits(&entry) {
            tracing::debug!("the object exists, outside of what the controller sees");
            return Ok(Outcome::done());
        }
        match entry.value() {
            Some(object) => self.target.reconcile_object(object, cx).await,
            // The cache has reported it; another run cannot fix it, another state can.
            None => Err(Error::terminal(format!(
                "{} {} does not decode",
                self.target.resource.kind,
                key.as_str()
            ))),
        }
    }
}

/// Requests without an object.
pub(super) struct RequestTarget<T>(pub(super) T);

impl<R: Request, T: RequestReconciler<R>> Target<R> for RequestTarget<T> {
    fn view(self: Arc<Self>, _client: &Client) -> Box<dyn View<R>> {
        Box::new(RequestView(self))
    }
}

struct RequestView<T>(Arc<RequestTarget<T>>);

impl<R: Request, T: RequestReconciler<R>> View<R> for RequestView<T> {
    fn all(&self) -> Option<Vec<R>> {
        None
    }

    fn reconcile<'a>(
        &'a self,
        request: &'a R,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        // Within the future, where a panic of a function that is not async is caught too.
        Box::pin(async move { self.0.0.reconcile(request.clone(), cx).await })
    }
}
