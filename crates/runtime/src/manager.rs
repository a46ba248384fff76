//! The manager: starts everything an operator has, in order, and stops it in the reverse order.
//!
//! Guarantees
//! - Servers start first, so that probes answer while caches fill; then webhooks, then what needs no leadership, then what
//!   needs it. The end is the reverse, and the lease is released last.
//! - The first signal lets reconciles that run finish, for so long; the second does not.
//! - A part that fails stops the whole, and the error says which part and why. A lost lease stops everything at once: whoever
//!   leads now must not be disturbed.

mod group;
mod runnable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Key;
use kubewright_workqueue::Queue;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use runnable::Runnable;

use crate::Error;
use crate::client::Client;
use crate::controller::{Controller, Leadership, Surroundings};
use crate::environment::Environment;
use crate::events::Recorder;
use crate::metrics::Metrics;
use group::{Groups, Stage};

/// Runs controllers and whatever else an operator has.
#[must_use = "a manager does nothing until it runs"]
pub struct Manager {
    name: String,
    client: Client,
    environment: Environment,
    metrics: Metrics,
    controllers: Vec<Controller>,
    runnables: Vec<(Stage, Box<dyn Runnable>)>,
    shutdown_timeout: Duration,
}

/// Why a manager ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// No cluster could be found.
    #[error("no cluster: neither a kubeconfig nor a service account was found")]
    NoCluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A part of it failed.
    #[error("{part} failed: {}", .error.report())]
    Part {
        /// Which.
        part: String,
        /// Why.
        error: Error,
    },
    /// A part did not end in time.
    #[error("{parts} did not end within {waited:?}")]
    Shutdown {
        /// Which.
        parts: String,
        /// How long they were given.
        waited: Duration,
    },
    /// A second signal came.
    #[error("told to stop twice; what was running was not waited for")]
    Aborted,
    /// Somebody else leads now.
    #[error("leadership was lost")]
    LeadershipLost,
}

impl Manager {
    /// A manager of the cluster that the environment names: a kubeconfig, else the service account of the pod.
    ///
    /// # Errors
    /// When there is neither.
    pub async fn from_env() -> Result<Self, ManagerError> {
        let client = kube::Client::try_default().await;
        let client = client.map_err(|error| ManagerError::NoCluster(Box::new(error)))?;
        Ok(Self::new(client))
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
        let stage = match runnable.leadership() {
            Leadership::Required => Stage::Leader,
            Leadership::NotNeeded => Stage::Others,
        };
        self.runnables.push((stage, Box::new(runnable)));
        self
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
        let signals = tokio::spawn(runnable::signals(stop.clone(), abort.clone()));
        let ended = self.run_with(stop, abort).await;
        signals.abort();
        ended
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
        let mut groups = Groups::new(abort.clone());
        let around = self.surroundings(&abort);
        let client = self.client.clone();
        let mut leaders = Vec::new();
        for (stage, runnable) in self.runnables {
            let part = runnable.describe();
            groups.add(stage, part, |stop| runnable.run(stop));
        }
        for controller in self.controllers {
            match controller.settings.leadership {
                Leadership::NotNeeded => groups.control(Stage::Others, controller, &around),
                Leadership::Required => leaders.push(controller),
            }
        }
        for controller in leaders {
            groups.control(Stage::Leader, controller, &around);
        }
        let cause = tokio::select! { biased; // A failure explains a stop that comes with it.
            failed = groups.failure() => Some(failed),
            () = stop.cancelled() => None,
        };
        let ended = groups.stop(self.shutdown_timeout).await;
        client.factory().shutdown().await;
        match cause {
            Some(cause) => Err(cause),
            None => ended,
        }
    }

    fn surroundings(&self, abort: &CancellationToken) -> Surroundings {
        let queues = Queues::default();
        let collected = queues.clone();
        self.metrics
            .collect("workqueue", move |out| collected.write(out));
        let (name, environment) = (&self.name, self.environment.clone());
        Surroundings {
            client: self.client.clone(),
            recorder: Recorder::start(self.client.kube().clone(), name, environment),
            environment: self.environment.clone(),
            metrics: self.metrics.clone(),
            queues,
            abort: abort.clone(),
        }
    }
}

/// The queues of all controllers, for their numbers.
#[derive(Clone, Default)]
pub(crate) struct Queues(Arc<Mutex<Vec<Queue<Key>>>>);

impl Queues {
    pub(crate) fn add(&self, queue: &Queue<Key>) {
        self.0.lock().push(queue.clone());
    }

    fn write(&self, out: &mut String) {
        let stats: Vec<_> = self.0.lock().iter().map(Queue::stats).collect();
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
