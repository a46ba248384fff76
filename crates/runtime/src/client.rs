//! The client of controllers: reads from the cache, writes to the server, and never reads the past.
//!
//! Guarantees
//! - After a write, reads of that object through the same manager's clients show that state or a newer one, deletions
//!   included; a reconcile of its key sees no older one. The wait is bounded, and then a clear error
//!   ([`ClientError::Stale`]).
//! - The first read of a kind starts its informer and waits for its first state; a refusal is an error, not silence.
//!   Informers are shared by everything in the manager, and hold what the [policy](crate::cache) of the kind says.
//! - An object that exists is never shown as absent to a read by its key: one that does not decode, or that the cache does not
//!   hold because of its namespace, of selectors or of shards, is an error.
//! - Objects from the cache are shared and cannot be changed in place: no copy is made that is not asked for.
//!
//! Deliberately absent: a way to list from a cache page by page; it is all in memory.

mod apply;
mod blank;
mod builder;
mod clusters;
mod delete;
mod entry;
mod error;
mod guard;
mod informers;
mod last_applied;
mod lifetime;
mod live;
mod lookup;
mod merge;
mod objects;
mod query;
mod requests;
mod subresources;
mod trail;
mod typed;
mod upsert;
mod warnings;
mod write;
mod written;

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Debug};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kubewright_cache::Factory;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use blank::Blank;
pub use builder::ClientBuilder;
pub(crate) use clusters::OfCluster;
pub use error::{ClientError, IgnoreNotFound, Refusal};
pub use informers::{Informers, Registrations};
pub(crate) use lifetime::InformerLifetime;
pub use live::Live;
pub use objects::Objects;
pub use query::{Delete, DryRun, FieldValidation, Locking, Ownership, Query, WriteOptions};
pub use requests::RequestPolicy;
pub(crate) use trail::Traces;
use trail::Trail;
pub use trail::{Read, ReadSubject, Write};
pub use warnings::ServerWarning;
pub use written::{Change, Mutate, Written};

use crate::cache::{CacheMisuse, CacheOptions, Extent, ResourceId};
use crate::gate::Gates;
use crate::lease::LeaderStatus;
use clusters::Clusters;
use entry::Entry;
use objects::Form;
use warnings::Warnings;

/// Any object that can be read and written: every type of `k8s-openapi`, every `CustomResource`, and
/// `DynamicObject`.
pub trait Object:
    Resource<Scope: 'static> + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<Scope: 'static>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
        + 'static
{
}

/// An object whose type says what kind it is.
pub trait TypedObject: Object + Resource<DynamicType = ()> {}

impl<K: Object + Resource<DynamicType = ()>> TypedObject for K {}

/// Whether objects of a type live in no namespace. A type that is only known at run time may do so and does not say it.
pub(crate) fn is_cluster_scoped<K: Object>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<k8s_openapi::ClusterResourceScope>()
}

/// Whether objects of a type are known to live in namespaces.
pub(crate) fn is_namespaced<K: Object>() -> bool {
    TypeId::of::<K::Scope>() == TypeId::of::<k8s_openapi::NamespaceResourceScope>()
}

/// Whether reads wait for what the same manager wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Consistency {
    /// They do, for so long at most.
    ReadYourWrites {
        /// After this a read fails.
        wait: Duration,
    },
    /// They do not: a read may show a state from before a write.
    Eventual,
}

impl Default for Consistency {
    fn default() -> Self {
        Self::ReadYourWrites {
            wait: Duration::from_secs(5),
        }
    }
}

/// Reads from the cache, writes to the server. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    write: WriteOptions,
    /// Where the writes of one reconcile are noted.
    trail: Option<Arc<Trail>>,
    /// The lease without which nothing is written.
    fence: Option<LeaderStatus>,
    /// Who sends the requests, if not the one that the informers use.
    sender: Option<kube::Client>,
    /// The name of the cluster that `shared` and `sender` are of; none for the manager's own.
    cluster: Option<Arc<str>>,
    /// Where else its manager can go, and what it was given; none where there is one cluster and nothing was given.
    clusters: Option<Arc<Clusters>>,
}

struct Shared {
    kube: kube::Client,
    factory: Factory,
    sync_timeout: Duration,
    warnings: Arc<Warnings>,
    settings: Mutex<Settings>,
    gates: Gates,
    /// Held by the managers over this client.
    lifetime: Mutex<Weak<InformerLifetime>>,
    /// Forms by their type. Never iterated: a look-up table cannot decide an order.
    forms: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    /// Dynamic and metadata forms by their resource.
    named: Mutex<BTreeMap<(TypeId, String), Arc<dyn Any + Send + Sync>>>,
    cache: Mutex<Cache>,
}

/// What a client is made with, and a manager over it may set anew.
#[derive(Debug, Clone, Copy)]
struct Settings {
    consistency: Consistency,
    requests: RequestPolicy,
}

/// What is cached and how. An entry has the policy that held when it was made.
#[derive(Default)]
struct Cache {
    options: CacheOptions,
    /// All versions and forms of a resource share one.
    entries: BTreeMap<ResourceId, Arc<Entry>>,
}

impl Client {
    /// A client with a cache of its own.
    pub fn new(kube: kube::Client) -> Self {
        Self::builder(kube).build()
    }

    /// The plain client underneath.
    pub fn kube(&self) -> &kube::Client {
        self.sender.as_ref().unwrap_or(&self.shared.kube)
    }

    /// The same client, which sends its requests through another plain one: with other credentials, say. Its cache is the one
    /// that it had, filled by whoever fills that.
    #[must_use]
    pub fn with_kube(&self, kube: kube::Client) -> Self {
        let mut other = self.clone();
        other.sender = Some(kube);
        if let Some(mut clusters) = other.clusters.take() {
            Arc::make_mut(&mut clusters).remember(&other);
            other.clusters = Some(clusters);
        }
        other
    }

    /// Returns the factory of the informers underneath.
    pub fn factory(&self) -> &Factory {
        &self.shared.factory
    }

    /// The same client, writing in another way.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut WriteOptions)) -> Self {
        let mut other = self.clone();
        change(&mut other.write);
        other
    }

    /// The same client, whose writes are only tried.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// client.dry_run().create(&map("a")).await?;
    /// assert!(client.live().get::<ConfigMap>(&Key::new("default", "a")).await?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dry_run(&self) -> Self {
        self.with(|write| write.dry_run = DryRun::All)
    }

    /// The same client, whose patches are refused with a conflict if the object has changed since it was read.
    ///
    /// Without it a patch of one field does not care about changes of other fields, which is what controllers mostly want. A
    /// list is replaced as a whole, so whoever adds to a list that others write too wants this. So does an
    /// [`apply_owned`](Client::apply_owned) whose content depends on what the object was seen to be: a process that sees the past
    /// after a restart would write the past.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kubewright_runtime::{Client, ClientError};
    /// # async fn example(client: Client, pod: Arc<Pod>) -> Result<(), ClientError> {
    /// let gate = |pod: &mut Pod| pod.metadata.finalizers.get_or_insert_default().push("example.com/gate".into());
    /// client.optimistic_lock().modify(&pod, gate).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn optimistic_lock(&self) -> Self {
        self.with(|write| write.locking = Locking::Optimistic)
    }

    /// The same client, writing under this name.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Change, Client, Delete, Index, Key, Query};
    /// # fn map(name: &str) -> ConfigMap {
    /// #     let mut map = ConfigMap::default();
    /// #     map.metadata.name = Some(name.to_owned());
    /// #     map.metadata.namespace = Some("default".to_owned());
    /// #     map
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kubewright_server::Server::builder().start().await?;
    /// # let client = Client::new(kube::Client::new(server.service(), "default"));
    /// let written = client.field_owner("example").apply(&map("a")).await?;
    /// assert!(written.is_changed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn field_owner(&self, owner: &str) -> Self {
        self.with(|write| write.field_owner = Some(owner.to_owned()))
    }

    /// The same client, which remembers what it reads and writes.
    pub(crate) fn with_trail(&self) -> Self {
        let mut other = self.clone();
        other.trail = Some(Arc::default());
        other
    }

    /// What was read and written by this client and its clones, if they remember. From now on they do not: a clone may live
    /// on in a task of its own.
    pub(crate) fn take_traces(&self) -> Traces {
        let trail = self.trail.as_ref();
        trail.map(|trail| trail.take()).unwrap_or_default()
    }

    /// The same client, which writes nothing once the lease has run out.
    pub(crate) fn fenced(&self, lease: Option<LeaderStatus>) -> Self {
        let mut other = self.clone();
        other.fence = lease;
        other
    }

    /// What stops the informers when the last one who holds it lets go.
    pub(crate) fn informers(&self) -> Arc<InformerLifetime> {
        let mut held = self.shared.lifetime.lock();
        held.upgrade().unwrap_or_else(|| {
            let informers = Arc::new(InformerLifetime::of(self.shared.factory.clone()));
            *held = Arc::downgrade(&informers);
            informers
        })
    }

    /// The gate of the manager, which holds for all of its clusters, or that of this cluster alone.
    pub(crate) fn gates(&self) -> &Gates {
        let home = self
            .clusters
            .as_ref()
            .map(|clusters| &clusters.home().gates);
        home.filter(|gates| gates.is_set())
            .unwrap_or(&self.shared.gates)
    }

    fn settings(&self) -> Settings {
        *self.shared.settings.lock()
    }

    /// Sets how long requests may take from now on, and how silent servers may be to informers that are made from now on.
    pub(crate) fn set_requests(&self, policy: RequestPolicy) {
        self.shared.settings.lock().requests = policy;
    }

    /// Sets whether reads wait for own writes from now on.
    pub(crate) fn set_consistency(&self, consistency: Consistency) {
        self.shared.settings.lock().consistency = consistency;
    }

    /// What makes the informers of this client.
    fn informer_factory(&self) -> Factory {
        let factory = self.shared.factory.clone();
        match self.settings().requests.silence {
            Some(silence) => factory.silence(silence),
            None => factory,
        }
    }

    /// Refines what the cache holds, as long as nothing was read or written.
    pub(crate) fn refine_cache(&self, options: CacheOptions) -> Result<(), CacheMisuse> {
        let mut cache = self.shared.cache.lock();
        if !cache.entries.is_empty() {
            return Err(CacheMisuse::InUse);
        }
        cache.options = cache.options.clone().refined(options)?;
        Ok(())
    }

    /// The objects of a type.
    pub fn of<K: TypedObject>(&self) -> Objects<K> {
        let mut forms = self.shared.forms.lock();
        let form = forms.entry(TypeId::of::<K>()).or_insert_with(|| {
            let resource = ApiResource::erase::<K>(&());
            let entry = self.entry(&resource);
            let make: objects::Make<K> = |factory, _, scope| factory.informer_in(scope);
            Arc::new(Form::new(resource, entry, Extent::Whole, make))
        });
        let form = form
            .clone()
            .downcast()
            .expect("it is stored under its type");
        Objects::new(self.clone(), form)
    }

    /// The objects of a resource whose type is not known at compile time. The cache is shared with the typed one.
    pub fn dynamic(&self, resource: &ApiResource) -> Objects<DynamicObject> {
        self.named(resource, Extent::Whole, |factory, resource, scope| {
            factory.dynamic(resource, scope)
        })
    }

    /// The metadata of a resource's objects: far less memory where that is all that is needed.
    pub fn metadata(&self, resource: &ApiResource) -> Objects<PartialObjectMeta<DynamicObject>> {
        self.named(resource, Extent::Metadata, |factory, resource, scope| {
            factory.metadata(resource, scope)
        })
    }

    fn named<K: Object>(
        &self,
        resource: &ApiResource,
        extent: Extent,
        make: objects::Make<K>,
    ) -> Objects<K> {
        let id = format!("{}/{}", resource.api_version, resource.plural);
        let mut named = self.shared.named.lock();
        let form = named.entry((TypeId::of::<K>(), id)).or_insert_with(|| {
            let entry = self.entry(resource);
            Arc::new(Form::new(resource.clone(), entry, extent, make))
        });
        let form = form
            .clone()
            .downcast()
            .expect("it is stored under its type");
        Objects::new(self.clone(), form)
    }

    fn entry(&self, resource: &ApiResource) -> Arc<Entry> {
        let mut cache = self.shared.cache.lock();
        let Cache { options, entries } = &mut *cache;
        let entry = entries.entry(ResourceId::of(resource));
        let made = entry.or_insert_with(|| {
            let policy = options.resolve(resource, &self.shared.factory);
            let (factory, resource) = (self.shared.factory.clone(), resource.clone());
            Arc::new(Entry::new(policy, move |key| {
                factory.selects(&resource, key)
            }))
        });
        made.clone()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("cluster", &self.cluster)
            .field("factory", &self.shared.factory)
            .field("write", &self.write)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
