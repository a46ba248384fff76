//! A cluster: an API server and the controllers over it, started, forked, put back and stopped as one.
//!
//! Guarantees
//! - Controllers reach the server as any other client does, in-process and without a socket.
//! - One clock and one seed for all of it. With a paused tokio clock the same program gives the same cluster.
//! - Dropping a cluster stops everything that it started. Many can live in one process.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::core::PartialObjectMeta;
use kube::{Api, ResourceExt};
use kubewright_cache::Factory;
use kubewright_proxy::{LoopbackNetwork, Proxy};
use kubewright_runtime::{Client, Manager};
use kubewright_server::storage::RestoreError;
use kubewright_server::{Endpoint, Server, StartError as ServerError, User};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::builder::{Builder, Recipe, StartError};
use crate::clock::Clock;
use crate::controllers::{self, BuiltIn, Credentials, Facts, Remembered};
use crate::identity;
use crate::metrics::Metrics;
use crate::network;
use crate::node::{Memory, Nodes};

/// How long controllers may take to do what every cluster needs.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long controllers may take to finish what they are at when the cluster stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// How long watches of the controllers stay open, at least. Nobody disappears without a word within a process, and opening
/// watches of all kinds anew would be much of what an idle cluster does.
const SHORTEST_WATCH: Duration = Duration::from_secs(24 * 3_600);

/// A cluster in the process. It stops when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    control: Mutex<Option<Control>>,
    server: Server,
    nodes: Nodes,
    /// What leads from Services to pods, where pods are processes.
    proxy: Mutex<Option<Proxy>>,
    recipe: Recipe,
    /// As it was when it had just started.
    beginning: kubewright_server::Snapshot,
    forks: AtomicU64,
}

/// Everything a cluster has at one moment, to go back to or to start others from.
#[derive(Debug, Clone)]
pub struct Snapshot {
    server: kubewright_server::Snapshot,
    recipe: Recipe,
}

/// Controllers that run. They end when this is dropped.
#[derive(Debug)]
struct Control {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Cluster {
    /// A cluster with everything by default: in memory, one node, all controllers, the machine's clock.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn over(
        server: Server,
        nodes: Nodes,
        recipe: Recipe,
    ) -> Result<Self, StartError> {
        let beginning = server.snapshot().await;
        let cluster = Self {
            control: Mutex::new(None),
            proxy: Mutex::new(None),
            nodes,
            server,
            recipe,
            beginning,
            forks: AtomicU64::new(0),
        };
        cluster.start_controllers()?;
        Ok(cluster)
    }

    /// Starts the controllers in the background: whoever forks a cluster does not wait for their making.
    fn start_controllers(&self) -> Result<(), StartError> {
        if self.recipe.controllers.is_empty() {
            return Ok(());
        }
        let facts = self.facts(Credentials::Own)?;
        let parts = self.recipe.controllers.clone();
        let client = self.connect(identity::controller_manager());
        let stop = CancellationToken::new();
        let task = tokio::spawn(control(client, facts, parts, stop.clone()));
        *self.control.lock() = Some(Control { stop, task });
        Ok(())
    }

    /// A client for a component of the cluster, and for others that its requests name.
    fn connect(&self, user: User) -> kube::Client {
        let service = self.server.service_for_components(user);
        self.recipe.line.connect(service)
    }

    fn facts(&self, credentials: Credentials) -> Result<Facts, StartError> {
        let authority = self.server.certificate_authority();
        Ok(Facts {
            environment: self.recipe.controller_environment(),
            certificate_authority: authority.map_err(StartError::Authority)?.to_owned(),
            nodes: self.nodes.clone(),
            node_grace: self.recipe.node_grace,
            metrics: self.recipe.metrics.clone(),
            credentials,
            remembered: self.recipe.remembered.clone(),
            load_balancers: self.recipe.load_balancers,
            signer: self
                .server
                .certificate_signer()
                .map_err(StartError::Authority)?,
        })
    }

    /// Adds parts of the control plane to a manager of the caller's, which then runs them as any operator runs its
    /// controllers, all as the user of its client. The cluster should have been built [without](Builder::controllers) them.
    ///
    /// # Errors
    /// When keys cannot be made.
    pub fn add_controllers(
        &self,
        manager: Manager,
        parts: impl IntoIterator<Item = BuiltIn>,
    ) -> Result<Manager, StartError> {
        let parts = parts.into_iter().collect();
        let facts = self.facts(Credentials::OfManager)?;
        Ok(controllers::register(manager, &facts, &parts))
    }

    /// Starts the proxy of Services, where the cluster has a network for it.
    pub(crate) async fn start_proxy(&self) -> Result<(), StartError> {
        let Some(network) = &self.recipe.network else {
            return Ok(());
        };
        let client = self.connect(identity::proxy());
        let options = network::proxy_options(network).shortest_watch(SHORTEST_WATCH);
        let started = Proxy::start(client, options).await;
        *self.proxy.lock() = Some(started.map_err(StartError::Proxy)?);
        Ok(())
    }

    async fn stop_controllers(&self) {
        let control = self.control.lock().take();
        if let Some(mut control) = control {
            control.stop.cancel();
            let _ = (&mut control.task).await;
        }
    }

    /// Waits until every namespace has its service account, which pods need. At once where nothing makes them.
    ///
    /// # Errors
    /// When that takes more than a minute.
    pub async fn ready(&self) -> Result<(), StartError> {
        if !self.recipe.controllers.contains(&BuiltIn::ServiceAccount) {
            return Ok(());
        }
        let late = Instant::now() + READY_WITHIN;
        let mut pause = Duration::from_millis(1);
        while !self.has_accounts().await? {
            if Instant::now() > late {
                return Err(StartError::Controllers(
                    "service accounts are missing".to_owned(),
                ));
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        Ok(())
    }

    async fn has_accounts(&self) -> Result<bool, StartError> {
        let failed = |error: kube::Error| StartError::Controllers(error.to_string());
        let all = Default::default();
        let namespaces = Api::<Namespace>::all(self.client())
            .list_metadata(&all)
            .await
            .map_err(failed)?;
        let accounts = Api::<ServiceAccount>::all(self.client())
            .list_metadata(&all)
            .await
            .map_err(failed)?;
        let has = |namespace: &PartialObjectMeta<Namespace>| {
            let mut accounts = accounts.items.iter();
            accounts.any(|a| a.name_any() == "default" && a.namespace() == namespace.metadata.name)
        };
        let mut active = namespaces
            .items
            .iter()
            .filter(|n| n.metadata.deletion_timestamp.is_none());
        Ok(active.all(has))
    }

    /// A client of the administrator's, in-process: for `Api`, for an operator's `Manager`, for everything.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::admin())
    }

    /// A client of any user's, in-process.
    pub fn client_as(&self, user: User) -> kube::Client {
        kube::Client::new(self.server.service_as(user), "default")
    }

    /// Returns the API server of the cluster.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The simulated nodes: to be added, removed, silenced and revived.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The network of this machine that the cluster is in, if it is in one.
    pub fn network(&self) -> Option<&LoopbackNetwork> {
        self.recipe.network.as_ref()
    }

    /// The measurements that autoscalers go by.
    pub fn metrics(&self) -> &Metrics {
        &self.recipe.metrics
    }

    /// The clock that everything in the cluster goes by.
    pub fn clock(&self) -> &Clock {
        &self.recipe.clock
    }

    /// Listens for TLS connections, for kubectl and other processes. Port 0 takes a free port.
    ///
    /// # Errors
    /// When the address cannot be had, or keys cannot be made or read.
    pub async fn listen(&self, address: SocketAddr) -> Result<Endpoint, ServerError> {
        self.server.listen(address).await
    }

    /// Everything as it is now. Costs next to nothing, whatever the number of objects.
    pub async fn snapshot(&self) -> Snapshot {
        Snapshot {
            server: self.server.snapshot().await,
            recipe: self.next_recipe(),
        }
    }

    /// A cluster of its own, in memory, with all that this one has at this moment. Its controllers start in the
    /// background and find everything as these left it.
    ///
    /// # Errors
    /// When keys cannot be made.
    pub async fn fork(&self) -> Result<Cluster, StartError> {
        let recipe = self.next_recipe();
        let nodes = recipe.make_nodes();
        let server = self.server.fork(recipe.fork_options(&nodes)).await;
        Self::over(server, nodes, recipe).await
    }

    fn next_recipe(&self) -> Recipe {
        self.recipe.fork(self.forks.fetch_add(1, Ordering::Relaxed))
    }

    /// Puts a snapshot in place of all that is there. Clients stay connected; what they watch begins anew.
    ///
    /// # Errors
    /// When the cluster has a data directory.
    pub async fn restore(&self, snapshot: &Snapshot) -> Result<(), RestoreError> {
        let recipe = &snapshot.recipe;
        let known = (&recipe.node_options.memory, &recipe.remembered);
        self.put_back(&snapshot.server, known).await
    }

    /// Makes the cluster what it was when it had just started.
    ///
    /// # Errors
    /// When the cluster has a data directory.
    pub async fn reset(&self) -> Result<(), RestoreError> {
        let nothing = (&Memory::default(), &Remembered::default());
        self.put_back(&self.beginning, nothing).await
    }

    /// Controllers stop meanwhile: what they were about must not reach into the new age.
    async fn put_back(
        &self,
        snapshot: &kubewright_server::Snapshot,
        (memory, remembered): (&Memory, &Remembered),
    ) -> Result<(), RestoreError> {
        let ran = self.control.lock().is_some();
        self.stop_controllers().await;
        let restored = self.server.restore(snapshot).await;
        if restored.is_ok() {
            self.nodes.options().memory.become_like(memory);
            self.recipe.remembered.become_like(remembered);
        }
        if ran && let Err(error) = self.start_controllers() {
            tracing::error!(%error, "the controllers of a cluster did not start again");
        }
        restored
    }

    /// Stops controllers, then the server: requests under way are answered.
    pub async fn stop(self) {
        self.stop_controllers().await;
        drop(self.proxy.lock().take());
        self.server.stop();
    }
}

impl Snapshot {
    /// The same objects for clusters that go by this clock: one of the runtime that they are started in.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.recipe.clock = clock;
        self
    }

    /// The same objects for clusters whose names, uids and jitter come from this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.recipe.seed = seed;
        self
    }

    /// The same objects for clusters that have these parts of a control plane alone.
    #[must_use]
    pub fn controllers(mut self, parts: impl IntoIterator<Item = BuiltIn>) -> Self {
        self.recipe.controllers = parts.into_iter().collect();
        self
    }

    /// A cluster that starts from here.
    ///
    /// # Errors
    /// When keys cannot be made.
    pub async fn cluster(&self) -> Result<Cluster, StartError> {
        let recipe = self.recipe.apart();
        let nodes = recipe.make_nodes();
        let server = self.server.server(recipe.fork_options(&nodes)).await;
        Cluster::over(server, nodes, recipe).await
    }
}

/// Runs the controllers until they are cancelled.
async fn control(
    kube: kube::Client,
    facts: Facts,
    parts: BTreeSet<BuiltIn>,
    stop: CancellationToken,
) {
    let factory = Factory::new(kube.clone())
        .seed(facts.environment.below(u64::MAX))
        .shortest_watch(SHORTEST_WATCH);
    let client = Client::builder(kube).factory(factory).build();
    let manager = Manager::over(client)
        .name("kube-controller-manager")
        .environment(facts.environment.clone())
        .shutdown_timeout(STOP_WITHIN);
    let manager = controllers::register(manager, &facts, &parts);
    if let Err(error) = manager.run_until(stop).await {
        tracing::error!(%error, "the controllers of a cluster have ended");
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.stop.cancel();
        self.task.abort();
    }
}
