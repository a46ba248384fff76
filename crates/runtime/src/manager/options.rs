//! What a manager is given before it runs.

use std::sync::Arc;
use std::time::Duration;

use kubewright_webhook::Webhooks;

use super::serving::Serving;
use super::{Manager, ManagerError, Runnable};
use crate::States;
use crate::cache::CacheOptions;
use crate::client::{Consistency, RequestPolicy, ServerWarning};
use crate::controller::Controller;
use crate::environment::Environment;
use crate::events::RecorderOptions;
use crate::lease::LeaseOptions;
use crate::metrics::Metrics;
use crate::requests::Request;
use crate::serving::{AccessGuard, Listener, Probes, Serves};
use crate::sharding::ShardingOptions;

impl Manager {
    /// The operator's name: the reporter of its events, and the field manager of its writes. By default the program's.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Gives reconcilers and webhooks a value of a type, which they get with [`Context::state`](crate::Context::state) and
    /// [`Request::state`](crate::webhook::Request::state). A second value of the same type takes the place of the first.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Gives reconcilers and webhooks these values, unless there is one of the same type.
    pub fn with_states(mut self, states: &States) -> Self {
        self.states.add_missing(states);
        self
    }

    /// Sets how events are recorded: by whom, in which API, and how many may wait. By default in `v1`, by the operator's name.
    pub fn recorder(mut self, options: RecorderOptions) -> Self {
        self.recorder = Some(options);
        self
    }

    /// Serves a further page, in JSON, beside the metrics. Who may read the metrics may read it.
    pub fn page(
        mut self,
        path: &str,
        page: impl Fn() -> serde_json::Value + Send + Sync + 'static,
    ) -> Self {
        self.pages.0.insert(path.to_owned(), Arc::new(page));
        self
    }

    /// Sets what the [cache](crate::cache) holds of each kind, for controllers, watches and reads. It has to be set before the
    /// client is used: otherwise the manager fails when it runs.
    ///
    /// Options that the cache has already hold on where these say nothing else: those of the client that the manager was made
    /// over, of an earlier call, and the namespaces of an operator's `--namespace`. Namespaces that are not among those that it
    /// was limited to before are an error when the manager runs; a [policy](crate::CachePolicy::namespaces) may still name
    /// others for its kind alone.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::{Pod, Secret};
    /// use kubewright_runtime::{CacheOptions, CachePolicy, Manager};
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let manager = Manager::from_env().await?.cache(
    ///     CacheOptions::new()
    ///         .namespaces(["team-a", "team-b"])
    ///         .policy(CachePolicy::of::<Secret>().labels("app=web").without("data"))
    ///         .policy(CachePolicy::of::<Pod>().metadata()),
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn cache(mut self, options: CacheOptions) -> Self {
        let misuse = self.client.refine_cache(options).err();
        self.misuse = self.misuse.or(misuse);
        self
    }

    /// Sets who receives the warnings of the API server, as
    /// [`ClientBuilder::warning_handler`](crate::client::ClientBuilder::warning_handler) does. Those of a
    /// [further cluster](Manager::cluster) go where the client of that cluster says.
    pub fn warning_handler(
        self,
        handler: impl Fn(&ServerWarning<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.client.set_warning_handler(Arc::new(handler));
        self
    }

    /// Sets how long requests of its client may take, and how silent the server may be to informers that are made from now on.
    ///
    /// It is about the manager's own cluster. Further ones have the limits of the [client](crate::client::ClientBuilder::requests)
    /// that they were added with.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use kubewright_runtime::Manager;
    /// use kubewright_runtime::client::RequestPolicy;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let patient = RequestPolicy::new().write_timeout(Duration::from_secs(60));
    /// let manager = Manager::from_env().await?.requests(patient);
    /// # drop(manager);
    /// # Ok(())
    /// # }
    /// ```
    pub fn requests(self, policy: RequestPolicy) -> Self {
        self.client.set_requests(policy);
        self
    }

    /// Sets whether cached reads wait for what this manager wrote, and for how long. By default they wait for five seconds.
    pub fn consistency(self, consistency: Consistency) -> Self {
        self.client.set_consistency(consistency);
        self
    }

    /// Where time and randomness come from.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets who holds, fails or observes cached reads and reconciles, unless somebody is set; see [`gate`](crate::gate).
    pub fn gate(self, gate: Arc<dyn crate::gate::Gate>) -> Self {
        self.client.gates().set(gate);
        self
    }

    /// Where its numbers are kept, if others keep theirs there too: those of a client, say.
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// How long a shutdown may take in all. By default 30 s, of which reconciles have three quarters to finish: the rest is for
    /// servers, informers, the lease and events.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Adds a controller. Each needs a name of its own.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, from_fn};
    /// # async fn example(kube: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let reconciler = from_fn(|_: Arc<Deployment>, _| async { Ok(Outcome::done()) });
    /// let controller = Controller::of::<Deployment>("example").reconciler(reconciler);
    /// Manager::new(kube).name("example").controller(controller).run().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn controller<R: Request>(mut self, controller: Controller<R>) -> Self {
        self.controllers.push(Box::new(controller));
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

    /// Shares the objects among all replicas that say the same: each reconciles its part, and none is reconciled by two at
    /// once. See [`sharding`](crate::sharding) for what this guarantees and costs. It takes the place of an election.
    pub fn sharded(mut self, options: ShardingOptions) -> Self {
        self.sharding = Some(options);
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
            log_address("probes", &listener);
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
        log_address("metrics", &listener);
        self.servers.push(Serving::Metrics(listener, guard));
        self
    }

    /// Serves webhooks, which need no leadership. The listener speaks TLS: API servers ask nobody else.
    ///
    /// Until they are served, the process is not ready.
    pub fn serve_webhooks(mut self, listener: Listener, webhooks: Webhooks) -> Self {
        log_address("webhooks", &listener);
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
}

/// Says where something is served: whoever asked for any free port wants to know which.
fn log_address(what: &str, listener: &Listener) {
    let address = listener.address().ok().map(|address| address.to_string());
    tracing::info!(what, address, "listening");
}
