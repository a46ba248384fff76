//! The factory: one informer for each resource and scope, whoever asks; started, awaited and stopped together.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use http::HeaderMap;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Key;
use crate::cached::Kind;
use crate::core::Core;
use crate::latest::Latest;
use crate::list_watch::{Extent, ListWatch, Scope, SeeHeaders};
use crate::lister::Lister;
use crate::reflector;
use crate::report::Reporter;
use crate::selection::Selection;
use crate::shape::{Keep, Shape};
use crate::shared::{Lease, SharedInformer, SyncError};
use crate::stats::Stats;

/// Makes informers that share what can be shared. Cheap to clone; the last clone that goes stops them all.
///
/// An informer lives while somebody holds it, its reader, a lister, or a registration of one of its handlers. Asked for
/// again after that, it is made anew.
#[derive(Clone)]
pub struct Factory {
    client: kube::Client,
    scope: Scope,
    shape: Shape,
    reporter: Reporter,
    seed: Option<u64>,
    shortest_watch: Option<Duration>,
    headers: Option<SeeHeaders>,
    silence: Option<Duration>,
    state: Arc<Mutex<State>>,
    /// The first informer that panicked.
    failed: Latest<Option<InformerPanicked>>,
    cancel: CancellationToken,
}

#[derive(Default)]
struct State {
    informers: BTreeMap<Id, Entry>,
    /// How many there have been.
    made: u64,
    /// Which objects are kept, by group and plural name.
    selections: BTreeMap<(String, String), Selection>,
    tasks: JoinSet<()>,
}

/// What makes two informers the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    group: String,
    version: String,
    plural: String,
    extent: Extent,
    scope: Scope,
    /// The type, where values are decoded on arrival and cannot be shared between types.
    decoded: Option<(&'static str, TypeId)>,
}

struct Entry {
    core: Arc<Core>,
    lease: Weak<Lease>,
    started: bool,
}

/// An informer did not get its first state.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{resource} did not sync")]
pub struct FactorySyncError {
    /// The path of the resource, with selectors.
    pub resource: String,
    /// Why the first state did not arrive.
    #[source]
    pub source: SyncError,
}

/// An informer panicked: in a [`Reporter`], say, or because an invariant of ours is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the informer of {resource} panicked: {message}")]
#[non_exhaustive]
pub struct InformerPanicked {
    /// The path of the resource, with selectors.
    pub resource: String,
    /// The message of the panic.
    pub message: String,
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

impl Factory {
    /// A factory over a client.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            scope: Scope::all(),
            shape: Shape::default(),
            reporter: Reporter::default(),
            seed: None,
            shortest_watch: None,
            headers: None,
            silence: None,
            state: Arc::default(),
            failed: Latest::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Sets what informers look at unless a call asks for another scope.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Returns what informers look at unless a call asks for another scope.
    pub fn default_scope(&self) -> Scope {
        self.scope.clone()
    }

    /// What becomes of objects between the wire and the store, in informers that this clone of the factory makes. An informer
    /// that is already in use does not change.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// What becomes of objects between the wire and the store.
    pub fn default_shape(&self) -> Shape {
        self.shape.clone()
    }

    /// Sets who receives reports of what goes wrong without stopping an informer.
    #[must_use]
    pub fn reporter(mut self, reporter: Reporter) -> Self {
        self.reporter = reporter;
        self
    }

    /// Seeds the random numbers: with a seed, informers that are made in the same order wait for the same times.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// How long the server is asked to keep a watch open, at least; at most it is twice this. By default five minutes, so
    /// that a server that is gone without a word is noticed.
    #[must_use]
    pub fn shortest_watch(mut self, duration: Duration) -> Self {
        self.shortest_watch = Some(duration);
        self
    }

    /// Shows a function the headers of every answer to a list or a watch, with the verb and the resource: what a server says there,
    /// such as `Warning`, is not looked at otherwise.
    #[must_use]
    pub fn headers(
        mut self,
        see: impl Fn(&'static str, &ApiResource, &HeaderMap) + Send + Sync + 'static,
    ) -> Self {
        self.headers = Some(Arc::new(see));
        self
    }

    /// How long the server may say nothing while a watch is opened or a list is read, in informers that this clone of the
    /// factory makes. By default 30 s. An informer that is already in use does not change.
    #[must_use]
    pub fn silence(mut self, duration: Duration) -> Self {
        self.silence = Some(duration);
        self
    }

    /// Keeps only the objects of a resource that a selection holds for, in every informer of it that is made from now on.
    pub fn select(&self, resource: &ApiResource, selection: Selection) {
        let name = (resource.group.clone(), resource.plural.clone());
        self.state.lock().selections.insert(name, selection);
    }

    /// Whether [`select`](Factory::select) was called for a resource: what is not in its caches may exist all the same.
    pub fn is_selected(&self, resource: &ApiResource) -> bool {
        let name = (resource.group.clone(), resource.plural.clone());
        self.state.lock().selections.contains_key(&name)
    }

    /// Whether the caches of a resource keep the object of a key: all objects, unless a selection says otherwise.
    pub fn selects(&self, resource: &ApiResource, key: &Key) -> bool {
        let name = (resource.group.clone(), resource.plural.clone());
        let selection = self.state.lock().selections.get(&name).cloned();
        selection.is_none_or(|selection| selection.holds(key))
    }

    /// The informer of a type.
    pub fn informer<K: Kind + Resource<DynamicType = ()>>(&self) -> SharedInformer<K> {
        self.informer_in(self.scope.clone())
    }

    /// The informer of a type in a scope.
    pub fn informer_in<K: Kind + Resource<DynamicType = ()>>(
        &self,
        scope: Scope,
    ) -> SharedInformer<K> {
        let resource = ApiResource::erase::<K>(&());
        self.shared(resource, scope, Extent::Whole)
    }

    /// The informer of any resource. It shares with the typed one.
    pub fn dynamic(&self, resource: &ApiResource, scope: Scope) -> SharedInformer<DynamicObject> {
        self.shared(resource.clone(), scope, Extent::Whole)
    }

    /// The informer of the metadata of any resource.
    pub fn metadata(
        &self,
        resource: &ApiResource,
        scope: Scope,
    ) -> SharedInformer<PartialObjectMeta<DynamicObject>> {
        self.shared(resource.clone(), scope, Extent::Metadata)
    }

    /// A lister of a type, over the factory's informer.
    pub fn lister<K: Kind + Resource<DynamicType = ()>>(&self) -> Lister<K> {
        Lister::new(self.informer::<K>().reader(), &ApiResource::erase::<K>(&()))
    }

    /// Starts what is not started. Informers that are made later need another start.
    pub fn start(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.sweep();
        for entry in state.informers.values_mut().filter(|entry| !entry.started) {
            let Some(lease) = entry.lease.upgrade() else {
                continue;
            };
            entry.started = true;
            let core = entry.core.clone();
            let cancel = lease.0.clone();
            let failed = self.failed.clone();
            state.tasks.spawn(async move {
                let resource = core.source.describe();
                // An informer that somebody runs by hand is running, which is all that is asked for.
                if let Err(panic) = AssertUnwindSafe(core.run(cancel)).catch_unwind().await {
                    let message = text_of(&*panic);
                    tracing::error!(resource, message, "an informer panicked");
                    let panicked = InformerPanicked { resource, message };
                    failed.change(|first| *first = first.take().or(Some(panicked)));
                }
            });
        }
    }

    /// Waits until every informer in use has its first state and watches.
    ///
    /// # Errors
    /// The first one that cannot, and why: a forbidden watch is an error, not silence.
    pub async fn synced(&self) -> Result<(), FactorySyncError> {
        let used = self.state.lock().used();
        for (core, _lease) in used {
            core.synced().await.map_err(|source| FactorySyncError {
                resource: core.source.describe(),
                source,
            })?;
        }
        Ok(())
    }

    /// Waits until an informer panics, and says which. Its store stays as it was at that moment, so whoever reads from it has to
    /// end.
    pub async fn failed(&self) -> InformerPanicked {
        self.failed.wait_for(Clone::clone).await
    }

    /// The statistics of every informer in use, ordered by resource.
    pub fn stats(&self) -> Vec<Stats> {
        let used = self.state.lock().used();
        used.iter().map(|(core, _lease)| core.stats()).collect()
    }

    /// Tells all informers to stop, and waits for nothing.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// Stops all informers and waits for their handlers to end.
    pub async fn shutdown(&self) {
        self.stop();
        let mut tasks = std::mem::take(&mut self.state.lock().tasks);
        while tasks.join_next().await.is_some() {}
    }

    /// The number of informers in use.
    pub fn len(&self) -> usize {
        self.state.lock().used().len()
    }

    /// Whether no informer is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shared<K: Kind>(
        &self,
        resource: ApiResource,
        scope: Scope,
        extent: Extent,
    ) -> SharedInformer<K> {
        let id = Id {
            group: resource.group.clone(),
            version: resource.version.clone(),
            plural: resource.plural.clone(),
            extent,
            scope: scope.clone(),
            // The name keeps the order of informers the same in every run; it need not be the only one of its kind.
            decoded: (self.shape.keep != Keep::Compact)
                .then(|| (std::any::type_name::<K>(), TypeId::of::<K>())),
        };
        let mut state = self.state.lock();
        state.sweep();
        let existing = state.informers.get(&id);
        if let Some((core, lease)) = existing.and_then(Entry::in_use) {
            return SharedInformer::of(core, lease);
        }
        state.made += 1;
        let name = (resource.group.clone(), resource.plural.clone());
        let selection = state.selections.get(&name).cloned();
        let informer = self.make(resource, scope, extent, (state.made, selection));
        state.informers.insert(
            id,
            Entry {
                core: informer.core.clone(),
                lease: Arc::downgrade(&informer.lease),
                started: false,
            },
        );
        informer
    }

    fn make<K: Kind>(
        &self,
        resource: ApiResource,
        scope: Scope,
        extent: Extent,
        (number, selection): (u64, Option<Selection>),
    ) -> SharedInformer<K> {
        let client = self.client.clone();
        let source = match extent {
            Extent::Whole => ListWatch::dynamic(client, resource, scope),
            Extent::Metadata => ListWatch::metadata(client, resource, scope),
        };
        let source = source.with_headers(self.headers.clone());
        let mut shape = self.shape.clone();
        shape.selection = selection.or(shape.selection);
        let mut options = reflector::Options::default()
            .shape(shape)
            .reporter(self.reporter.clone());
        if let Some(seed) = self.seed {
            let mut random = StdRng::seed_from_u64(seed.wrapping_add(number));
            options = options.with_random(move || random.random());
        }
        if let Some(duration) = self.shortest_watch {
            options = options.shortest_watch(duration);
        }
        if let Some(duration) = self.silence {
            options = options.silence(duration);
        }
        let made = SharedInformer::<K>::new(source, options);
        // The lease it was made with ends here; nothing runs yet that could mind.
        let lease = Arc::new(Lease(self.cancel.child_token()));
        SharedInformer::of(made.core.clone(), lease)
    }
}

impl Entry {
    fn in_use(&self) -> Option<(Arc<Core>, Arc<Lease>)> {
        Some((self.core.clone(), self.lease.upgrade()?))
    }
}

impl State {
    /// Forgets informers that nobody uses and tasks that ended.
    fn sweep(&mut self) {
        self.informers
            .retain(|_, entry| entry.lease.strong_count() > 0);
        while self.tasks.try_join_next().is_some() {}
    }

    fn used(&self) -> Vec<(Arc<Core>, Arc<Lease>)> {
        self.informers.values().filter_map(Entry::in_use).collect()
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_list().entries(state.informers.keys()).finish()
    }
}
