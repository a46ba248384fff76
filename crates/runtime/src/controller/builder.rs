//! How a controller is described.

use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject};
use kubewright_cache::{Index, Key, Scope};
use kubewright_workqueue::{PriorityPolicy, RateLimiter};

use super::target::ObjectTarget;
use super::worker::Worker;
use super::{Controller, Declare, Leadership, QueueOptions, Settings, TIMEOUT, WarmUp};
use crate::client::{Client, Object, Objects, TypedObject, is_cluster_scoped};
use crate::predicate::Predicate;
use crate::reconciler::Reconciler;
use crate::requests::ObjectEvent;
use crate::watch::{OwnedBy, OwnerScope, Relation, Source, Watch};

/// Describes a controller of objects of one kind.
#[must_use = "a builder does nothing until it is given a reconciler"]
pub struct Builder<K> {
    name: Arc<str>,
    resource: ApiResource,
    reach: OwnerScope,
    primary: Watch<K>,
    objects: fn(&Client, &ApiResource) -> Objects<K>,
    scope: Option<Scope>,
    sources: Vec<Box<dyn Source>>,
    queue: QueueOptions<Key>,
    timeout: Option<Duration>,
    settings: Settings,
    indexes: Vec<Declare>,
}

impl Controller {
    /// A controller of objects of a type. The name is in logs, metrics and events.
    pub fn of<K: TypedObject>(name: &str) -> Builder<K> {
        let reach = match is_cluster_scoped::<K>() {
            true => OwnerScope::Cluster,
            false => OwnerScope::Namespaced,
        };
        let resource = ApiResource::erase::<K>(&());
        Builder::new(name, resource, reach, Watch::of(), |client, _| client.of())
    }

    /// A controller of objects of a resource that is not known at compile time.
    pub fn dynamic(
        name: &str,
        resource: &ApiResource,
        reach: OwnerScope,
    ) -> Builder<DynamicObject> {
        let watch = Watch::dynamic(resource);
        Builder::new(name, resource.clone(), reach, watch, Client::dynamic)
    }
}

impl<K: Object> Builder<K> {
    fn new(
        name: &str,
        resource: ApiResource,
        reach: OwnerScope,
        primary: Watch<K>,
        objects: fn(&Client, &ApiResource) -> Objects<K>,
    ) -> Self {
        Self {
            name: name.into(),
            resource,
            reach,
            primary,
            objects,
            scope: None,
            sources: Vec::new(),
            queue: QueueOptions::default(),
            timeout: Some(TIMEOUT),
            settings: Settings::default(),
            indexes: Vec::new(),
        }
    }

    /// Only changes of the objects themselves for which this holds.
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.primary = self.primary.when(predicate);
        self
    }

    /// Only objects in a part of what the [cache](crate::cache) holds of the kind. Reads by the client are not narrowed. A
    /// namespace that is not cached is an error when the controller starts.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.primary = self.primary.scope(scope.clone());
        self.scope = Some(scope);
        self
    }

    /// Tells of every object again after this time, without asking the server.
    pub fn resync(mut self, period: Duration) -> Self {
        self.primary = self.primary.resync(period);
        self
    }

    /// A change of an object of this type leads to the object that manages it.
    pub fn owns<T: TypedObject>(self) -> Self {
        let watch = self.owned::<T>(OwnedBy::Controller);
        self.watches(watch)
    }

    /// A watch of objects that these own, to be refined and given to [`watches`](Builder::watches).
    pub fn owned<T: TypedObject>(&self, which: OwnedBy) -> Watch<T> {
        Watch::of().owned_by(&self.resource, which, self.reach)
    }

    /// Another source of keys: a [`Watch`], a [`Channel`](crate::watch::Channel), or one's own.
    pub fn watches(mut self, source: impl Source) -> Self {
        self.sources.push(Box::new(source));
        self
    }

    /// Adds an index to the cache of a kind, for [`Query::index`](crate::Query::index). It is there before the controller's
    /// watches start; a name that is taken is an error then.
    pub fn index<T: TypedObject>(mut self, name: &str, index: Index<T>) -> Self {
        let name = name.to_owned();
        let declare = move |client: &Client| client.add_index(&name, index);
        self.indexes.push(Box::new(declare));
        self
    }

    /// How many reconciles may run at once, each of another key. By default one.
    pub fn workers(mut self, workers: usize) -> Self {
        self.settings.workers = workers.max(1);
        self
    }

    /// How long failed keys wait. By default 5 ms, doubling up to 1000 s.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<Key>) -> Self {
        self.queue.limiter = Box::new(limiter);
        self
    }

    /// What priorities do to the order of keys. By default [`PriorityPolicy::FAIR`].
    pub fn priorities(mut self, policy: PriorityPolicy) -> Self {
        self.queue.priorities = policy;
        self
    }

    /// Only events for which this holds, of every watch of the controller: of its own objects, of those that it owns, and of
    /// those that it is [given](Builder::watches). Predicates of single watches hold as well.
    pub fn event_filter(
        mut self,
        holds: impl Fn(&ObjectEvent<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.queue.filter = Some(Arc::new(holds));
        self
    }

    /// How long one reconcile may take before it is dropped and retried as an error. By default five minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long the first state of all watches may take before the controller gives up. By default two minutes.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.settings.sync_timeout = timeout;
        self
    }

    /// Whether only a leader runs it.
    pub fn leadership(mut self, leadership: Leadership) -> Self {
        self.settings.leadership = leadership;
        self
    }

    /// When its sources start, if it waits for leadership.
    pub fn warm_up(mut self, warm_up: WarmUp) -> Self {
        self.settings.warm_up = warm_up;
        self
    }

    /// The controller, with what it does.
    pub fn reconciler(self, reconciler: impl Reconciler<K>) -> Controller {
        let target = ObjectTarget {
            objects: self.objects,
            resource: self.resource,
            scope: self.scope,
            reconciler,
        };
        let work = Worker::new(self.name.clone(), target, self.timeout);
        let primary = self.primary.relation(Relation::Reconciled);
        let mut sources: Vec<Box<dyn Source>> = vec![Box::new(primary)];
        sources.extend(self.sources);
        let controller = Controller::new(
            self.name,
            self.settings,
            self.queue,
            sources,
            Arc::new(work),
        );
        controller.declaring(self.indexes)
    }
}

impl<K> std::fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Builder({})", self.name)
    }
}
