//! The nodes as programs see them: added and removed, stopped and started while the cluster runs.

mod changes;

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubewright_cache::Key;
use kubewright_proxy::LoopbackNetwork;
use kubewright_runtime::{Client, Environment};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::addresses::Ranges;
use super::behaviour::Behaviour;
use super::engine::Engine;
use super::kubelet::eviction::Pressure;
use super::kubelet::sources::Cached;
use super::logs::Logs;
use super::memory::Memory;
use super::runtime::{ContainerId, Exit, ImagePattern, PodId, Program, Runtime};
use super::shell;
use super::signal::Signal;
use super::spec::NodeSpec;
use super::state::NodeChange;
use super::status::Host;

/// How many commands may wait.
const WAITING: usize = 64;

/// How simulated nodes are to be.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct NodesOptions {
    /// The nodes that are there from the start.
    pub nodes: Vec<NodeSpec>,
    /// How containers behave that no annotation speaks of.
    pub behaviour: Behaviour,
    /// Where the nodes are: each new one in the next of these zones.
    pub zones: Vec<String>,
    /// How long the lease of a node is good for: `nodeLeaseDurationSeconds` of a kubelet, 40 s by default.
    pub lease_duration: Duration,
    /// How often a node renews its lease: by default every 10 s, a quarter of what it is good for.
    pub lease_interval: Duration,
    /// How often a node reports its status when nothing changes.
    pub status_interval: Duration,
    /// Which events nodes tell about pods.
    pub events: PodEvents,
    /// Where the logs of containers go. Share it with the server for `kubectl logs`.
    pub logs: Logs,
    /// Where the addresses of pods and nodes come from.
    pub(crate) ranges: Ranges,
    /// Who runs containers.
    pub(crate) engine: Engine,
    /// What nodes know that no object tells.
    pub(crate) memory: Memory,
}

/// Which events nodes tell about pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PodEvents {
    /// All that a real node tells.
    #[default]
    All,
    /// Bad news only, for clusters with very many pods.
    Warnings,
}

impl Default for NodesOptions {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            behaviour: Behaviour::default(),
            zones: vec![
                "zone-a".to_owned(),
                "zone-b".to_owned(),
                "zone-c".to_owned(),
            ],
            lease_duration: Duration::from_secs(40),
            lease_interval: Duration::from_secs(10),
            status_interval: Duration::from_secs(300),
            events: PodEvents::default(),
            logs: Logs::default(),
            ranges: Ranges::default(),
            engine: Engine::default(),
            memory: Memory::default(),
        }
    }
}

impl NodesOptions {
    /// A node that is there from the start.
    pub fn node(mut self, node: NodeSpec) -> Self {
        self.nodes.push(node);
        self
    }

    /// So many nodes from the start, `node-1` and so on.
    pub fn count(mut self, count: usize) -> Self {
        let names = (1..=count).map(|i| NodeSpec::new(format!("node-{i}")));
        self.nodes.extend(names);
        self
    }

    /// How containers behave that no annotation speaks of.
    pub fn behaviour(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// How long the lease of a node is good for; it is renewed when a quarter of that has passed, as a kubelet does it.
    /// Whoever makes it longer than the time after which a silent node is given up should make that longer as well, see
    /// [`Builder::node_grace`](crate::Builder::node_grace).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease_duration = duration;
        self.lease_interval = duration / 4;
        self
    }

    /// How often a node reports its status when nothing changes: `nodeStatusReportFrequency` of a kubelet, 5 minutes by
    /// default.
    pub fn status_interval(mut self, interval: Duration) -> Self {
        self.status_interval = interval;
        self
    }

    /// How often a node renews its lease.
    pub fn lease_interval(mut self, interval: Duration) -> Self {
        self.lease_interval = interval;
        self
    }

    /// Which events nodes tell about pods.
    pub fn events(mut self, events: PodEvents) -> Self {
        self.events = events;
        self
    }

    /// Where the logs of containers go.
    pub fn logs(mut self, logs: Logs) -> Self {
        self.logs = logs;
        self
    }

    /// Gives pods and nodes addresses of this network instead of made-up ones. For nodes of a cluster that was not made by a
    /// [`Builder`](crate::Builder::network), which does this itself.
    pub fn network(mut self, network: &LoopbackNetwork) -> Self {
        self.ranges = Ranges::of(network);
        self
    }

    /// Runs containers with this runtime instead of simulating them. Images that a test has a [`Program`] for stay
    /// simulated.
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.engine.other = Some(runtime);
        self
    }

    /// Runs this program in containers of these images; see [`Nodes::run_image`].
    pub fn run_image(self, images: impl Into<ImagePattern>, program: impl Program) -> Self {
        self.engine.simulation.run_image(images, program);
        self
    }

    /// The same options for a fork: nothing that changes is shared.
    pub(crate) fn apart(&self) -> Self {
        Self {
            logs: self.logs.copy(),
            engine: self.engine.copy(),
            memory: self.memory.copy(),
            ..self.clone()
        }
    }
}

/// A set of simulated nodes. Cheap to clone; clones are the same nodes.
///
/// They live while [`run`](Nodes::run) does.
#[derive(Clone)]
pub struct Nodes(Arc<Shared>);

struct Shared {
    options: NodesOptions,
    commands: mpsc::Sender<Command>,
    receiver: Mutex<Option<mpsc::Receiver<Command>>>,
}

/// Something that is asked of the nodes, and where the answer goes.
#[derive(Debug)]
pub(crate) enum Command {
    Add(NodeSpec, Reply),
    Remove(String, Reply),
    /// Something happens to the node of this name.
    Change(String, NodeChange, Reply),
    Signal(Key, Signal, Reply),
    Find(PodId, oneshot::Sender<Option<Found>>),
    /// What is on the node of this name.
    House(String, oneshot::Sender<Option<Housed>>),
}

/// Where an answer goes.
pub(crate) type Reply = oneshot::Sender<Result<(), NodesError>>;

/// A pod on one of the nodes.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) pod: Arc<Pod>,
    pub(crate) running: Vec<ContainerId>,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) host: Host,
    pub(crate) sources: Cached,
}

/// What is on a node that speaks.
#[derive(Debug, Default)]
pub(crate) struct Housed {
    /// Since when the node is there.
    pub(crate) since: Option<Timestamp>,
    /// The memory that it has for pods, in bytes.
    pub(crate) memory: i64,
    pub(crate) pods: Vec<Arc<Pod>>,
}

/// Why nodes did not carry out a command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodesError {
    /// There is no such simulated node.
    #[error("there is no simulated node {0:?}")]
    Unknown(String),
    /// There is one already.
    #[error("there is a simulated node {0:?} already")]
    Exists(String),
    /// The pod is not on one of the nodes.
    #[error("pod {0} is not on a simulated node")]
    NoPod(Key),
    /// There are no addresses left for the pods of another node.
    #[error("there are no addresses left for the pods of another node")]
    NoAddresses,
    /// The nodes run already.
    #[error("the simulated nodes run already")]
    AlreadyRun,
    /// The nodes do not run any more.
    #[error("the simulated nodes have stopped")]
    Stopped,
    /// The API server refused.
    #[error("the API server refused a request of a simulated node")]
    Api(#[source] Box<kube::Error>),
    /// The informers did not start.
    #[error("pods and nodes cannot be watched")]
    Watch(#[source] kubewright_cache::SyncError),
}

impl Nodes {
    /// Nodes that come to life when they [run](Nodes::run).
    pub fn new(options: NodesOptions) -> Self {
        let (commands, receiver) = mpsc::channel(WAITING);
        Self(Arc::new(Shared {
            options,
            commands,
            receiver: Mutex::new(Some(receiver)),
        }))
    }

    /// Runs the nodes until they are cancelled. One task serves them all.
    ///
    /// Besides the nodes of the options it serves every node that has been simulated before, or that somebody made with the
    /// annotation `sim.kubewright.dev/simulate: "true"`. It may be called again when it has ended.
    ///
    /// # Errors
    /// When they run already, or when pods and nodes cannot be watched.
    pub async fn run(
        &self,
        client: Client,
        environment: Environment,
        cancel: CancellationToken,
    ) -> Result<(), NodesError> {
        let commands = self.0.receiver.lock().take();
        let mut borrowed = Borrowed {
            commands: Some(commands.ok_or(NodesError::AlreadyRun)?),
            from: &self.0.receiver,
        };
        let commands = borrowed.commands.as_mut().ok_or(NodesError::AlreadyRun)?;
        shell::run(&self.0.options, commands, client, environment, cancel).await
    }

    /// Adds a node. It has registered when this returns. A Node object of the name that is there already is taken over.
    ///
    /// # Errors
    /// When there is a simulated node of that name, or the API server refuses.
    pub async fn add(&self, node: NodeSpec) -> Result<(), NodesError> {
        self.ask(|reply| Command::Add(node, reply)).await
    }

    /// Removes a node and its object. Its pods are collected as those of a machine that was taken away.
    ///
    /// # Errors
    /// When there is no such node, or the API server refuses.
    pub async fn remove(&self, name: &str) -> Result<(), NodesError> {
        self.ask(|reply| Command::Remove(name.to_owned(), reply))
            .await
    }

    /// A pod on one of the nodes, to crash, hang or evict it: `nodes.pod("default/web-0")`, or by name alone in the
    /// namespace `default`.
    pub fn pod(&self, key: &str) -> PodHandle {
        let key = Key::parse(key).unwrap_or_else(|| Key::cluster(key));
        let key = match key.namespace() {
            Some(_) => key,
            None => Key::new("default", key.name()),
        };
        PodHandle {
            nodes: self.clone(),
            key,
            container: None,
        }
    }

    /// Runs this program in containers of these images that start from now on: `nodes.run_image("postgres:*", Fake)`.
    pub fn run_image(&self, images: impl Into<ImagePattern>, program: impl Program) {
        self.0.options.engine.simulation.run_image(images, program);
    }

    /// No registry has these images from now on: containers that need them wait in `ErrImagePull` and
    /// `ImagePullBackOff`.
    pub fn miss_image(&self, images: impl Into<ImagePattern>) {
        self.0.options.engine.simulation.miss_image(images);
    }

    /// Takes back [`miss_image`](Self::miss_image) of the same pattern; containers notice when their back-off is over.
    pub fn provide_image(&self, images: impl Into<ImagePattern>) {
        self.0.options.engine.simulation.provide_image(images);
    }

    /// These images need a pull secret for their registry from now on.
    pub fn protect_image(&self, images: impl Into<ImagePattern>) {
        self.0.options.engine.simulation.protect_image(images);
    }

    /// The logs of the containers, for the server.
    pub fn logs(&self) -> Logs {
        self.0.options.logs.clone()
    }

    pub(crate) fn options(&self) -> &NodesOptions {
        &self.0.options
    }

    /// Looks for a pod on the nodes.
    pub(crate) async fn find(&self, pod: PodId) -> Option<Found> {
        let (reply, answer) = oneshot::channel();
        let command = Command::Find(pod, reply);
        self.0.commands.send(command).await.ok()?;
        answer.await.ok()?
    }

    /// What is on a node; nothing when it is silent, or not there.
    pub(crate) async fn housed(&self, node: &str) -> Option<Housed> {
        if self.0.receiver.lock().is_some() {
            // The nodes do not run: nobody would answer.
            return None;
        }
        let (reply, answer) = oneshot::channel();
        let command = Command::House(node.to_owned(), reply);
        self.0.commands.send(command).await.ok()?;
        answer.await.ok()?
    }

    async fn ask(&self, command: impl FnOnce(Reply) -> Command) -> Result<(), NodesError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.commands.send(command(reply)).await;
        sent.map_err(|_| NodesError::Stopped)?;
        answer.await.map_err(|_| NodesError::Stopped)?
    }
}

/// A pod on one of the nodes, for tests that want something to happen to it now.
#[derive(Debug, Clone)]
#[must_use]
pub struct PodHandle {
    nodes: Nodes,
    key: Key,
    container: Option<String>,
}

impl PodHandle {
    /// The container that is meant; without this it is the first main one that runs.
    pub fn container(mut self, name: impl Into<String>) -> Self {
        self.container = Some(name.into());
        self
    }

    /// Ends the container now with this exit code, or kills it if something runs in it. What follows is up to its restart
    /// policy.
    ///
    /// # Errors
    /// When the pod is not on one of the nodes.
    pub async fn crash(&self, code: i32) -> Result<(), NodesError> {
        let container = self.container.clone();
        let exit = Exit::code(code);
        self.signal(Signal::Crash { container, exit }).await
    }

    /// Makes the container do nothing any more until it is restarted: its probes fail and it ignores SIGTERM.
    ///
    /// # Errors
    /// When the pod is not on one of the nodes.
    pub async fn hang(&self) -> Result<(), NodesError> {
        let container = self.container.clone();
        self.signal(Signal::Hang { container }).await
    }

    /// Evicts the pod now, as a node that is low on memory does: it fails with the reason `Evicted`.
    ///
    /// # Errors
    /// When the pod is not on one of the nodes.
    pub async fn evict(&self) -> Result<(), NodesError> {
        let message = Pressure::Memory.message();
        self.signal(Signal::Evicted { message }).await
    }

    async fn signal(&self, signal: Signal) -> Result<(), NodesError> {
        let key = self.key.clone();
        self.nodes
            .ask(|reply| Command::Signal(key, signal, reply))
            .await
    }
}

/// The commands, given back when the nodes stop in whatever way, so that they can run again.
struct Borrowed<'a> {
    commands: Option<mpsc::Receiver<Command>>,
    from: &'a Mutex<Option<mpsc::Receiver<Command>>>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        *self.from.lock() = self.commands.take();
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nodes").field(&self.0.options).finish()
    }
}
