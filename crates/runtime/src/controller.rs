//! Controllers: sources feed keys, a queue orders them, workers reconcile them.
//!
//! Guarantees
//! - One key is never reconciled twice at once; a change during a reconcile leads to another one.
//! - No reconcile runs before every source has delivered its initial state.
//! - A reconcile sees no state older than this manager's own last write of its object.
//! - A panic of a reconcile is caught, counted and retried as an error; so is a reconcile that takes longer than it may.
//! - A panic of what decides about events, a mapper, a predicate, a handler or a filter, is counted and ends the controller: the
//!   event would be lost, and nothing brings it back.
//!
//! Owner: the manager, which starts and stops it.

mod builder;
mod finalizing;
mod history;
mod hot_loop;
mod of_objects;
mod of_requests;
mod target;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube::core::ApiResource;
use kubewright_cache::source::BoxFuture;
use kubewright_cache::{IndexExists, Key};
use kubewright_workqueue::limiter::{self, Retry};
use kubewright_workqueue::{Options, PriorityPolicy, Queue, RateLimiter};
use parking_lot::Mutex;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

pub use builder::Builder;
pub use history::{History, Reconciled};
pub use of_objects::Primary;
pub use of_requests::NoPrimary;

use crate::States;
use crate::client::Client;
use crate::environment::Environment;
use crate::events::Recorder;
use crate::manager::Queues;
use crate::metrics::Metrics;
use crate::panics;
use crate::requests::{Filter, Request, Requests};
use crate::sharding::Shards;
use crate::watch::{Relation, Running, Source, SourceError, Subject};

/// How long one reconcile may take by default: far more than any should, and less than for ever.
const TIMEOUT: Duration = Duration::from_secs(300);

/// When the sources of a controller that waits for leadership start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WarmUp {
    /// At once, so that a new leader has everything at hand.
    #[default]
    BeforeLeadership,
    /// Only when leadership is won: a standby then costs little memory.
    OnLeadership,
}

/// Whether only a leader runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Leadership {
    /// Only the leader, where there is an election.
    #[default]
    Required,
    /// Every replica runs the controller, leader or not.
    NotNeeded,
}

/// A controller, ready to be given to a manager. It reconciles the keys of objects, or [requests](Request) of another type.
#[must_use = "a controller does nothing until a manager has it"]
pub struct Controller<R: Request = Key> {
    pub(crate) name: Arc<str>,
    pub(crate) settings: Settings,
    subjects: Vec<Subject>,
    sources: Vec<Box<dyn Source<R>>>,
    indexes: Vec<Declare>,
    work: Arc<dyn Work<R>>,
    shared: Arc<Shared<R>>,
    /// Who sends its requests, if not the manager's client.
    kube: Option<kube::Client>,
    /// The cluster of what it reconciles, if not the manager's own.
    cluster: Option<Arc<str>>,
}

/// Adds something to the cache that the controller needs.
type Declare = Box<dyn FnOnce(&Client) -> Result<(), IndexExists> + Send>;

/// A controller of whatever requests, as a manager keeps it.
pub(crate) trait AnyController: fmt::Debug + Send {
    fn name(&self) -> &str;
    fn settings(&self) -> &Settings;
    fn progress(&self) -> Arc<Progress>;
    /// The kind that it reconciles, if it is one of objects.
    fn reconciled(&self) -> Option<&ApiResource>;
    /// The client of its own, if it has one.
    fn kube(&self) -> Option<&kube::Client>;
    /// The name of its cluster, if that is not the manager's own.
    fn cluster(&self) -> Option<&str>;
    /// Adds the indexes that it needs to the cache. A watch of any controller may map by them, so that all are added before
    /// one starts.
    fn add_indexes(&mut self, client: &Client) -> Result<(), ControllerError>;
    fn run(
        self: Box<Self>,
        around: Surroundings,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), ControllerError>>;
}

impl<R: Request> AnyController for Controller<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn progress(&self) -> Arc<Progress> {
        self.shared.progress.clone()
    }

    fn reconciled(&self) -> Option<&ApiResource> {
        let mut subjects = self.subjects.iter();
        let reconciled = subjects.find(|subject| subject.relation == Relation::Reconciled);
        reconciled.map(|subject| &subject.resource)
    }

    fn kube(&self) -> Option<&kube::Client> {
        self.kube.as_ref()
    }

    fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    fn add_indexes(&mut self, client: &Client) -> Result<(), ControllerError> {
        for declare in std::mem::take(&mut self.indexes) {
            declare(client).map_err(|error| self.failed(error.to_string(), None))?;
        }
        Ok(())
    }

    fn run(
        self: Box<Self>,
        around: Surroundings,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), ControllerError>> {
        Box::pin((*self).run(around, stop))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) workers: usize,
    pub(crate) sync_timeout: Duration,
    pub(crate) leadership: Leadership,
    pub(crate) warm_up: WarmUp,
}

/// What handles outlive the builder with.
struct Shared<R: Request> {
    requests: Requests<R>,
    progress: Arc<Progress>,
    /// What is needed to add a source while it runs.
    client: Mutex<Option<Client>>,
    running: Mutex<Vec<(WatchId, Running)>>,
    next: AtomicU64,
}

/// How far a controller has come.
pub(crate) struct Progress {
    pub(crate) history: History,
    /// Whether all sources have delivered their initial state.
    warm: AtomicBool,
}

impl Progress {
    /// Returns whether all sources have delivered their initial state.
    pub(crate) fn is_warm(&self) -> bool {
        self.warm.load(Ordering::Acquire)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 1,
            sync_timeout: Duration::from_secs(120),
            leadership: Leadership::default(),
            warm_up: WarmUp::default(),
        }
    }
}

/// How the queue of a controller is made.
pub(crate) struct QueueOptions<R> {
    pub(crate) limiter: Box<dyn RateLimiter<R>>,
    pub(crate) priorities: PriorityPolicy,
    pub(crate) filter: Option<Filter>,
}

impl<R> Default for QueueOptions<R> {
    fn default() -> Self {
        Self {
            limiter: Box::new(limiter::controller_default()),
            priorities: PriorityPolicy::FAIR,
            filter: None,
        }
    }
}

/// What the manager lends to a controller.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) client: Client,
    pub(crate) recorder: Recorder,
    pub(crate) environment: Environment,
    pub(crate) metrics: Metrics,
    pub(crate) queues: Queues,
    pub(crate) states: States,
    /// Cancelled when this process leads; at once where there is no election.
    pub(crate) leading: CancellationToken,
    /// The lease without which nothing is begun, where there is an election and the controller needs to lead.
    pub(crate) lease: Option<crate::lease::LeaderStatus>,
    /// What this replica may work on, where objects are shared.
    pub(crate) shards: Option<Shards>,
    /// Cancelled when the time to finish is over.
    pub(crate) abort: CancellationToken,
}

/// The part that knows what is reconciled.
pub(crate) trait Work<R: Request>: Send + Sync + 'static {
    /// Takes requests and reconciles them until it is stopped.
    fn work(
        self: Arc<Self>,
        requests: Requests<R>,
        history: History,
        around: Surroundings,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()>;

    /// Asks for reconciles of what this replica takes over from others, for as long as it runs.
    fn take_over(
        self: Arc<Self>,
        requests: Requests<R>,
        client: Client,
        shards: Shards,
    ) -> BoxFuture<'static, ()>;
}

/// Why a controller failed.
#[derive(Debug, thiserror::Error)]
#[error("controller {controller}: {problem}")]
#[non_exhaustive]
pub struct ControllerError {
    /// The name of the controller.
    pub controller: String,
    /// What it waited for, or which part of it panicked.
    pub problem: String,
    /// Why that failed, where it is known.
    #[source]
    pub source: Option<SourceError>,
}

/// A watch that was added while the controller runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchId(u64);

/// A controller at run time: adds and removes watches, asks for reconciles, tells what ran. Cheap to clone.
pub struct Handle<R: Request = Key>(Arc<Shared<R>>);

impl<R: Request> Handle<R> {
    /// Asks for a reconcile.
    pub fn reconcile(&self, request: R) {
        self.0.requests.add(request);
    }

    /// The controller's queue, to ask for reconciles after a delay, rate limited, or with a priority.
    pub fn requests(&self) -> &Requests<R> {
        &self.0.requests
    }

    /// The last reconciles and their causes.
    pub fn history(&self) -> &History {
        &self.0.progress.history
    }

    /// Returns whether all of its watches have delivered their initial state.
    pub fn is_warm(&self) -> bool {
        self.0.progress.is_warm()
    }

    /// How many keys are ready to run.
    pub fn waiting(&self) -> usize {
        self.0.requests.queue().len()
    }

    /// Adds a watch, and completes once it has delivered its initial state.
    ///
    /// # Errors
    /// When the source does not start, or the controller has not been started.
    pub async fn add_watch(&self, source: impl Source<R>) -> Result<WatchId, SourceError> {
        let client = self.0.client.lock().clone();
        let client =
            client.ok_or_else(|| SourceError::Other("the controller is not running".to_owned()))?;
        let requests = self.0.requests.clone();
        let running = Box::new(source).start(client, requests).await?;
        Ok(self.0.keep(running))
    }

    /// Removes a watch. Whether it was there.
    pub fn remove_watch(&self, id: WatchId) -> Removed {
        let mut running = self.0.running.lock();
        let before = running.len();
        running.retain(|(other, _)| *other != id);
        if running.len() < before {
            Removed::Yes
        } else {
            Removed::WasNotThere
        }
    }
}

/// Whether a watch was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removed {
    /// It was there and is no more.
    Yes,
    /// There was no such watch.
    WasNotThere,
}

impl<R: Request> Shared<R> {
    fn keep(&self, running: Running) -> WatchId {
        let id = WatchId(self.next.fetch_add(1, Ordering::Relaxed));
        self.running.lock().push((id, running));
        id
    }
}

impl<R: Request> Controller<R> {
    fn new(
        name: Arc<str>,
        settings: Settings,
        queue: QueueOptions<R>,
        sources: Vec<Box<dyn Source<R>>>,
        work: Arc<dyn Work<R>>,
    ) -> Self {
        let options = Options::new()
            .name(name.to_string())
            .priorities(queue.priorities)
            .limiter(Attributed {
                whose: format!("the rate limiter of controller {name}"),
                limiter: queue.limiter,
            });
        let progress = Progress {
            history: History::of(name.clone()),
            warm: AtomicBool::default(),
        };
        let shared = Shared {
            requests: Requests::new(Queue::with_notes(options), queue.filter),
            progress: Arc::new(progress),
            client: Mutex::default(),
            running: Mutex::default(),
            next: AtomicU64::default(),
        };
        let subjects = sources.iter().filter_map(|source| source.subject());
        Self {
            name,
            settings,
            subjects: subjects.collect(),
            sources,
            indexes: Vec::new(),
            work,
            shared: Arc::new(shared),
            kube: None,
            cluster: None,
        }
    }

    /// The same controller, of objects of another cluster.
    fn in_cluster(mut self, name: Option<Arc<str>>) -> Self {
        let subjects = self.subjects.into_iter();
        let subjects = subjects.map(|subject| subject.seen_from(name.as_deref()));
        self.subjects = subjects.collect();
        self.cluster = name;
        self
    }

    /// The same controller, which needs these indexes.
    fn declaring(mut self, indexes: Vec<Declare>) -> Self {
        self.indexes = indexes;
        self
    }

    /// The same controller, whose writes, live reads and events go through this client instead of the manager's: with the
    /// credentials of a service account of its own, say. The cache stays the manager's. For a controller of
    /// [another cluster](Builder::cluster) it has to be a client of that one.
    pub fn with_kube(mut self, kube: kube::Client) -> Self {
        self.kube = Some(kube);
        self
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the [further cluster](Builder::cluster) whose objects it reconciles; none for the manager's own.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// The kinds that it reconciles, owns and watches, in the order of its description.
    ///
    /// ```
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// use kubewright_runtime::{Controller, Outcome, from_fn, watch::Relation};
    ///
    /// let reconciler = from_fn(|_: std::sync::Arc<ConfigMap>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<ConfigMap>("c").owns::<Deployment>().reconciler(reconciler);
    /// let kinds: Vec<_> = controller.kinds().iter().map(|s| (s.resource.kind.as_str(), s.relation)).collect();
    /// assert_eq!(kinds, [("ConfigMap", Relation::Reconciled), ("Deployment", Relation::Owned)]);
    /// ```
    pub fn kinds(&self) -> &[Subject] {
        &self.subjects
    }

    /// A way to reach the controller once it runs.
    pub fn handle(&self) -> Handle<R> {
        Handle(self.shared.clone())
    }

    /// Starts all sources and waits until each has delivered its initial state.
    pub(crate) async fn warm_up(&mut self, client: &Client) -> Result<(), ControllerError> {
        *self.shared.client.lock() = Some(client.clone());
        let deadline = Instant::now() + self.settings.sync_timeout;
        let mut waiting = Vec::new();
        let mut starting = JoinSet::new();
        for source in std::mem::take(&mut self.sources) {
            let name = source.describe();
            let (client, requests) = (client.clone(), self.shared.requests.clone());
            let handle = starting.spawn(async move { source.start(client, requests).await });
            waiting.push((handle.id(), name));
        }
        while !waiting.is_empty() {
            let Ok(Some(joined)) = timeout_at(deadline, starting.join_next_with_id()).await else {
                let sync_timeout = self.settings.sync_timeout;
                let names: Vec<String> = waiting.into_iter().map(|(_, name)| name).collect();
                let names = names.join(", ");
                let problem = format!("no first state of {names} within {sync_timeout:?}");
                return Err(self.failed(problem, None));
            };
            let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
            let at = waiting.iter().position(|(other, _)| *other == id);
            let name = at.map_or_else(String::new, |at| waiting.swap_remove(at).1);
            match joined {
                Ok((_, Ok(running))) => self.shared.keep(running),
                Ok((_, Err(source))) => {
                    return Err(self.failed(format!("{name} did not start"), Some(source)));
                }
                Err(error) => {
                    let problem = format!("the source {name} panicked: {}", message(error));
                    return Err(self.failed(problem, None));
                }
            };
        }
        Ok(())
    }

    /// Fills the caches and waits for leadership, in the order that the settings say.
    async fn prepare(&mut self, around: &Surroundings) -> Result<(), ControllerError> {
        let needs_leader = self.settings.leadership == Leadership::Required;
        if needs_leader && self.settings.warm_up == WarmUp::OnLeadership {
            around.leading.cancelled().await;
        }
        self.warm_up(&around.client).await?;
        self.shared.progress.warm.store(true, Ordering::Release);
        if needs_leader {
            around.leading.cancelled().await;
        }
        Ok(())
    }

    fn failed(&self, problem: String, source: Option<SourceError>) -> ControllerError {
        ControllerError {
            controller: self.name.to_string(),
            problem,
            source,
        }
    }

    fn start_workers(&self, around: &Surroundings, stop: &CancellationToken) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        for _ in 0..self.settings.workers {
            let (requests, history) = (
                self.shared.requests.clone(),
                self.shared.progress.history.clone(),
            );
            let work = self.work.clone();
            // A token of its own: to ask a shared one is to wait for the other workers.
            let stop = stop.child_token();
            workers.spawn(work.work(requests, history, around.clone(), stop));
        }
        workers
    }

    /// Reconciles until `stop`, then lets what runs finish until the surroundings abort it.
    pub(crate) async fn run(
        mut self,
        around: Surroundings,
        stop: CancellationToken,
    ) -> Result<(), ControllerError> {
        let metrics = around.metrics.controller(&self.name);
        let panics = self.shared.requests.panics().clone();
        panics.count_in(metrics.handler_panics());
        tokio::select! { biased; // A failure explains a stop that comes with it.
            problem = panics.first() => return Err(self.failed(problem, None)),
            () = stop.cancelled() => return Ok(()),
            started = self.prepare(&around) => started?,
        }
        metrics.workers(self.settings.workers);
        let queue = self.shared.requests.queue().clone();
        around.queues.add(move || queue.stats(), metrics);
        tracing::info!(controller = %self.name, workers = self.settings.workers, "controller runs");
        let mut others = JoinSet::new();
        if let Some(shards) = around.shards.clone() {
            let (requests, client) = (self.shared.requests.clone(), around.client.clone());
            others.spawn(self.work.clone().take_over(requests, client, shards));
        }
        let mut workers = self.start_workers(&around, &stop);
        let problem = tokio::select! { biased; // The end of the time to finish is worth most.
            () = around.abort.cancelled() => {
                workers.shutdown().await;
                None
            }
            problem = panics.first() => Some(problem),
            problem = first_panic(&mut workers) => problem,
        };
        self.shared.requests.queue().shut_down();
        self.shared.running.lock().clear();
        tracing::info!(controller = %self.name, "controller stopped");
        match problem {
            None => Ok(()),
            Some(problem) => Err(self.failed(problem, None)),
        }
    }
}

/// Waits for all workers, or for the first one that panics. Reconciles catch their own panics: what comes here is a rate
/// limiter, a clock, or a broken invariant of ours, and with a worker less a controller may stand still.
async fn first_panic(workers: &mut JoinSet<()>) -> Option<String> {
    while let Some(joined) = workers.join_next().await {
        if let Err(error) = joined {
            return Some(format!("a worker panicked: {}", message(error)));
        }
    }
    None
}

fn message(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panics::text(&*panic),
        Err(error) => error.to_string(),
    }
}

/// A rate limiter of the user's, whose panics say whose they are.
struct Attributed<R> {
    whose: String,
    limiter: Box<dyn RateLimiter<R>>,
}

impl<R: Request> RateLimiter<R> for Attributed<R> {
    fn delay(&mut self, retry: &Retry<'_, R>) -> Duration {
        panics::attributed(&self.whose, || self.limiter.delay(retry))
    }

    fn forget(&mut self, request: &R) {
        panics::attributed(&self.whose, || self.limiter.forget(request));
    }
}

impl<R: Request> fmt::Debug for Controller<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Controller({})", self.name)
    }
}

impl<R: Request> Clone for Handle<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Request> fmt::Debug for Handle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:?})", self.0.requests)
    }
}
