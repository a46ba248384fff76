//! How a cluster is to be.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kubewright_proxy::{Ipv4Range, LoopbackNetwork, ProxyError};
use kubewright_runtime::environment::Environment;
use kubewright_server::environment as server;
use kubewright_server::storage::Fsync;
use kubewright_server::{
    Admission, ApiService, Authorization, ForkOptions, NodeAgents, Plugin, Server,
    StartError as ServerError,
};

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use crate::agents::Agents;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::controllers::node_lifecycle::NodeLifecycle;
use crate::controllers::{BuiltIn, Remembered};
use crate::metrics::Metrics;
use crate::network;
use crate::node::runtime::Runtime;
use crate::node::{Nodes, NodesOptions};

/// How a cluster is to be.
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    recipe: Recipe,
    server: kubewright_server::Builder,
}

/// What a cluster and its forks have in common besides their objects.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) nodes: usize,
    pub(crate) node_options: NodesOptions,
    pub(crate) node_grace: Duration,
    pub(crate) metrics: Metrics,
    /// Which parts of the control plane run.
    pub(crate) controllers: BTreeSet<BuiltIn>,
    pub(crate) line: Line,
    pub(crate) network: Option<LoopbackNetwork>,
    /// What controllers know that no object tells.
    pub(crate) remembered: Remembered,
    /// Addresses of load balancers.
    pub(crate) load_balancers: Option<Ipv4Range>,
}

/// How controllers reach the server.
#[derive(Clone)]
pub(crate) struct Line(Arc<dyn Fn(ApiService) -> kube::Client + Send + Sync>);

impl Line {
    /// A client at the controllers' end.
    pub(crate) fn connect(&self, service: ApiService) -> kube::Client {
        (self.0)(service)
    }
}

impl Default for Line {
    fn default() -> Self {
        Self(Arc::new(|service| kube::Client::new(service, "default")))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            clock: Clock::default(),
            seed: StdRng::from_os_rng().next_u64(),
            nodes: 1,
            node_options: NodesOptions::default(),
            node_grace: NodeLifecycle::default().grace,
            metrics: Metrics::default(),
            controllers: BuiltIn::all().collect(),
            line: Line::default(),
            network: None,
            remembered: Remembered::default(),
            load_balancers: None,
        }
    }
}

/// Why a cluster could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server did not start.
    #[error("the API server could not be started")]
    Server(#[source] ServerError),
    /// Keys could not be made.
    #[error("the certificate authority could not be made")]
    Authority(#[source] kubewright_server::PkiError),
    /// The proxy of Services did not start.
    #[error("the proxy of Services could not be started")]
    Proxy(#[source] ProxyError),
    /// The controllers did not do what every cluster needs.
    #[error("the controllers did not come up: {0}")]
    Controllers(String),
}

impl Builder {
    /// How many simulated nodes there are. By default one.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.recipe.nodes = nodes;
        self
    }

    /// What the simulated nodes are like, and further ones.
    pub fn node_options(mut self, options: NodesOptions) -> Self {
        self.recipe.node_options = options;
        self
    }

    /// Puts pods, Services and nodes into a network of this machine: their addresses are those of the loopback device, and a
    /// proxy leads from Services to pods, which have to be processes. Forks have the same addresses and no proxy, because the
    /// addresses are this cluster's.
    pub fn network(mut self, network: LoopbackNetwork) -> Self {
        self.recipe.network = Some(network);
        self
    }

    /// Gives Services of the type `LoadBalancer` addresses of this range, `203.0.113.0/24` say. By default they get one in a
    /// [network](Self::network) of this machine alone, and wait for it for ever elsewhere, as in a cluster without a cloud.
    pub fn load_balancers(mut self, range: Ipv4Range) -> Self {
        self.recipe.load_balancers = Some(range);
        self
    }

    /// Runs containers with this runtime instead of simulating them. Images that a test has a program for stay
    /// simulated. Call it after [`node_options`](Self::node_options), which replaces it.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.recipe.node_options = self.recipe.node_options.runtime(runtime);
        self
    }

    /// How long a node may be silent before it is given up: `--node-monitor-grace-period` of a controller manager. By
    /// default 50 seconds.
    pub fn node_grace(mut self, grace: Duration) -> Self {
        self.recipe.node_grace = grace;
        self
    }

    /// Measurements that autoscalers go by. By default there are none but those in the annotations of pods.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.recipe.metrics = metrics;
        self
    }

    /// An API server alone: no controllers, no nodes.
    pub fn without_controllers(mut self) -> Self {
        self.recipe.controllers.clear();
        self
    }

    /// Sets which parts of the control plane there are. By default all; what is left out can be run by another process, see
    /// [`Cluster::add_controllers`].
    pub fn controllers(mut self, parts: impl IntoIterator<Item = BuiltIn>) -> Self {
        self.recipe.controllers = parts.into_iter().collect();
        self
    }

    /// Where time comes from. By default from the machine.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.recipe.clock = clock;
        self
    }

    /// Seeds the random numbers: names and uids are the same in every run with the same seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.recipe.seed = seed;
        self
    }

    /// Keeps objects and keys in this directory. Without one nothing touches the disk.
    pub fn data_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.server = self.server.data_dir(directory);
        self
    }

    /// When writes are forced to the disk; matters with a data directory only.
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.server = self.server.fsync(fsync);
        self
    }

    /// Who may do what. By default whoever is known may do everything.
    pub fn authorization(mut self, authorization: Authorization) -> Self {
        self.server = self.server.authorization(authorization);
        self
    }

    /// Writes a line of JSON for each request to this file.
    pub fn audit_log(mut self, path: impl Into<PathBuf>) -> Self {
        self.server = self.server.audit_log(path);
        self
    }

    /// How controllers and nodes reach the server: by default in-process and without a fault. For tests of what they do on
    /// a bad line; see `kubewright_testing::Wire`. Forks ask this again.
    pub fn line(
        mut self,
        connect: impl Fn(ApiService) -> kube::Client + Send + Sync + 'static,
    ) -> Self {
        self.recipe.line = Line(Arc::new(connect));
        self
    }

    /// Changes the server in ways that this builder has no method for. Its clock and seed are the cluster's.
    pub fn server(
        mut self,
        change: impl FnOnce(kubewright_server::Builder) -> kubewright_server::Builder,
    ) -> Self {
        self.server = change(self.server);
        self
    }

    /// Starts the cluster, and waits until every namespace has what every namespace has.
    ///
    /// # Errors
    /// When the server does not start or the controllers do not come up.
    pub async fn start(mut self) -> Result<Cluster, StartError> {
        if let Some(network) = &self.recipe.network {
            self.recipe.node_options = self.recipe.node_options.network(network);
            self.server = self.server.service_network(network::services(network));
            let own = network.load_balancers();
            self.recipe.load_balancers.get_or_insert(own);
        }
        let nodes = self.recipe.make_nodes();
        let server = self.server.environment(self.recipe.server_environment());
        let server = if self.recipe.controllers.is_empty() {
            server
        } else {
            server
                .pod_logs(Arc::new(nodes.logs()))
                .node_agents(self.recipe.agents(&nodes))
                .admission(self.recipe.admission())
        };
        let server: Server = server.start().await.map_err(StartError::Server)?;
        if let Some(network) = &self.recipe.network {
            let ensured = network::ensure_dns_service(network, &server).await;
            ensured.map_err(|error| StartError::Controllers(error.to_string()))?;
        }
        let cluster = Cluster::over(server, nodes, self.recipe).await?;
        cluster.start_proxy().await?;
        cluster.ready().await?;
        Ok(cluster)
    }
}

impl Recipe {
    /// The nodes of a cluster.
    pub(crate) fn make_nodes(&self) -> Nodes {
        Nodes::new(self.node_options.clone().count(self.nodes))
    }

    /// The admission plugins whose other half is a controller that runs.
    fn admission(&self) -> Admission {
        let halves = [
            (BuiltIn::ServiceAccount, Plugin::ServiceAccount),
            (BuiltIn::Volumes, Plugin::StorageObjectInUseProtection),
            (BuiltIn::NodeLifecycle, Plugin::TaintNodesByCondition),
        ];
        let halves = halves.into_iter();
        halves
            .filter(|(part, _)| self.controllers.contains(part))
            .fold(Admission::default(), |admission, (_, plugin)| {
                admission.enable(plugin)
            })
    }

    /// Who answers the server for these nodes.
    pub(crate) fn agents(&self, nodes: &Nodes) -> Arc<dyn NodeAgents> {
        self.metrics.measured_by(&self.node_options.engine);
        Arc::new(Agents {
            nodes: nodes.clone(),
            metrics: self.metrics.clone(),
            environment: self.server_environment(),
            counters: Arc::default(),
        })
    }

    pub(crate) fn server_environment(&self) -> server::Environment {
        server::Environment::seeded(self.clock.clone(), self.seed)
    }

    pub(crate) fn controller_environment(&self) -> Environment {
        // Another sequence than the server's, from the same seed.
        Environment::seeded(self.clock.clone(), !self.seed)
    }

    /// The recipe of the nth fork: the same, with a seed of its own, and measurements and logs as they are now.
    pub(crate) fn fork(&self, number: u64) -> Self {
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        let seed = self.seed.wrapping_add(step.wrapping_mul(number + 1));
        Self {
            seed,
            ..self.apart()
        }
    }

    /// The same, and nothing shared that changes.
    pub(crate) fn apart(&self) -> Self {
        let mut recipe = self.clone();
        recipe.metrics = self.metrics.copy();
        recipe.node_options = self.node_options.apart();
        recipe.remembered = self.remembered.copy();
        recipe.network = None;
        recipe
    }

    /// What the server of a fork has for itself.
    pub(crate) fn fork_options(&self, nodes: &Nodes) -> ForkOptions {
        let own = ForkOptions::new(self.server_environment());
        if self.controllers.is_empty() {
            return own;
        }
        own.pod_logs(Arc::new(nodes.logs()))
            .node_agents(self.agents(nodes))
    }
}
