//! The manager: starts everything an operator has, in order, and stops it in the reverse order.
//!
//! Guarantees
//! - Servers start first, so that probes answer while caches fill; then webhooks, then what needs no leadership, then what
//!   needs it. The end is the reverse, and the lease is released last.
//! - The first signal lets reconciles that run finish, for so long; the second does not.
//! - A part that fails stops the whole, and the error says which part and why. A lost lease stops everything at once: whoever
//!   leads now must not be disturbed.

mod candidate;
mod error;
mod group;
mod runnable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::{Connections, Factory, Key};
use kubewright_webhook::Webhooks;
use kubewright_workqueue::Queue;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use error::ManagerError;
pub use runnable::Runnable;

use crate::cause::Reasons;
use crate::client::Client;
use crate::controller::{Controller, Handle, Leadership, Surroundings, WarmUp};
use crate::environment::Environment;
use crate::events::{EventWriter, Recorder, RecorderOptions};
use crate::lease::LeaseOptions;
use crate::metrics::{ControllerMetrics, Metrics};
use crate::serving::{AccessGuard, Listener, MetricsServer, Probes, Serves, WebhookServer};
use candidate::Candidate;
use group::{Groups, Stage};

/// Runs controllers and whatever else an operator has.
#[must_use = "a manager does nothing until it runs"]
pub struct Manager {
    name: String,
    client: Client,
    environment: Environment,
    metrics: Metrics,
    controllers: Vec<Controller>,
    runnables: Vec<Box<dyn Runnable>>,
    election: Option<LeaseOptions>,
    probes: Probes,
    servers: Vec<Serving>,
    shutdown_timeout: Duration,
}

/// A server of the manager's own.
enum Serving {
    Probes(Listener),
    Metrics(Listener, Option<AccessGuard>),
    Webhooks(Listener, Webhooks, Serves),
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

    /// A manager of the cluster that a configuration names. Its requests are among its [metrics](Manager::metrics).
    ///
    /// # Errors
    /// When no client can be made of it.
    pub fn from_config(config: kube::Config) -> Result<Self, ManagerError> {
        let metrics = Metrics::new();
        let host = config.cluster_url.authority();
        let host = host.map_or("", |host| host.as_str()).to_owned();
        let client = kube::client::ClientBuilder::try_from((config, Connections))
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
    pub fn over(client: Client) -> Self {
        Self {
            name: "kubewright".to_owned(),
            client,
            environment: Environment::system(),
            metrics: Metrics::new(),
            controllers: Vec::new(),
            runnables: Vec::new(),
            election: None,
            probes: Probes::new(),
            servers: Vec::new(),
            shutdown_timeout: Duration::from_secs(30),
        }
    }

    /// The operator's name: the reporter of its events.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Where time and randomness come from.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Where its numbers are kept, if others keep theirs there too: those of a client, say.
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// How long reconciles may take to finish after a stop. By default 30 s.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.controllers.push(controller);
        self
    }

    /// Adds something else that runs as long as the manager does.
    pub fn runnable(mut self, runnable: impl Runnable) -> Self {
        self.runnables.push(Box::new(runnable));
        self
    }

    /// Holds an election: controllers run in one process at a time.
    pub fn leader_election(mut self, options: LeaseOptions) -> Self {
        self.election = Some(options);
        self
    }

    /// Serves `/healthz` and `/readyz`. An empty address or `0` means not to.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn serve_probes(mut self, address: &str) -> Result<Self, ManagerError> {
        let what = "probes";
        let bound = Listener::bind(address).await;
        let bound = bound.map_err(|source| ManagerError::Serve { what, source })?;
        if let Some(listener) = bound {
            told("probes", &listener);
            self.servers.push(Serving::Probes(listener));
        }
        Ok(self)
    }

    /// Serves `/metrics`, and `/debug/causes` with the last reconciles of each controller.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn serve_metrics(self, address: &str) -> Result<Self, ManagerError> {
        let what = "metrics";
        let bound = Listener::bind(address).await;
        let bound = bound.map_err(|source| ManagerError::Serve { what, source })?;
        Ok(match bound {
            Some(listener) => self.serve_metrics_on(listener, None),
            None => self,
        })
    }

    /// Serves metrics on a listener of one's own, to those that the guard lets pass.
    pub fn serve_metrics_on(mut self, listener: Listener, guard: Option<AccessGuard>) -> Self {
        told("metrics", &listener);
        self.servers.push(Serving::Metrics(listener, guard));
        self
    }

    /// Serves webhooks, which need no leadership. The listener speaks TLS: API servers ask nobody else.
    ///
    /// Until they are served, the process is not ready.
    pub fn serve_webhooks(mut self, listener: Listener, webhooks: Webhooks) -> Self {
        told("webhooks", &listener);
        let serves = Serves::default();
        let check = serves.clone();
        self.probes.readiness("webhooks", move || check.check());
        self.servers
            .push(Serving::Webhooks(listener, webhooks, serves));
        self
    }

    /// The checks behind the probes, to add one's own.
    pub fn probes(&self) -> &Probes {
        &self.probes
    }

    /// The client that controllers get, with the same cache.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The numbers that it keeps.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Runs until a signal: the first lets what runs finish, the second does not.
    ///
    /// # Errors
    /// When a part fails or does not end in time.
    pub async fn run(self) -> Result<(), ManagerError> {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let mut signals = JoinSet::new();
        signals.spawn(runnable::signals(stop.clone(), abort.clone()));
        self.run_with(stop, abort).await
    }

    /// Runs until it is cancelled, then lets what runs finish.
    ///
    /// # Errors
    /// When a part fails or does not end in time.
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), ManagerError> {
        self.run_with(stop, CancellationToken::new()).await
    }

    async fn run_with(
        self,
        stop: CancellationToken,
        abort: CancellationToken,
    ) -> Result<(), ManagerError> {
        let candidate = Candidate::enter(&self)?;
        let (around, writer) = self.surroundings(&candidate, &abort);
        let recording = CancellationToken::new();
        let mut recorder = JoinSet::new();
        recorder.spawn(writer.run(recording.clone()));
        let _caches = StopOnDrop(self.client.factory().clone());
        let (client, timeout) = (self.client.clone(), self.shutdown_timeout);
        let mut groups = Groups::new(abort);
        self.start(&mut groups, &around);
        let cause = tokio::select! { biased; // A lost lease is worth most; a failure explains a stop that comes with it.
            () = candidate.lost() => Some(ManagerError::LeadershipLost),
            failed = groups.failure() => Some(failed),
            () = stop.cancelled() => None,
        };
        let timeout = match cause {
            // Whoever leads now must not be disturbed.
            Some(ManagerError::LeadershipLost) => Duration::ZERO,
            _ => timeout,
        };
        let ended = groups.stop(timeout).await;
        client.factory().shutdown().await;
        candidate.leave().await;
        recording.cancel();
        // It ends by itself in a moment; a panic in it has nobody to be told to.
        recorder.join_next().await;
        match cause {
            Some(cause) => Err(cause),
            None => ended,
        }
    }

    fn start(self, groups: &mut Groups, around: &Surroundings) {
        let handles: Vec<(String, Handle)> = self.controllers.iter().map(named_handle).collect();
        let waited_for: Vec<(String, Handle)> = self
            .controllers
            .iter()
            .filter(|controller| controller.settings.warm_up == WarmUp::BeforeLeadership)
            .map(named_handle)
            .collect();
        self.probes
            .readiness("caches", move || is_warm(&waited_for));
        for server in self.servers {
            let (probes, metrics) = (self.probes.clone(), self.metrics.clone());
            let causes = handles.clone();
            groups.add(
                Stage::Servers,
                server.name().to_owned(),
                |stop| async move {
                    server.serve(probes, metrics, causes, stop).await;
                    Ok(())
                },
            );
        }
        for runnable in self.runnables {
            let name = runnable.describe();
            match runnable.leadership() {
                Leadership::NotNeeded => groups.add(Stage::Others, name, |stop| runnable.run(stop)),
                Leadership::Required => {
                    groups.add_led(name, around.leading.clone(), |stop| runnable.run(stop));
                }
            }
        }
        for controller in self.controllers {
            groups.control(controller, around);
        }
    }

    fn surroundings(
        &self,
        candidate: &Candidate,
        abort: &CancellationToken,
    ) -> (Surroundings, EventWriter) {
        let queues = Queues::default();
        let collected = queues.clone();
        self.metrics
            .collect("workqueue", move |out| collected.write(out));
        let kube = self.client.kube().clone();
        let options = RecorderOptions::new(&self.name);
        let (recorder, writer) = Recorder::new(kube, options, self.environment.clone());
        let around = Surroundings {
            client: self.client.clone(),
            recorder,
            environment: self.environment.clone(),
            metrics: self.metrics.clone(),
            queues,
            leading: candidate.leading.clone(),
            abort: abort.clone(),
        };
        (around, writer)
    }
}

/// Handlers hold clients, and clients hold the informers that feed the handlers: somebody has to cut that when a manager is
/// dropped rather than stopped.
struct StopOnDrop(Factory);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Says where something is served: whoever asked for any free port wants to know which.
fn told(what: &str, listener: &Listener) {
    let address = listener.address().ok().map(|address| address.to_string());
    tracing::info!(what, address, "listening");
}

fn named_handle(controller: &Controller) -> (String, Handle) {
    (controller.name().to_owned(), controller.handle())
}

/// Whether the caches of all controllers have their first state.
fn is_warm(controllers: &[(String, Handle)]) -> Result<(), String> {
    let cold = controllers.iter().filter(|(_, handle)| !handle.is_warm());
    let cold: Vec<&str> = cold.map(|(name, _)| name.as_str()).collect();
    match cold.is_empty() {
        true => Ok(()),
        false => Err(format!("no first state yet: {}", cold.join(", "))),
    }
}

impl Serving {
    fn name(&self) -> &'static str {
        match self {
            Self::Probes(_) => "the server of probes",
            Self::Metrics(..) => "the server of metrics",
            Self::Webhooks(..) => "the server of webhooks",
        }
    }

    async fn serve(
        self,
        probes: Probes,
        metrics: Metrics,
        controllers: Vec<(String, Handle)>,
        stop: CancellationToken,
    ) {
        match self {
            Self::Probes(listener) => listener.serve(probes, stop).await,
            Self::Webhooks(listener, webhooks, serves) => {
                serves.begin();
                let server = WebhookServer::new(webhooks, &metrics);
                listener.serve(server, stop).await;
            }
            Self::Metrics(listener, guard) => {
                let mut server = MetricsServer::new(metrics).json("/debug/causes", move || {
                    let told = controllers.iter().map(|(name, handle)| {
                        let last = handle.history().list();
                        let last = last.iter().map(serde_json::to_value);
                        (name.clone(), last.filter_map(Result::ok).collect())
                    });
                    serde_json::Value::Object(told.collect())
                });
                if let Some(guard) = guard {
                    server = server.guard(guard);
                }
                listener.serve(server, stop).await;
            }
        }
    }
}

/// The queues of all controllers, for their numbers.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<Counted>>>);

/// A queue, and where the number of its running keys is told.
type Counted = (Queue<Key, Reasons>, ControllerMetrics);

impl Queues {
    pub(crate) fn add(&self, queue: &Queue<Key, Reasons>, metrics: ControllerMetrics) {
        self.0.lock().push((queue.clone(), metrics));
    }

    fn write(&self, out: &mut String) {
        let mut stats = Vec::new();
        for (queue, metrics) in self.0.lock().iter() {
            let counted = queue.stats();
            // A key that runs is a worker at work.
            metrics.active(counted.running);
            stats.push(counted);
        }
        // Writing into a string cannot fail.
        let _ = kubewright_workqueue::prometheus::write(&stats, out);
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
