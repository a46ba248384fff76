//! Watches: which changes of which objects lead to a reconcile of which key.
//!
//! A [`Source`] feeds keys to a controller. [`Watch`] is the one for objects of the cluster, [`Channel`] the one for
//! everything else; a program can write its own.

mod by_index;
mod channel;
mod handler;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{Cached, Event, HandlerOptions, Key, Scope, SyncError};
use tokio::time::{Instant, sleep_until};

pub use channel::{Channel, Sender};
pub use handler::{EventHandler, EventQueue};

use crate::cause::Origin;
use crate::client::{Client, ClientError, Informers, Object, Objects, TypedObject};
use crate::predicate::Predicate;
use crate::requests::{Request, Requests};
use handler::Mapped;

/// How often a refused watch is looked at again while a controller waits for it.
const RETRY: Duration = Duration::from_secs(1);

/// Something that says what is to be reconciled.
pub trait Source<R: Request = Key>: Send + 'static {
    /// Starts, and completes once everything that is known from the beginning has been added. It goes on until what it
    /// returned is dropped.
    fn start(
        self: Box<Self>,
        client: Client,
        requests: Requests<R>,
    ) -> BoxFuture<'static, Result<Running, SourceError>>;

    /// What this is a source of, for logs.
    fn describe(&self) -> String;

    /// Which objects of the cluster it reads, and what they are to the controller. None where it reads none.
    fn subject(&self) -> Option<Subject> {
        None
    }
}

/// Objects that a controller has to do with: what permissions and diagrams are made from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    /// The resource of the watched objects.
    pub resource: ApiResource,
    /// What they are to the controller.
    pub relation: Relation,
    cluster: Whose,
}

impl Subject {
    /// Objects of a resource in the controller's cluster, for a [`Source`] of one's own.
    pub fn new(resource: ApiResource, relation: Relation) -> Self {
        Self {
            resource,
            relation,
            cluster: Whose::Controller,
        }
    }

    /// The name of the [further cluster](crate::Manager::cluster) that they are of; none for the manager's own.
    pub fn cluster(&self) -> Option<&str> {
        match &self.cluster {
            Whose::Further(name) => Some(name),
            Whose::Controller | Whose::Home => None,
        }
    }

    /// The same, of a controller of this cluster.
    pub(crate) fn seen_from(mut self, cluster: Option<&str>) -> Self {
        if let (Whose::Controller, Some(name)) = (&self.cluster, cluster) {
            self.cluster = Whose::Further(name.to_owned());
        }
        self
    }
}

/// What objects are to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Relation {
    /// They are what it reconciles.
    Reconciled,
    /// It makes them, and removes them.
    Owned,
    /// It looks at them.
    Watched,
}

/// A source that runs. Dropping it stops the source.
#[must_use = "a source stops when this is dropped"]
pub struct Running(Option<Box<dyn FnOnce() + Send>>);

impl Running {
    /// Runs until it is dropped, and then does this.
    pub fn until(stop: impl FnOnce() + Send + 'static) -> Self {
        Self(Some(Box::new(stop)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop();
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

/// Why a source did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The cache behind it has no state.
    #[error("{resource} cannot be watched")]
    Watch {
        /// The resource.
        resource: String,
        /// Why.
        #[source]
        source: SyncError,
    },
    /// A watch maps its objects by an index that nobody has added.
    #[error("{0}")]
    Index(Box<MissingIndex>),
    /// The source failed for another reason.
    #[error("{0}")]
    Other(String),
}

/// An index that a watch maps its objects by, and that nobody has added.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingIndex {
    /// The resource that is watched.
    pub watched: String,
    /// The name that the watch has for the index.
    pub index: String,
    /// The resource that the index should be of.
    pub indexed: String,
    /// The names of the indexes that this resource has.
    pub known: Vec<String>,
}

impl fmt::Display for MissingIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (watched, index, indexed) = (&self.watched, &self.index, &self.indexed);
        let known = self.known.join(", ");
        write!(
            f,
            "{watched} are mapped by the index {index:?} of {indexed}, which was not added; the indexes of {indexed} are: {known}"
        )
    }
}

/// Looks for the index that a watch of a resource maps by.
type FindIndex = Box<dyn FnOnce(&Client, &str) -> Result<(), MissingIndex> + Send>;

type Choose<K> = Box<dyn FnOnce(&Client) -> Objects<K> + Send>;

/// A watch of the objects of one kind, and what their changes ask of a controller.
#[must_use = "a watch does nothing until a controller has it"]
pub struct Watch<K, R: Request = Key> {
    resource: ApiResource,
    choose: Choose<K>,
    handler: Arc<dyn EventHandler<K, R>>,
    when: Option<Predicate<K>>,
    scope: Option<Scope>,
    resync: Option<Duration>,
    presence: Presence,
    relation: Relation,
    /// Whether the mapper reads more than metadata.
    needs_value: bool,
    /// Finds the index that the mapper needs, if it needs one.
    index: Option<FindIndex>,
    cluster: Whose,
}

/// The cluster whose objects are watched.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// The cluster of the controller.
    Controller,
    /// The manager's own cluster.
    Home,
    /// A further cluster of the manager.
    Further(String),
}

impl Whose {
    /// The client of that cluster, from the controller's.
    fn client(&self, client: &Client) -> Result<Client, ClientError> {
        match self {
            Self::Controller => Ok(client.clone()),
            Self::Home => Ok(client.home()),
            Self::Further(name) => client.cluster(name),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// Which of an object's owners are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OwnedBy {
    /// The one that manages it.
    #[default]
    Controller,
    /// Every owner of the object.
    Anyone,
}

impl Watch<()> {
    /// Watches objects of a type. Unless they are [mapped](Watch::map), each leads to a reconcile of its own key.
    pub fn of<K: TypedObject>() -> Watch<K> {
        let resource = ApiResource::erase::<K>(&());
        Watch::new(resource, Box::new(|client| client.of()))
    }

    /// Watches objects of a resource that is not known at compile time.
    pub fn dynamic(resource: &ApiResource) -> Watch<DynamicObject> {
        let own = resource.clone();
        Watch::new(
            resource.clone(),
            Box::new(move |client| client.dynamic(&own)),
        )
    }

    /// Watches the metadata of objects of a resource: the cache keeps nothing else.
    pub fn metadata(resource: &ApiResource) -> Watch<PartialObjectMeta<DynamicObject>> {
        let own = resource.clone();
        Watch::new(
            resource.clone(),
            Box::new(move |client| client.metadata(&own)),
        )
    }
}

impl<K: Object> Watch<K> {
    fn new(resource: ApiResource, choose: Choose<K>) -> Self {
        let own_key = |object: &Cached<K>, _: &Client| vec![object.key().clone()];
        Self {
            resource,
            choose,
            handler: Arc::new(Mapped(own_key)),
            when: None,
            scope: None,
            resync: None,
            presence: Presence::Required,
            relation: Relation::Watched,
            needs_value: false,
            index: None,
            cluster: Whose::Controller,
        }
    }

    /// A change leads to the owner of this kind: group and kind decide, not the version in the reference.
    pub fn owned_by(mut self, owner: &ApiResource, which: OwnedBy, reach: OwnerScope) -> Self {
        self.relation = Relation::Owned;
        let (group, kind) = (owner.group.clone(), owner.kind.clone());
        self.handled_by(Mapped(move |object: &Cached<K>, _: &Client| {
            let owners = object.owners().into_iter();
            let owners = owners.filter(|owner| owner.kind == kind && owner.group() == group);
            let owners = owners.filter(|owner| which == OwnedBy::Anyone || owner.controller);
            owners
                .map(|owner| reach.key(object.key(), &owner.name))
                .collect()
        }))
    }
}

impl<K: Object, R: Request> Watch<K, R> {
    pub(crate) fn relation(mut self, relation: Relation) -> Self {
        self.relation = relation;
        self
    }

    /// What a change of an object leads to. The function is asked about the state before as well as the one after. It
    /// must not block; an object that does not decode leads to nothing. A panic ends the manager, since the change would be lost.
    pub fn map<Q: Request>(
        self,
        map: impl Fn(&K, &Client) -> Vec<Q> + Send + Sync + 'static,
    ) -> Watch<K, Q> {
        let mut watch =
            self.handled_by(Mapped(
                move |object: &Cached<K>, client: &Client| match object.value() {
                    Some(value) => map(&value, client),
                    None => Vec::new(),
                },
            ));
        watch.needs_value = true;
        watch
    }

    /// What a change leads to, decided by a handler that sees the event and adds to the queue itself: after a delay, rate
    /// limited, or with a priority.
    pub fn handler<Q: Request>(self, handler: impl EventHandler<K, Q>) -> Watch<K, Q> {
        self.handled_by(handler)
    }

    fn handled_by<Q: Request>(self, handler: impl EventHandler<K, Q>) -> Watch<K, Q> {
        Watch {
            resource: self.resource,
            choose: self.choose,
            handler: Arc::new(handler),
            when: self.when,
            scope: self.scope,
            resync: self.resync,
            presence: self.presence,
            relation: self.relation,
            needs_value: self.needs_value,
            index: None,
            cluster: self.cluster,
        }
    }

    /// Only changes for which this holds.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Key, Predicate, Scope, Watch};
    /// let watch = Watch::of::<Secret>().when(Predicate::labels_changed());
    /// # drop(watch);
    /// ```
    pub fn when(mut self, predicate: Predicate<K>) -> Self {
        self.when = Some(predicate);
        self
    }

    /// Only a part of what the [cache](crate::cache) holds of the kind: what enters the part is added, what leaves it is
    /// deleted. A namespace that is not cached is an error when the watch starts.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Key, Predicate, Scope, Watch};
    /// let watch = Watch::of::<Secret>().scope(Scope::all().namespace("vault"));
    /// # drop(watch);
    /// ```
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Watches objects of a [further cluster](crate::Manager::cluster) of the manager, instead of the controller's. Mappers,
    /// handlers and [`map_by_index`](Watch::map_by_index) still get the client of the controller: what they lead to is there.
    /// A cluster that the manager does not have is an error when the watch starts.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # use kubewright_runtime::Watch;
    /// let watch = Watch::of::<Secret>().cluster("edge");
    /// # drop(watch);
    /// ```
    pub fn cluster(mut self, name: &str) -> Self {
        self.cluster = Whose::Further(name.to_owned());
        self
    }

    /// Watches objects of the manager's own cluster, which needs to be said in a controller of
    /// [another one](crate::controller::Builder::cluster) alone.
    pub fn home(mut self) -> Self {
        self.cluster = Whose::Home;
        self
    }

    /// Tells of every object again after this time, without asking the server.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// The kind may not be there yet: the controller does not wait for it, and picks it up when it appears.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kubewright_runtime::{Key, Predicate, Scope, Watch};
    /// let watch = Watch::of::<Secret>().optional();
    /// # drop(watch);
    /// ```
    pub fn optional(mut self) -> Self {
        self.presence = Presence::Optional;
        self
    }
}

/// Where an owner lives, seen from what it owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnerScope {
    /// In the same namespace.
    Namespaced,
    /// The owner lives in no namespace.
    Cluster,
}

impl OwnerScope {
    fn key(self, owned: &Key, owner: &str) -> Key {
        match (self, owned.namespace()) {
            (Self::Namespaced, Some(namespace)) => Key::new(namespace, owner),
            _ => Key::cluster(owner),
        }
    }
}

impl<K: Object, R: Request> Source<R> for Watch<K, R> {
    fn start(
        self: Box<Self>,
        client: Client,
        requests: Requests<R>,
    ) -> BoxFuture<'static, Result<Running, SourceError>> {
        Box::pin(async move {
            let resource = self.describe();
            let Self {
                choose,
                handler,
                when,
                scope,
                resync,
                presence,
                resource: api,
                relation,
                needs_value,
                index,
                cluster,
            } = *self;
            if let Some(find) = index {
                let found = find(&client, &resource);
                found.map_err(|missing| SourceError::Index(Box::new(missing)))?;
            }
            let needs_value = needs_value || relation == Relation::Reconciled;
            let watched = cluster.client(&client);
            let watched =
                watched.map_err(|error| SourceError::Other(format!("{resource}: {error}")))?;
            let objects = choose(&watched);
            let narrow = if needs_value {
                objects
                    .is_whole()
                    .and_then(|()| objects.narrowed(scope.as_ref()))
            } else {
                objects.narrowed(scope.as_ref())
            };
            let refused = |problem| SourceError::Other(format!("{resource}: {problem}"));
            let narrow = Arc::new(narrow.map_err(refused)?);
            let informer = objects.informer();
            let origin = Origin {
                kind: api.kind.as_str().into(),
                cluster: watched.shared_cluster_name(),
            };
            let name = resource.clone();
            let handler = move |event: Event<K>| {
                let Some(event) = narrow.event(event) else {
                    return;
                };
                let key = event.object().key();
                let what = || format!("the watch of {name} panicked while it handled {key}");
                requests.panics().catch(what, || {
                    let counts = when.as_ref().is_none_or(|when| when.holds(&event));
                    if counts && requests.admits(&event) {
                        handler::handle(&*handler, &event, &origin, &client, &requests);
                    }
                });
            };
            let mut options = HandlerOptions::default();
            if let Some(period) = resync {
                options = options.resync(period);
            }
            let stopped = |_| SourceError::Watch {
                resource: resource.clone(),
                source: SyncError::Stopped,
            };
            let registration = informer
                .add_handler_with(handler, &options)
                .map_err(stopped)?;
            if presence == Presence::Required {
                first_state(&informer, &resource).await?;
                registration.synced().await.map_err(stopped)?;
            }
            Ok(Running::until(move || registration.remove()))
        })
    }

    fn describe(&self) -> String {
        let resource = match self.resource.group.as_str() {
            "" => self.resource.plural.clone(),
            group => format!("{}.{group}", self.resource.plural),
        };
        match &self.cluster {
            Whose::Further(name) => format!("{resource} of cluster {name}"),
            _ => resource,
        }
    }

    fn subject(&self) -> Option<Subject> {
        let mut subject = Subject::new(self.resource.clone(), self.relation);
        subject.cluster = self.cluster.clone();
        Some(subject)
    }
}

/// Waits for the first state. A refusal is logged once and retried, since somebody may grant the right; the controller
/// decides how long to wait.
async fn first_state<K: Object>(
    informer: &Informers<K>,
    resource: &str,
) -> Result<(), SourceError> {
    let mut warned = false;
    loop {
        match informer.synced().await {
            Ok(()) => return Ok(()),
            Err(SyncError::Refused(failure)) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(resource, %failure, "the server refuses a watch; waiting for it to be allowed");
                }
                sleep_until(Instant::now() + RETRY).await;
            }
            Err(source) => {
                return Err(SourceError::Watch {
                    resource: resource.to_owned(),
                    source,
                });
            }
        }
    }
}

impl<K, R: Request> fmt::Debug for Watch<K, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Watch({}/{})",
            self.resource.api_version, self.resource.plural
        )
    }
}
