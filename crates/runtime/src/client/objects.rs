//! The objects of one kind: reads from the cache.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use kubewright_cache::{
    Cached, Factory, Index, IndexExists, Key, NAMESPACE_INDEX, Reader, Scope, SharedInformer,
    SyncError,
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::entry::Entry;
use super::guard::Behind;
use super::informers::{Informers, Part};
use super::{
    Client, ClientError, Consistency, Object, Query, Read, ReadSubject, is_cluster_scoped,
};
use crate::cache::{Extent, Narrow, PolicyError};
use crate::gate::Point;

/// The objects of one kind, as one client reads and writes them. Cheap to clone.
pub struct Objects<K> {
    pub(super) client: Client,
    pub(super) form: Arc<Form<K>>,
}

/// Makes the informer of a kind in a scope.
pub(super) type Make<K> = fn(&Factory, &ApiResource, Scope) -> SharedInformer<K>;

/// A kind in one version, read as one type: whole, dynamic or metadata. One for all clones of a client.
pub(super) struct Form<K> {
    pub(super) resource: ApiResource,
    pub(super) entry: Arc<Entry>,
    make: Make<K>,
    /// What readers of this form expect of an object.
    extent: Extent,
    /// Made by the first read or watch: who only writes needs no cache.
    informers: Mutex<Option<Informers<K>>>,
    /// What was declared, for informers that are made later.
    indexes: Mutex<Vec<(String, Index<K>)>>,
}

impl<K: Object> Form<K> {
    pub(super) fn new(
        resource: ApiResource,
        entry: Arc<Entry>,
        extent: Extent,
        make: Make<K>,
    ) -> Self {
        Self {
            resource,
            entry,
            make,
            extent,
            informers: Mutex::default(),
            indexes: Mutex::default(),
        }
    }

    /// The namespaces that are cached; none for all.
    pub(super) fn namespaces(&self) -> &[String] {
        if is_cluster_scoped::<K>() {
            &[]
        } else {
            &self.entry.policy.namespaces
        }
    }

    pub(super) fn covers(&self, namespace: Option<&str>) -> bool {
        let namespaces = self.namespaces();
        let is_there = |namespace: &str| namespaces.iter().any(|name| name == namespace);
        namespaces.is_empty() || namespace.is_some_and(is_there)
    }

    fn start(&self, factory: &Factory) -> Informers<K> {
        let policy = &self.entry.policy;
        let shaped = factory.clone().shape(policy.shape.clone());
        let part = |namespace: Option<&str>| {
            let scope = policy.scope(namespace);
            let informer = match policy.extent {
                Extent::Whole => (self.make)(&shaped, &self.resource, scope),
                Extent::Metadata => shaped.metadata(&self.resource, scope).read_as(),
            };
            Part {
                watched: self.entry.watch(&informer, namespace),
                namespace: namespace.map(str::to_owned),
                informer,
            }
        };
        let parts = match self.namespaces() {
            [] => vec![part(None)],
            several => several.iter().map(|name| part(Some(name))).collect(),
        };
        let informers = Informers::new(parts);
        let reader = informers.reader();
        // Whoever shares the store may have added it already.
        let _ = reader.add_index(NAMESPACE_INDEX, Index::by_namespace());
        for (name, index) in self.indexes.lock().iter() {
            if let Err(error) = reader.add_index(name, index.clone()) {
                tracing::debug!(resource = %self.entry.name, %error, "another reader of this store has added it");
            }
        }
        factory.start();
        informers
    }
}

impl<K: Object> Objects<K> {
    pub(super) fn new(client: Client, form: Arc<Form<K>>) -> Self {
        Self { client, form }
    }

    /// Returns the resource of these objects.
    pub fn resource(&self) -> &ApiResource {
        &self.form.resource
    }

    /// The name of the resource, as `deployments.apps`.
    pub(crate) fn name(&self) -> &str {
        &self.form.entry.name
    }

    /// The informers of this kind, started: one, or one for each namespace that is cached.
    pub fn informer(&self) -> Informers<K> {
        let mut informers = self.form.informers.lock();
        let informers =
            informers.get_or_insert_with(|| self.form.start(&self.client.informer_factory()));
        informers.clone()
    }

    /// The informers of this kind, if somebody has started them.
    pub(super) fn started(&self) -> Option<Informers<K>> {
        self.form.informers.lock().clone()
    }

    /// Lets go of this client's informers of the kind. They stop once no controller, watch or reader uses them either; the
    /// next read starts them anew.
    pub fn remove_informer(&self) {
        let removed = self.form.informers.lock().take();
        drop(removed);
    }

    /// Adds an index to the cache of this kind, for [`Query::index`]. No informer is started for it.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn add_index(&self, name: &str, index: Index<K>) -> Result<(), IndexExists> {
        let informers = self.form.informers.lock();
        let mut indexes = self.form.indexes.lock();
        if name == NAMESPACE_INDEX || indexes.iter().any(|(taken, _)| taken == name) {
            return Err(IndexExists(name.to_owned()));
        }
        if let Some(informers) = &*informers {
            informers.reader().add_index(name, index.clone())?;
        }
        indexes.push((name.to_owned(), index));
        Ok(())
    }

    /// Looks for an index, and fails with the names of those that there are. No informer is started for it.
    pub(crate) fn find_index(&self, name: &str) -> Result<(), Vec<String>> {
        let declared = self.form.indexes.lock();
        let declared: Vec<String> = declared.iter().map(|(name, _)| name.clone()).collect();
        let is_declared = name == NAMESPACE_INDEX || declared.iter().any(|it| it == name);
        // One that was added to the store itself, by a reader of it.
        let is_in_store = || {
            let informers = self.started();
            informers.is_some_and(|it| it.reader().keys_by_index(name, "").is_ok())
        };
        if is_declared || is_in_store() {
            return Ok(());
        }
        let mut known = vec![NAMESPACE_INDEX.to_owned()];
        known.extend(declared);
        Err(known)
    }

    /// The cache itself: reads that do not wait. It is empty until the kind's informers have their first state, and leaves out
    /// what does not decode.
    pub fn reader(&self) -> Reader<K> {
        self.informer().reader()
    }

    /// Objects, from the cache.
    ///
    /// # Errors
    /// As of [`get`](Objects::get), and when the query names fields or an index that was not added. One object that does not decode
    /// fails the list: whoever works out what is superfluous must not take it for missing.
    pub async fn list(&self, query: Query) -> Result<Vec<Arc<K>>, ClientError> {
        if self.form.entry.policy.is_read_live() {
            let listed = Box::pin(self.list_live(query)).await?;
            return Ok(listed.into_iter().map(Arc::new).collect());
        }
        let entries = self.entries(query).await?;
        entries.iter().map(|entry| self.decoded(entry)).collect()
    }

    /// Objects, from the cache, without those that do not decode, which are reported in the log.
    ///
    /// # Errors
    /// As of [`list`](Objects::list), but for objects that do not decode.
    pub async fn list_lossy(&self, query: Query) -> Result<Vec<Arc<K>>, ClientError> {
        let entries = self.entries(query).await?;
        Ok(entries.iter().filter_map(Cached::value).collect())
    }

    /// Objects, from the cache, not decoded; also of kinds that are read live otherwise.
    ///
    /// # Errors
    /// As of [`list`](Objects::list), but for objects that do not decode.
    pub async fn entries(&self, query: Query) -> Result<Vec<Cached<K>>, ClientError> {
        if query.fields.is_some() {
            return Err(self.problem(
                "cannot be listed from the cache by field selector: use client.live().list, or an index with Query::index",
            ));
        }
        let namespace = query.namespace.as_deref();
        if namespace.is_some() && !self.form.covers(namespace) {
            return Err(self.out_of_scope(namespace.unwrap_or_default()));
        }
        let informers = self.synced().await?;
        self.pass_gate(None).await?;
        self.all_caught_up(&informers, namespace).await?;
        let asked = self.client.gates().is_set().then(|| query.to_string());
        let reader = informers.reader();
        let is_noted = self.client.trail.is_some();
        let namespace = query.namespace.clone().filter(|_| is_noted);
        let selected = self.select(&reader, query)?;
        if let Some(query) = asked {
            let listed = Point::Listed {
                resource: &self.form.entry.name,
                query: &query,
                count: selected.len(),
                cache: &reader.resource_version(),
            };
            self.client.gates().observe(listed).await;
        }
        self.note_read(selected.len(), || ReadSubject::of(namespace.as_deref()));
        Ok(selected)
    }

    /// Notes a read for whoever looks at the reconcile that makes it.
    pub(super) fn note_read(&self, found: usize, subject: impl FnOnce() -> ReadSubject) {
        if let Some(trail) = &self.client.trail {
            trail.note_read(|| Read {
                resource: self.form.entry.name.clone(),
                cluster: self.client.cluster.clone(),
                subject: subject(),
                found,
            });
        }
    }

    pub(super) fn decoded(&self, entry: &Cached<K>) -> Result<Arc<K>, ClientError> {
        entry.decoded().map_err(|source| ClientError::Undecodable {
            resource: self.form.entry.name.clone(),
            source: Box::new(source),
        })
    }

    /// The part of this kind's cache that a controller or watch with this scope sees.
    ///
    /// # Errors
    /// When it is wider than what is cached, asks for what is not cached, or the policy cannot be followed.
    pub(crate) fn narrowed(&self, scope: Option<&Scope>) -> Result<Narrow, PolicyError> {
        self.form.entry.check()?;
        let Some(scope) = scope else {
            return Ok(Narrow::default());
        };
        let narrow = Narrow::of(scope)?;
        if narrow.namespace().is_some() && !self.form.covers(narrow.namespace()) {
            let namespace = narrow.namespace().unwrap_or_default();
            return Err(PolicyError::new(self.out_of_scope(namespace)));
        }
        let dropped = self.form.entry.policy.dropped();
        let lacks = |field: &str| dropped.iter().any(|name| name == "*" || name == field);
        if narrow.filter().needs_labels() && dropped.iter().any(|name| name == "metadata.labels") {
            return Err(PolicyError::new("objects are cached without labels"));
        }
        if narrow.filter().needs_body() && lacks("spec") {
            return Err(PolicyError::new(
                "objects are cached without the selected field",
            ));
        }
        Ok(narrow)
    }

    /// Whether objects of the cache are as readers of this form expect them.
    ///
    /// # Errors
    /// When the policy cannot be followed, or only metadata is cached.
    pub(crate) fn is_whole(&self) -> Result<(), PolicyError> {
        let cached = self.form.entry.policy.extent;
        if (cached, self.form.extent) == (Extent::Metadata, Extent::Whole) {
            return Err(PolicyError::new("only its metadata is cached"));
        }
        self.form.entry.check()
    }

    /// The fields that cached objects lack. A live read has them all.
    pub(super) fn dropped(&self) -> Vec<String> {
        if self.form.entry.policy.is_read_live() {
            Vec::new()
        } else {
            self.form.entry.policy.dropped()
        }
    }

    fn select(&self, reader: &Reader<K>, query: Query) -> Result<Vec<Cached<K>>, ClientError> {
        let by_index = |name: &str, value: &str| {
            let found = reader.entries_by_index(name, value);
            let found = found.map_err(|source| ClientError::Query {
                resource: self.form.entry.name.clone(),
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
            entries.retain(|entry| selector.matches_by(|name| entry.label(name)));
        }
        entries.truncate(query.limit.unwrap_or(usize::MAX));
        Ok(entries)
    }

    /// The informers, once they have a first state.
    pub(crate) async fn synced(&self) -> Result<Informers<K>, ClientError> {
        self.is_whole().map_err(|problem| ClientError::Policy {
            resource: self.form.entry.name.clone(),
            problem: problem.to_string(),
        })?;
        let informers = self.informer();
        if informers.is_stopped() {
            // What it holds gets older with every moment.
            return Err(ClientError::NotSynced {
                resource: self.form.entry.name.clone(),
                source: SyncError::Stopped,
            });
        }
        if informers.has_synced() {
            return Ok(informers);
        }
        let waited = self.client.shared.sync_timeout;
        let resource = || self.form.entry.name.clone();
        match tokio::time::timeout(waited, informers.synced()).await {
            Ok(Ok(())) => Ok(informers),
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

    /// Passes the gate before a cached read.
    pub(super) async fn pass_gate(&self, key: Option<&Key>) -> Result<(), ClientError> {
        let resource = &*self.form.entry.name;
        let point = Point::CachedRead { resource, key };
        let passed = self.client.gates().pass(point).await;
        passed.map_err(|error| self.failed("get", key.map_or("", Key::as_str), error))
    }

    /// Tells the gate what a cached read found.
    pub(super) async fn report_found(
        &self,
        key: &Key,
        entry: Option<&Cached<K>>,
        reader: &Reader<K>,
    ) {
        if !self.client.gates().is_set() {
            return;
        }
        let version = entry.map(|entry| entry.resource_version().into_owned());
        let found = Point::Found {
            resource: &self.form.entry.name,
            key,
            version: version.as_deref(),
            cache: &reader.resource_version(),
        };
        self.client.gates().observe(found).await;
    }

    /// Waits until the informer that has a key shows this manager's own writes of it.
    pub(crate) async fn caught_up(
        &self,
        informers: &Informers<K>,
        key: &Key,
    ) -> Result<(), ClientError> {
        let entry = &self.form.entry;
        if entry.is_settled() {
            return Ok(());
        }
        let Some(part) = informers.part_of(key) else {
            return Ok(());
        };
        let reader = part.informer.reader();
        let behind = || entry.guard(|guard| guard.is_behind(part.watched.id, key, &reader));
        self.wait(part, || behind().then(|| key.clone())).await
    }

    /// Waits until the informers show all of this manager's own writes, of one namespace or of all.
    async fn all_caught_up(
        &self,
        informers: &Informers<K>,
        namespace: Option<&str>,
    ) -> Result<(), ClientError> {
        let entry = &self.form.entry;
        let concerns = |key: &Key| namespace.is_none() || key.namespace() == namespace;
        for part in informers.parts.iter() {
            if entry.is_settled() {
                return Ok(());
            }
            let is_concerned = part.namespace.is_none() || namespace.is_none();
            if !is_concerned && part.namespace.as_deref() != namespace {
                continue;
            }
            let reader = part.informer.reader();
            let id = part.watched.id;
            let behind = || entry.guard(|guard| guard.behind(id, concerns, &reader));
            let behind = || {
                behind().map(|behind| match behind {
                    Behind::All => Key::cluster("*"),
                    Behind::Key(key) => key,
                })
            };
            self.wait(part, behind).await?;
        }
        Ok(())
    }

    /// Waits until an informer is behind with no key, for as long as reads wait.
    async fn wait(
        &self,
        part: &Part<K>,
        behind: impl Fn() -> Option<Key>,
    ) -> Result<(), ClientError> {
        let Consistency::ReadYourWrites { wait } = self.client.settings().consistency else {
            return Ok(());
        };
        // Mostly it is not, and then nothing needs to be registered.
        if behind().is_none() {
            return Ok(());
        }
        let deadline = Instant::now() + wait;
        loop {
            let advanced = part.informer.advanced();
            let Some(key) = behind() else {
                return Ok(());
            };
            if timeout_at(deadline, advanced).await.is_err() {
                return Err(self.stale(key, wait));
            }
        }
    }

    fn stale(&self, key: Key, waited: Duration) -> ClientError {
        ClientError::Stale {
            resource: self.form.entry.name.clone(),
            key,
            waited,
        }
    }
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            form: self.form.clone(),
        }
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.form.entry.name)
    }
}
