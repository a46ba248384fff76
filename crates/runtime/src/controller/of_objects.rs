//! How a controller of objects is described.

use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject};
use kubewright_cache::{Key, Scope};

use super::builder::Common;
use super::finalizing::{Finalizing, Named};
use super::target::{ObjectTarget, Target};
use super::{Builder, Controller};
use crate::client::{Client, Object, Objects, TypedObject, is_cluster_scoped};
use crate::predicate::Predicate;
use crate::reconciler::Reconciler;
use crate::watch::{OwnedBy, OwnerScope, Relation, Watch};

/// The objects that a controller reconciles, in its description.
pub struct Primary<K> {
    resource: ApiResource,
    reach: OwnerScope,
    watch: Watch<K>,
    objects: fn(&Client, &ApiResource) -> Objects<K>,
    scope: Option<Scope>,
    finalizer: Option<Arc<dyn Finalizing<K>>>,
}

impl Controller {
    /// Describes a controller of objects of a type. The name is in logs, metrics and events.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, from_fn};
    /// async fn reconcile(deployment: Arc<Deployment>, cx: Context) -> Result<Outcome, Error> {
    ///     tracing::info!(key = %cx.key(), generation = deployment.metadata.generation, "seen");
    ///     Ok(Outcome::done())
    /// }
    ///
    /// let controller = Controller::of::<Deployment>("observer").reconciler(from_fn(reconcile));
    /// # drop(controller);
    /// ```
    pub fn of<K: TypedObject>(name: &str) -> Builder<Primary<K>> {
        let reach = if is_cluster_scoped::<K>() {
            OwnerScope::Cluster
        } else {
            OwnerScope::Namespaced
        };
        let resource = ApiResource::erase::<K>(&());
        let primary = Primary::new(resource, reach, Watch::of(), |client, _| client.of());
        Builder::new(name, primary)
    }

    /// Describes a controller of objects of a resource that is not known at compile time.
    pub fn dynamic(
        name: &str,
        resource: &ApiResource,
        reach: OwnerScope,
    ) -> Builder<Primary<DynamicObject>> {
        let watch = Watch::dynamic(resource);
        let primary = Primary::new(resource.clone(), reach, watch, Client::dynamic);
        Builder::new(name, primary)
    }
}

impl<K> Primary<K> {
    fn new(
        resource: ApiResource,
        reach: OwnerScope,
        watch: Watch<K>,
        objects: fn(&Client, &ApiResource) -> Objects<K>,
    ) -> Self {
        Self {
            resource,
            reach,
            watch,
            objects,
            scope: None,
            finalizer: None,
        }
    }
}

impl<K: Object> Builder<Primary<K>> {
    /// Takes only changes of the objects themselves for which this holds.
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.primary.watch = self.primary.watch.when(predicate);
        self
    }

    /// Takes only objects in a part of what the [cache](crate::cache) holds of the kind. Reads by the client are not
    /// narrowed. A namespace that is not cached is an error when the controller starts.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.primary.watch = self.primary.watch.scope(scope.clone());
        self.primary.scope = Some(scope);
        self
    }

    /// Reconciles every object again after this time, without asking the server.
    pub fn resync(mut self, period: Duration) -> Self {
        self.primary.watch = self.primary.watch.resync(period);
        self
    }

    /// Reconciles the object that controls an object of this type when that one changes.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, from_fn};
    /// # let reconciler = from_fn(|_: Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// // A ConfigMap that somebody edits or deletes has its Deployment reconciled.
    /// let controller = Controller::of::<Deployment>("example").owns::<ConfigMap>().reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn owns<T: TypedObject>(self) -> Self {
        let watch = self.owned::<T>(OwnedBy::Controller);
        self.watches(watch)
    }

    /// A watch of objects that these own, to be refined and given to [`watches`](Builder::watches).
    pub fn owned<T: TypedObject>(&self, which: OwnedBy) -> Watch<T> {
        self.refined(Watch::of(), which)
    }

    /// Reconciles the object that controls an object of this resource when that one changes: [`owns`](Self::owns) for kinds that
    /// are not known at compile time.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kube::core::{ApiResource, GroupVersionKind};
    /// # use kubewright_runtime::{Controller, Outcome, from_fn};
    /// # let reconciler = from_fn(|_: Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let controller = Controller::of::<Deployment>("example").owns_dynamic(&widgets).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn owns_dynamic(self, resource: &ApiResource) -> Self {
        let watch = self.owned_dynamic(resource, OwnedBy::Controller);
        self.watches(watch)
    }

    /// A watch of objects of this resource that these own, to be refined and given to [`watches`](Builder::watches).
    pub fn owned_dynamic(&self, resource: &ApiResource, which: OwnedBy) -> Watch<DynamicObject> {
        self.refined(Watch::dynamic(resource), which)
    }

    /// The watch, which leads to the owners that this controller is about.
    fn refined<T: Object>(&self, watch: Watch<T>, which: OwnedBy) -> Watch<T> {
        watch.owned_by(&self.primary.resource, which, self.primary.reach)
    }

    /// Holds every object with this finalizer until [`Reconciler::cleanup`] has done its work: the finalizer is added before
    /// the first reconcile of an object, and removed after the clean-up.
    pub fn finalizer(mut self, name: &str) -> Self {
        self.primary.finalizer = Some(Arc::new(Named(name.into())));
        self
    }

    /// The controller, with what it does for each object.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, from_fn};
    /// let reconciler = from_fn(|deployment: Arc<Deployment>, _cx: Context| async move {
    ///     let ready = deployment.status.as_ref().and_then(|status| status.ready_replicas);
    ///     tracing::info!(?ready, "looked at");
    ///     Ok(Outcome::done())
    /// });
    /// let controller = Controller::of::<Deployment>("example").reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn reconciler(mut self, reconciler: impl Reconciler<K>) -> Controller {
        let Primary {
            resource,
            watch,
            objects,
            scope,
            finalizer,
            ..
        } = self.primary;
        let watch = watch.relation(Relation::Reconciled);
        self.common.sources.insert(0, Box::new(watch));
        build(
            self.common,
            Arc::new(ObjectTarget {
                objects,
                resource,
                scope,
                finalizer,
                reconciler,
            }),
        )
    }
}

/// Not generic, so that workers of keys are compiled here and not in every program.
fn build(common: Common<Key>, target: Arc<dyn Target<Key>>) -> Controller {
    common.build(target)
}

impl<K> std::fmt::Debug for Primary<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Primary({})", self.resource.kind)
    }
}
