//! The objects of one kind: reads from the cache.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kube::core::{ApiResource, SelectorExt};
use kubewright_cache::{
    Cached, Factory, Index, Key, NAMESPACE_INDEX, Reader, Scope, SharedInformer,
};
use tokio::time::{Instant, timeout_at};

use super::guard::{Guard, Seen, SharedGuard, View};
use super::{Client, ClientError, Consistency, Object, Query};
use crate::seam::Point;

/// The objects of one kind, as one client reads and writes them. Cheap to clone.
pub struct Objects<K> {
    pub(super) client: Client,
    pub(super) shape: Arc<Shape<K>>,
}

/// Makes the informer of a kind in a scope.
pub(super) type Make<K> = fn(&Factory, &ApiResource, Scope) -> SharedInformer<K>;

/// What there is to know of a kind. One for all clones of a client.
pub(super) struct Shape<K> {
    pub(super) resource: ApiResource,
    /// As in `deployments.apps`.
    pub(super) name: Arc<str>,
    pub(super) guard: Arc<SharedGuard>,
    make: Make<K>,
    /// Made by the first read: who only writes needs no cache.
    informer: OnceLock<SharedInformer<K>>,
}

impl<K: Object> Shape<K> {
    pub(super) fn new(resource: ApiResource, guard: Arc<SharedGuard>, make: Make<K>) -> Self {
        let name = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        Self {
            resource,
            name: name.into(),
            guard,
            make,
            informer: OnceLock::new(),
        }
    }
}

impl<K: Object> Objects<K> {
    pub(super) fn new(client: Client, shape: Arc<Shape<K>>) -> Self {
        Self { client, shape }
    }

    /// The resource.
    pub fn resource(&self) -> &ApiResource {
        &self.shape.resource
    }

    /// The informer of this kind, started.
    pub fn informer(&self) -> SharedInformer<K> {
        let informer = self.shape.informer.get_or_init(|| {
            let factory = &self.client.shared.factory;
            let informer =
                (self.shape.make)(factory, &self.shape.resource, factory.default_scope());
            // Whoever shares the store may have added it already.
            let _ = informer
                .reader()
                .add_index(NAMESPACE_INDEX, Index::by_namespace());
            factory.start();
            informer
        });
        informer.clone()
    }

    /// The informer of this kind in a part of the cluster, started.
    pub fn informer_in(&self, scope: Scope) -> SharedInformer<K> {
        let factory = &self.client.shared.factory;
        let informer = (self.shape.make)(factory, &self.shape.resource, scope);
        factory.start();
        informer
    }

    /// The cache itself: reads that do not wait.
    pub fn reader(&self) -> Reader<K> {
        self.informer().reader()
    }

    /// The object, from the cache.
    ///
    /// # Errors
    /// When the cache cannot be filled, or does not reach this manager's own writes in time.
    pub async fn get(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        let informer = self.synced().await?;
        self.pass(Some(key)).await;
        self.caught_up(key).await?;
        Ok(informer.reader().get(key))
    }

    /// Objects, from the cache.
    ///
    /// # Errors
    /// As of [`get`](Objects::get), and when the query names an index that was not added.
    pub async fn list(&self, query: Query) -> Result<Vec<Arc<K>>, ClientError> {
        let entries = self.entries(query).await?;
        Ok(entries.iter().filter_map(Cached::value).collect())
    }

    /// Objects, from the cache, not decoded.
    ///
    /// # Errors
    /// As of [`list`](Objects::list).
    pub async fn entries(&self, query: Query) -> Result<Vec<Cached<K>>, ClientError> {
        let informer = self.synced().await?;
        self.pass(None).await;
        self.all_caught_up(&informer, query.namespace.as_deref())
            .await?;
        self.select(&informer.reader(), query)
    }

    fn select(&self, reader: &Reader<K>, query: Query) -> Result<Vec<Cached<K>>, ClientError> {
        let by_index = |name: &str, value: &str| {
            let found = reader.entries_by_index(name, value);
            let found = found.map_err(|source| ClientError::Query {
                resource: self.shape.name.clone(),
                source,
            })?;
            Ok::<_, ClientError>(found.iter().collect())
        };
        let mut entries: Vec<Cached<K>> = match (&query.index, &query.namespace) {
            (Some((name, value)), _) => by_index(name, value)?,
            (None, Some(namespace)) => by_index(NAMESPACE_INDEX, namespace)?,
            (None, None) => reader.snapshot().iter().collect(),
        };
        if let (Some(_), Some(namespace)) = (&query.index, &query.namespace) {
            entries.retain(|entry| entry.key().namespace() == Some(namespace));
        }
        if let Some(selector) = query.labels.filter(|selector| !selector.selects_all()) {
            entries.retain(|entry| selector.matches(&entry.labels()));
        }
        entries.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(entries)
    }

    /// The informer, once it has a first state.
    pub(crate) async fn synced(&self) -> Result<SharedInformer<K>, ClientError> {
        let informer = self.informer();
        if informer.has_synced() {
            return Ok(informer);
        }
        let waited = self.client.shared.sync_timeout;
        let resource = || self.shape.name.clone();
        match tokio::time::timeout(waited, informer.synced()).await {
            Ok(Ok(())) => Ok(informer),
            Ok(Err(source)) => Err(ClientError::NotSynced {
                resource: resource(),
                source,
            }),
            Err(_) => Err(ClientError::SyncTimeout {
                resource: resource(),
                waited,
            }),
        }
    }

    async fn pass(&self, key: Option<&Key>) {
        let resource = &*self.shape.name;
        let point = Point::CachedRead { resource, key };
        self.client.shared.seams.pass(point).await;
    }

    /// Waits until the cache shows this manager's own writes of a key.
    pub(crate) async fn caught_up(&self, key: &Key) -> Result<(), ClientError> {
        self.caught_up_in(&self.informer(), key).await
    }

    /// As [`caught_up`](Objects::caught_up), for an informer of one's own.
    pub(crate) async fn caught_up_in(
        &self,
        informer: &SharedInformer<K>,
        key: &Key,
    ) -> Result<(), ClientError> {
        let Consistency::ReadYourWrites { wait } = self.client.shared.consistency else {
            return Ok(());
        };
        let guard = &self.shape.guard;
        if guard.is_empty() {
            return Ok(());
        }
        let view = || self.view(&informer.reader(), key);
        let behind = || guard.with(|guard| guard.is_behind(key, view));
        if !behind() {
            return Ok(());
        }
        let deadline = Instant::now() + wait;
        loop {
            let advanced = informer.advanced();
            if !behind() {
                return Ok(());
            }
            if timeout_at(deadline, advanced).await.is_err() {
                return Err(self.stale(key.clone(), wait));
            }
        }
    }

    /// Waits until the cache shows all of this manager's own writes, of one namespace or of all.
    async fn all_caught_up(
        &self,
        informer: &SharedInformer<K>,
        namespace: Option<&str>,
    ) -> Result<(), ClientError> {
        let Consistency::ReadYourWrites { wait } = self.client.shared.consistency else {
            return Ok(());
        };
        let deadline = Instant::now() + wait;
        loop {
            let advanced = informer.advanced();
            let Some(key) = self.behind(informer, namespace) else {
                return Ok(());
            };
            if timeout_at(deadline, advanced).await.is_err() {
                return Err(self.stale(key, wait));
            }
        }
    }

    fn behind(&self, informer: &SharedInformer<K>, namespace: Option<&str>) -> Option<Key> {
        let reader = informer.reader();
        let concerns = |key: &Key| namespace.is_none() || key.namespace() == namespace;
        let view = |key: &Key| self.view(&reader, key);
        self.shape.guard.with(|guard| guard.behind(concerns, view))
    }

    /// Forgets writes that the cache has reached, if there are many.
    pub(super) fn sweep(&self) {
        let Some(informer) = self.shape.informer.get() else {
            return;
        };
        if self.shape.guard.with(Guard::is_full) {
            self.behind(informer, None);
        }
    }

    /// What the cache shows of an object. Where selectors decide what is cached, absence says nothing and is not waited
    /// about.
    fn view(&self, reader: &Reader<K>, key: &Key) -> View {
        let object = reader.entry(key).map(|entry| Seen {
            uid: entry.uid().into_owned(),
            version: entry.resource_version().parse().unwrap_or_default(),
            terminating: entry.is_terminating(),
        });
        let scope = self.client.shared.factory.default_scope();
        let reached = match &object {
            None if !scope.is_sure_to_have(key.namespace()) => u64::MAX,
            _ => reader.resource_version().parse().unwrap_or_default(),
        };
        View { reached, object }
    }

    fn stale(&self, key: Key, waited: Duration) -> ClientError {
        ClientError::Stale {
            resource: self.shape.name.clone(),
            key,
            waited,
        }
    }
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            shape: self.shape.clone(),
        }
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.shape.name)
    }
}
