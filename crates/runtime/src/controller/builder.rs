//! How a controller is described: what holds for all of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject};
use kubewright_cache::{Index, Key};
use kubewright_workqueue::{PriorityPolicy, RateLimiter};

use super::target::Target;
use super::worker::Worker;
use super::{Controller, Declare, Leadership, QueueOptions, Settings, TIMEOUT, WarmUp};
use crate::client::{Client, TypedObject};
use crate::requests::{ObjectEvent, Request};
use crate::watch::Source;

/// As far in the future as a timer reaches: thirty years, like tokio's own.
const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Describes a controller. `P` says what it is about: [objects of a kind](super::Primary), or
/// [nothing of its own](super::NoPrimary). It is made by [`Controller::of`], [`Controller::dynamic`] or
/// [`Controller::for_requests`].
#[must_use = "a builder does nothing until it is given a reconciler"]
pub struct Builder<P, R: Request = Key> {
    pub(super) primary: P,
    pub(super) common: Common<R>,
}

/// What every controller has.
pub(super) struct Common<R: Request> {
    name: Arc<str>,
    pub(super) sources: Vec<Box<dyn Source<R>>>,
    queue: QueueOptions<R>,
    timeout: Option<Duration>,
    settings: Settings,
    indexes: Vec<Declare>,
    cluster: Option<Arc<str>>,
}

impl<P, R: Request> Builder<P, R> {
    pub(super) fn new(name: &str, primary: P) -> Self {
        let common = Common {
            name: name.into(),
            sources: Vec::new(),
            queue: QueueOptions::default(),
            timeout: Some(TIMEOUT),
            settings: Settings::default(),
            indexes: Vec::new(),
            cluster: None,
        };
        Self { primary, common }
    }

    /// Adds a source of requests: a [`Watch`](crate::Watch), a [`Channel`](crate::watch::Channel), or one's own.
    pub fn watches(mut self, source: impl Source<R>) -> Self {
        self.common.sources.push(Box::new(source));
        self
    }

    /// Makes it a controller of a [further cluster](crate::Manager::cluster) of the manager: its objects, what it reads and
    /// writes, finalizers, events and indexes are there, as are watches that do not say otherwise. A cluster that the manager
    /// does not have is an error when the manager runs.
    ///
    /// [`Context::client`](crate::Context::client) is the client of that cluster;
    /// [`Client::home`](crate::Client::home) leads back to the manager's own, and [`Watch::home`](crate::Watch::home) watches
    /// objects there.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Outcome, from_fn};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("edge-deployments").cluster("edge").reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn cluster(mut self, name: &str) -> Self {
        self.common.cluster = Some(name.into());
        self
    }

    /// Adds an index to the cache of a kind, for [`Query::index`](crate::Query::index) and for
    /// [handlers](crate::Watch::map) of watches. It is there before the controller's watches start; a name that is taken is
    /// an error then.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example")
    ///     .index::<Deployment>("by-app", Index::by_label("app"))
    ///     .reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn index<T: TypedObject>(mut self, name: &str, index: Index<T>) -> Self {
        let name = name.to_owned();
        let declare = move |client: &Client| client.add_index(&name, index);
        self.common.indexes.push(Box::new(declare));
        self
    }

    /// Adds an index to the cache of a kind that is not known at compile time, as [`index`](Self::index) does for types. It is
    /// used with [`Client::dynamic`] and [`map_by_dynamic_index`](crate::Watch::map_by_dynamic_index).
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kube::core::{ApiResource, GroupVersionKind};
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Secret>, _| async { Ok(Outcome::done()) });
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// let controller = Controller::of::<Secret>("example")
    ///     .index_dynamic(&widgets, "by-team", Index::by_label("team"))
    ///     .reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn index_dynamic(
        mut self,
        resource: &ApiResource,
        name: &str,
        index: Index<DynamicObject>,
    ) -> Self {
        let (resource, name) = (resource.clone(), name.to_owned());
        let declare = move |client: &Client| client.dynamic(&resource).add_index(&name, index);
        self.common.indexes.push(Box::new(declare));
        self
    }

    /// Sets how many reconciles may run at once, each of another request. By default one.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").workers(4).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn workers(mut self, workers: usize) -> Self {
        self.common.settings.workers = workers.max(1);
        self
    }

    /// Sets how long failed requests wait. By default 5 ms, doubling up to 1000 s.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// use kubewright_workqueue::limiter::ExponentialBackoff;
    ///
    /// let limiter = ExponentialBackoff::new(Duration::from_millis(100), Duration::from_secs(60));
    /// let controller = Controller::of::<Deployment>("example").rate_limiter(limiter).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<R>) -> Self {
        self.common.queue.limiter = Box::new(limiter);
        self
    }

    /// Sets what priorities do to the order of requests. By default [`PriorityPolicy::FAIR`].
    pub fn priorities(mut self, policy: PriorityPolicy) -> Self {
        self.common.queue.priorities = policy;
        self
    }

    /// Takes only events for which this holds, of every watch of the controller: of its own objects, of those that it owns,
    /// and of those that it is [given](Builder::watches). Predicates of single watches hold as well.
    pub fn event_filter(
        mut self,
        holds: impl Fn(&ObjectEvent<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.common.queue.filter = Some(Arc::new(holds));
        self
    }

    /// Sets how long one reconcile may take before it is dropped and retried as an error. By default five minutes.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").timeout(Duration::from_secs(60)).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.common.timeout = Some(timeout);
        self
    }

    /// Sets how long the first state of all watches may take before the controller gives up. By default two minutes;
    /// `Duration::MAX` waits for ever, for a cluster that may be away.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").sync_timeout(Duration::from_secs(30)).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.common.settings.sync_timeout = timeout.min(FOR_EVER);
        self
    }

    /// Sets whether only a leader runs it.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").leadership(Leadership::NotNeeded).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn leadership(mut self, leadership: Leadership) -> Self {
        self.common.settings.leadership = leadership;
        self
    }

    /// Sets when its sources start, if it waits for leadership.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Index, Outcome, from_fn};
    /// # use kubewright_runtime::controller::{Leadership, WarmUp};
    /// # let reconciler = from_fn(|_: std::sync::Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").warm_up(WarmUp::OnLeadership).reconciler(reconciler);
    /// # drop(controller);
    /// ```
    pub fn warm_up(mut self, warm_up: WarmUp) -> Self {
        self.common.settings.warm_up = warm_up;
        self
    }
}

impl<R: Request> Common<R> {
    /// The controller, with what it does for each request.
    pub(super) fn build(self, target: Arc<dyn Target<R>>) -> Controller<R> {
        let work = Worker::new(self.name.clone(), target, self.timeout);
        let controller = Controller::new(
            self.name,
            self.settings,
            self.queue,
            self.sources,
            Arc::new(work),
        );
        controller.declaring(self.indexes).in_cluster(self.cluster)
    }
}

impl<P, R: Request> fmt::Debug for Builder<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder({})", self.common.name)
    }
}
