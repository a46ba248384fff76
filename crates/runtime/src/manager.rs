//! The manager: starts everything an operator has, in order, and stops it in the reverse order.
//!
//! Guarantees
//! - Servers start first, so that probes answer while caches fill; then webhooks, then what needs no leadership, then what
//!   needs it. The end is the reverse, and the lease is released last.
//! - The first signal lets reconciles that run finish, for so long; the second does not.
//! - Every part is supervised: one that fails, panics or ends by itself stops the whole, and the error says which part and
//!   how it ended. A shutdown has one deadline, and names the parts that are late.
//! - A lost lease stops everything at once: whoever leads now must not be disturbed. No reconcile and no write is begun
//!   after it, by this process's clock.

mod candidate;
mod clusters;
mod error;
mod options;
mod part;
mod queues;
mod runnable;
mod serving;
mod sharing;
mod supervisor;
mod watchdog;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::USER_AGENT;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use crate::identity::user_agent;
pub use error::ManagerError;
pub use part::{Ended, OnEnd};
pub(crate) use queues::Queues;
pub use runnable::{Runnable, Task};

use crate::States;
use crate::cache::CacheMisuse;
use crate::client::{Client, InformerLifetime};
use crate::controller::{AnyController, History, Leadership, Progress, Surroundings, WarmUp};
use crate::environment::Environment;
use crate::events::{EventWriter, Recorder, RecorderOptions};
use crate::identity::program_name;
use crate::lease::LeaseOptions;
use crate::metrics::Metrics;
use crate::serving::Probes;
use crate::sharding::{Caches, ShardingOptions, Shards};
use candidate::Candidate;
use clusters::{Cluster, Recorders};
use part::{Part, Stage};
use serving::{Pages, Serving, Shown};
use sharing::Sharing;
use supervisor::Supervisor;

/// How long parts that were dropped may take to be gone.
const CUT_OFF: Duration = Duration::from_secs(1);

/// Runs controllers and whatever else an operator has.
#[must_use = "a manager does nothing until it runs"]
pub struct Manager {
    name: String,
    client: Client,
    clusters: Vec<Cluster>,
    environment: Environment,
    metrics: Metrics,
    controllers: Vec<Box<dyn AnyController>>,
    runnables: Vec<Box<dyn Runnable>>,
    election: Option<LeaseOptions>,
    sharding: Option<ShardingOptions>,
    probes: Probes,
    servers: Vec<Serving>,
    pages: Pages,
    states: States,
    recorder: Option<RecorderOptions>,
    /// The recorder that was asked for before the manager runs, and what will write its events.
    recording: Mutex<Option<Box<(Recorder, EventWriter)>>>,
    shutdown_timeout: Duration,
    /// Cancelled when this process leads; at once where there is no election.
    leading: CancellationToken,
    informers: Arc<InformerLifetime>,
    /// The cache was described too late, or as a wider one than it may be.
    misuse: Option<CacheMisuse>,
}

/// Whether a manager has its process for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    /// The process is there to run this manager, and ends with it.
    Own,
    /// The manager is one of the things that the process does.
    Shared,
}

impl Manager {
    /// A manager of the cluster that the environment names: a kubeconfig, else the service account of the pod.
    ///
    /// # Errors
    /// When there is neither.
    pub async fn from_env() -> Result<Self, ManagerError> {
        let config = kube::Config::infer().await;
        let config = config.map_err(|error| ManagerError::NoCluster(Box::new(error)))?;
        Self::from_config(config)
    }

    /// A manager of the cluster that a configuration names. Its requests are among its [metrics](Manager::metrics), and have the
    /// program's name as [`user_agent`] unless the configuration has another.
    ///
    /// # Errors
    /// When no client can be made of it.
    pub fn from_config(mut config: kube::Config) -> Result<Self, ManagerError> {
        let metrics = Metrics::new();
        if !config.headers.iter().any(|(name, _)| name == USER_AGENT) {
            config.headers.extend(user_agent(program_name(), "unknown"));
        }
        // The client of the runtime retries by itself, within a limit.
        config.default_retry = false;
        let host = config.cluster_url.authority();
        let host = host.map_or("", |host| host.as_str()).to_owned();
        let client = kube::client::ClientBuilder::try_from(config)
            .map_err(|error| ManagerError::NoClient(Box::new(error)))?
            .with_layer(&metrics.requests().layer(&host))
            .build();
        Ok(Self::new(client).with_metrics(metrics))
    }

    /// A manager over a client.
    pub fn new(kube: kube::Client) -> Self {
        Self::over(Client::new(kube))
    }

    /// A manager over a cached client that was made in one's own way.
    ///
    /// The last manager over a client stops the client's informers when it ends.
    pub fn over(client: Client) -> Self {
        Self {
            name: program_name().to_owned(),
            informers: client.informers(),
            client,
            clusters: Vec::new(),
            environment: Environment::system(),
            metrics: Metrics::new(),
            controllers: Vec::new(),
            runnables: Vec::new(),
            election: None,
            sharding: None,
            probes: Probes::new(),
            servers: Vec::new(),
            pages: Pages::default(),
            states: States::default(),
            recorder: None,
            recording: Mutex::default(),
            shutdown_timeout: Duration::from_secs(30),
            leading: CancellationToken::new(),
            misuse: None,
        }
    }

    /// The client that controllers get, with the same cache. It writes under the manager's name, unless it has one, and leads to
    /// the [clusters](Manager::cluster) that were added and the [states](Manager::state) that were given so far.
    pub fn client(&self) -> Client {
        let name = || self.name.clone();
        let client = self.client.with_clusters(self.further(), &self.states);
        client.with(|write| {
            write.field_owner.get_or_insert_with(name);
        })
    }

    /// Completes when this process leads: at the start where there is no election. It can be taken before the manager runs.
    pub fn elected(&self) -> impl Future<Output = ()> + Send + use<> {
        self.leading.clone().cancelled_owned()
    }

    /// The last reconciles of each of its controllers, by their names. They can be taken before the manager runs.
    pub fn histories(&self) -> Vec<(String, History)> {
        let each = self.controllers.iter().map(|it| named_progress(&**it));
        each.map(|(name, progress)| (name, progress.history.clone()))
            .collect()
    }

    /// Returns what it was [given](Manager::state) so far.
    pub fn states(&self) -> &States {
        &self.states
    }

    /// The numbers that it keeps.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Runs until a signal: the first lets what runs finish, the second does not.
    ///
    /// The process is taken to be there for this manager: SIGINT and SIGTERM are handled, and if the lease is lost and
    /// something keeps the process from ending, a thread ends it before another replica can lead. Use
    /// [`run_until`](Manager::run_until) where the process does other things too.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, from_fn};
    /// #[tokio::main]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let kube = kube::Client::try_default().await?;
    ///     let reconciler = from_fn(|_: Arc<Deployment>, _| async { Ok(Outcome::done()) });
    ///     let controller = Controller::of::<Deployment>("example").reconciler(reconciler);
    ///     Manager::new(kube).name("example").controller(controller).run().await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// When a part fails or does not end in time.
    pub async fn run(self) -> Result<(), ManagerError> {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let mut signals = JoinSet::new();
        signals.spawn(runnable::signals(stop.clone(), abort.clone()));
        self.run_with(stop, abort, Process::Own).await
    }

    /// Runs until it is cancelled, then lets what runs finish. Neither handles signals nor ends the process.
    ///
    /// # Errors
    /// When a part fails or does not end in time.
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), ManagerError> {
        self.run_with(stop, CancellationToken::new(), Process::Shared)
            .await
    }

    async fn run_with(
        mut self,
        stop: CancellationToken,
        abort: CancellationToken,
        process: Process,
    ) -> Result<(), ManagerError> {
        if let Some(error) = self.misuse {
            let (part, ended) = ("the cache".to_owned(), Ended::Failed(error.into()));
            return Err(ManagerError::Part { part, ended });
        }
        self.check_names()?;
        self.check_clusters()?;
        self.add_indexes()?;
        let (candidate, election) = Candidate::enter(&self, process)?;
        let mut supervisor = Supervisor::new(abort.clone());
        let sharing = Sharing::enter(&self, &mut supervisor)?;
        let recorders = self.record(&mut supervisor);
        let around = self.surroundings(&candidate, &sharing, &recorders, &abort);
        self.select_objects(around.shards.as_ref())?;
        if let Some(election) = election {
            candidate.run(election, &self, &mut supervisor);
        }
        let timeout = self.shutdown_timeout;
        self.start(&mut supervisor, &around, &recorders);
        drop((around, recorders));
        let cause = tokio::select! { biased; // A lost lease is worth most; a failure explains a stop that comes with it.
            () = candidate.lost() => Some(ManagerError::LeadershipLost),
            () = sharing.lost() => Some(ManagerError::ShardsLost),
            failed = supervisor.failure() => Some(failed),
            () = stop.cancelled() => None,
        };
        let ended = tokio::select! { biased; // Whoever leads now must not be disturbed.
            () = candidate.lost() => Err(ManagerError::LeadershipLost),
            () = sharing.lost() => Err(ManagerError::ShardsLost),
            ended = supervisor.stop(timeout) => ended,
        };
        let lost = matches!(
            ended,
            Err(ManagerError::LeadershipLost | ManagerError::ShardsLost)
        );
        let moment = match ended {
            Err(ManagerError::LeadershipLost) => candidate.margin / 4,
            _ => CUT_OFF,
        };
        let left = supervisor.cut_off(moment.min(CUT_OFF)).await;
        if !left.is_empty() {
            tracing::error!(
                parts = left.join(", "),
                "parts block their threads and were left behind"
            );
        }
        match cause {
            Some(cause) if !lost => Err(cause),
            _ => ended,
        }
    }

    /// Keeps the caches to the objects of this replica, where that is wanted.
    fn select_objects(&self, shards: Option<&Shards>) -> Result<(), ManagerError> {
        let wanted = |options: &ShardingOptions| options.caches == Caches::OwnShards;
        let Some(shards) = shards.filter(|_| self.sharding.as_ref().is_some_and(wanted)) else {
            return Ok(());
        };
        for controller in &self.controllers {
            if let Some(kind) = controller.reconciled() {
                let client = self.client_of(&**controller)?;
                client.factory().select(kind, shards.selection());
            }
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ManagerError> {
        let mut names = BTreeSet::new();
        for controller in &self.controllers {
            if !names.insert(controller.name()) {
                let name = controller.name().to_owned();
                return Err(ManagerError::SameName { name });
            }
        }
        Ok(())
    }

    /// Adds the indexes of all controllers to the caches of their clusters.
    fn add_indexes(&mut self) -> Result<(), ManagerError> {
        let mut controllers = std::mem::take(&mut self.controllers);
        for controller in &mut controllers {
            let client = self.client_of(&**controller)?;
            let added = controller.add_indexes(&client);
            added.map_err(|error| ManagerError::Part {
                part: format!("controller {}", controller.name()),
                ended: Ended::Failed(error.into()),
            })?;
        }
        self.controllers = controllers;
        Ok(())
    }

    fn start(self, supervisor: &mut Supervisor, around: &Surroundings, recorders: &Recorders) {
        let handles: Vec<(String, Arc<Progress>)> = self
            .controllers
            .iter()
            .map(|it| named_progress(&**it))
            .collect();
        let waited_for: Vec<(String, Arc<Progress>)> = self
            .controllers
            .iter()
            .filter(|controller| controller.settings().warm_up == WarmUp::BeforeLeadership)
            .map(|it| named_progress(&**it))
            .collect();
        self.probes
            .readiness("caches", move || is_warm(&waited_for));
        let informers = self.informers;
        supervisor.add(Part::new(Stage::Informers, "informers"), |stop| {
            follow(informers, stop)
        });
        for cluster in self.clusters {
            cluster.follow(supervisor);
        }
        let shown = Shown {
            probes: self.probes,
            metrics: self.metrics,
            pages: self.pages,
            states: self.states,
            controllers: handles,
        };
        for server in self.servers {
            let shown = shown.clone();
            let part = Part::new(Stage::Servers, server.name());
            supervisor.add(part, |stop| async move {
                server.serve(shown, stop).await;
                Ok(())
            });
        }
        for runnable in self.runnables {
            run(runnable, supervisor, around);
        }
        for controller in self.controllers {
            control(controller, supervisor, around, recorders);
        }
    }

    fn surroundings(
        &self,
        candidate: &Candidate,
        sharing: &Sharing,
        recorders: &Recorders,
        abort: &CancellationToken,
    ) -> Surroundings {
        let queues = Queues::default();
        let collected = queues.clone();
        self.metrics
            .collect("workqueue", move |out| collected.write(out));
        self.collect_informers();
        Surroundings {
            client: self.client(),
            recorder: recorders.of(None).clone(),
            environment: self.environment.clone(),
            metrics: self.metrics.clone(),
            queues,
            states: self.states.clone(),
            leading: self.leading.clone(),
            lease: candidate.leadership.clone(),
            shards: sharing.shards.clone(),
            abort: abort.clone(),
        }
    }
}

/// Starts a runnable, or what waits for leadership and then starts it.
fn run(runnable: Box<dyn Runnable>, supervisor: &mut Supervisor, around: &Surroundings) {
    let leadership = runnable.leadership();
    let stage = match leadership {
        Leadership::NotNeeded => Stage::Others,
        Leadership::Required => Stage::Leader,
    };
    let part = Part {
        on_end: runnable.on_end(),
        stop_within: runnable.stop_within(),
        ..Part::new(stage, runnable.describe())
    };
    let leading = around.leading.clone();
    supervisor.add(part, move |stop| async move {
        if leadership == Leadership::Required {
            tokio::select! { biased; // A stop is worth more than a start.
                () = stop.cancelled() => return Ok(()),
                () = leading.cancelled() => {}
            }
        }
        runnable.run(stop).await
    });
}

/// Starts a controller. It drops its own workers when it is aborted, and has ended only when they have: a worker that blocks its
/// thread is still at work.
fn control(
    controller: Box<dyn AnyController>,
    supervisor: &mut Supervisor,
    around: &Surroundings,
    recorders: &Recorders,
) {
    let part = |stage| Part::new(stage, format!("controller {}", controller.name()));
    let mut around = around.clone();
    let part = match controller.settings().leadership {
        Leadership::Required => part(Stage::Leader),
        Leadership::NotNeeded => {
            around.lease = None;
            part(Stage::Others)
        }
    };
    let tokens = supervisor.tokens(part.stage);
    around.abort = tokens.abort;
    let fenced = around.client.fenced(around.lease.clone());
    around.recorder = recorders.of(controller.cluster()).clone();
    let client = match controller.cluster() {
        Some(name) => fenced.cluster(name),
        None => Ok(fenced),
    };
    supervisor.spawn(part, async move {
        around.client = client?;
        if let Some(kube) = controller.kube() {
            around.client = around.client.with_kube(kube.clone());
            around.recorder = around.recorder.with_kube(kube.clone());
        }
        let ended = controller.run(around, tokens.stop).await;
        ended.map_err(crate::Error::from)
    });
}

/// Follows the informers until they are to stop or one panics.
async fn follow(
    informers: Arc<InformerLifetime>,
    stop: CancellationToken,
) -> Result<(), crate::Error> {
    let factory = informers.factory().clone();
    tokio::select! { biased; // A failure explains a stop that comes with it.
        failed = factory.failed() => return Err(failed.into()),
        () = stop.cancelled() => {}
    }
    // The last one over a client stops its informers, and sees their handlers end.
    if let Some(informers) = Arc::into_inner(informers) {
        informers.factory().shutdown().await;
    }
    Ok(())
}

fn named_progress(controller: &dyn AnyController) -> (String, Arc<Progress>) {
    (controller.name().to_owned(), controller.progress())
}

/// Whether the caches of all controllers have their first state.
fn is_warm(controllers: &[(String, Arc<Progress>)]) -> Result<(), String> {
    let cold = controllers
        .iter()
        .filter(|(_, progress)| !progress.is_warm());
    let cold: Vec<&str> = cold.map(|(name, _)| name.as_str()).collect();
    if cold.is_empty() {
        Ok(())
    } else {
        Err(format!("no first state yet: {}", cold.join(", ")))
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("name", &self.name)
            .field("controllers", &self.controllers)
            .finish_non_exhaustive()
    }
}
