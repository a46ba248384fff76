//! The task of the node lifecycle controller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kubewright_cache::{Key, Object, Reader};
use kubewright_runtime::{Client, Environment, EventKind, Recorder};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::evictions::{Change, Evictions};
use super::health::{self, Monitor, Voice};
use super::looks::Looks;
use super::news::{Ear, LeaseEar, News};
use super::writes;
use super::zones::{Eviction, Health, Mode, Zones};
use super::{LEASES, NodeLifecycle, NodeLifecycleError};
use crate::events;

/// How much news may wait.
const NEWS: usize = 1_024;
/// How many writes are under way at most.
const WRITES: usize = 32;
/// How long to wait when nothing is due.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

struct Shell {
    options: NodeLifecycle,
    client: kube::Client,
    environment: Environment,
    nodes: Reader<Node>,
    leases: Reader<Lease>,
    pods: Reader<Pod>,
    recorder: Recorder,
    monitor: Monitor,
    zones: Zones,
    evictions: Evictions,
    /// Where each pod is, and who is on each node.
    place: BTreeMap<Key, String>,
    on_node: BTreeMap<String, BTreeSet<Key>>,
    /// Nodes whose pods were marked as not ready.
    unready: BTreeSet<String>,
    known: BTreeMap<String, Known>,
    /// The taints that evict, of the nodes that have some.
    evicting: BTreeMap<String, Vec<Taint>>,
    /// Writes wait for their turn.
    tasks: std::collections::VecDeque<Task>,
    writes: JoinSet<Result<(), kube::Error>>,
    looks: Looks,
}

/// A node that is known.
struct Known {
    key: Key,
    /// What it was like when nothing was left to do about it.
    settled: Option<(Arc<Object>, Voice)>,
}

/// A write to come.
enum Task {
    Conditions(String, Vec<k8s_openapi::api::core::v1::NodeCondition>),
    Taints(Arc<Node>, Vec<Taint>),
    NotReady(Arc<Pod>),
    Evict(Arc<Pod>),
}

/// Watches over nodes until it is cancelled.
pub(super) async fn run(
    options: NodeLifecycle,
    client: Client,
    environment: Environment,
    cancel: CancellationToken,
) -> Result<(), NodeLifecycleError> {
    let nodes = client.of::<Node>().informer();
    let leases = client.of::<Lease>().informer();
    let pods = client.of::<Pod>().informer();
    nodes.synced().await.map_err(NodeLifecycleError::Watch)?;
    leases.synced().await.map_err(NodeLifecycleError::Watch)?;
    pods.synced().await.map_err(NodeLifecycleError::Watch)?;
    let (sender, mut news) = mpsc::channel(NEWS);
    let ear = |make: fn(Key) -> News| Ear {
        news: sender.clone(),
        make,
    };
    let stopped = |_| NodeLifecycleError::Stopped;
    let heard = [
        nodes.add_handler(ear(News::Node)).map_err(stopped)?,
        pods.add_handler(ear(News::Pod)).map_err(stopped)?,
        leases
            .add_handler(LeaseEar(sender.clone()))
            .map_err(stopped)?,
    ];
    drop(sender);
    let name = "node-controller";
    let (recorder, writer) = events::recorder(client.kube(), name, environment.clone());
    let mut background = JoinSet::new();
    background.spawn(writer.run(cancel.clone()));
    let mut shell = Shell {
        looks: Looks::new(environment.now(), options.period),
        options,
        client: client.kube().clone(),
        environment,
        nodes: nodes.reader(),
        leases: leases.reader(),
        pods: pods.reader(),
        recorder,
        monitor: Monitor::default(),
        zones: Zones::default(),
        evictions: Evictions::default(),
        place: BTreeMap::new(),
        on_node: BTreeMap::new(),
        unready: BTreeSet::new(),
        known: BTreeMap::new(),
        evicting: BTreeMap::new(),
        tasks: std::collections::VecDeque::new(),
        writes: JoinSet::new(),
    };
    shell.begin();
    shell.serve(&mut news, &cancel).await;
    for registration in heard {
        registration.remove();
    }
    shell.writes.shutdown().await;
    background.shutdown().await;
    Ok(())
}

impl Shell {
    /// Takes up how all nodes are before any is looked at: the first one alone would seem to be the whole cluster.
    fn begin(&mut self) {
        for node in self.nodes.list() {
            let health = if health::is_ready(&node) {
                Health::Ready
            } else {
                Health::NotReady
            };
            self.zones.observe(&node, health);
        }
    }

    async fn serve(&mut self, news: &mut mpsc::Receiver<News>, cancel: &CancellationToken) {
        let mut heard = Vec::with_capacity(NEWS);
        loop {
            self.tick();
            self.write();
            let pause = self.pause();
            tokio::select! {
                // The end comes first; writes before news, because they make room for what news leads to; time last,
                // because it is looked at in every turn.
                biased;
                () = cancel.cancelled() => break,
                Some(done) = self.writes.join_next() => {
                    // What failed is tried again when its object changes or when nodes are next looked at.
                    if let Ok(Err(error)) = done {
                        tracing::debug!(%error, "the node lifecycle controller could not write");
                    }
                }
                count = news.recv_many(&mut heard, NEWS) => {
                    if count == 0 {
                        tracing::debug!("the informers of the node lifecycle controller have ended");
                        break;
                    }
                    let (mut nodes, mut pods) = (BTreeSet::new(), BTreeSet::new());
                    for one in heard.drain(..) {
                        match one {
                            News::Node(key) => drop(nodes.insert(key)),
                            News::Pod(key) => drop(pods.insert(key)),
                            News::Lease(node, at) => self.renewed(&node, at),
                        }
                    }
                    pods.iter().for_each(|key| self.pod(key));
                    nodes.iter().for_each(|key| self.node(key));
                }
                () = tokio::time::sleep(pause) => {}
            }
        }
        tracing::debug!("the node lifecycle controller stops");
    }

    fn pause(&self) -> Duration {
        let times = [self.looks.next(), self.evictions.next()];
        let Some(next) = times.into_iter().flatten().min() else {
            return LONGEST_PAUSE;
        };
        let left = Duration::try_from(next.duration_since(self.environment.now()));
        // At least a moment, should the clock and the timer disagree.
        left.unwrap_or_default().max(Duration::from_millis(1))
    }

    /// Does what is due.
    fn tick(&mut self) {
        let now = self.environment.now();
        if self.looks.take(now) {
            self.look(now);
        }
        while let Some(key) = self.evictions.due(now) {
            self.evict(&key, now);
        }
    }

    /// Looks at all nodes, more than a glance at those that are not as they were when nothing was left to do.
    fn look(&mut self, now: Timestamp) {
        let (restless, quiet): (Vec<_>, Vec<_>) = self
            .known
            .iter()
            .map(|(name, known)| (name.clone(), known.key.clone()))
            .partition(|(name, _)| !self.is_settled(name, now));
        for (name, _) in quiet {
            self.look_when_silent(&name, now);
        }
        for (_, key) in restless {
            self.node(&key);
        }
    }

    /// Whether a node is as it was when nothing was left to do about it: all but its voice is judged by its object alone.
    /// That is how it is nearly always.
    fn is_settled(&self, name: &str, now: Timestamp) -> bool {
        let known = self.known.get(name);
        let Some((node, voice)) = known.and_then(|known| known.settled.as_ref()) else {
            return false;
        };
        let same = self.node_entry(name);
        same.is_some_and(|now| Arc::ptr_eq(&now, node))
            && self.monitor.last(name, self.options.grace, now) == *voice
    }

    /// A node has renewed its lease.
    fn renewed(&mut self, name: &str, renewed: Timestamp) {
        let now = self.environment.now();
        self.monitor.renewed(name, renewed, now);
        self.look_when_silent(name, now);
    }

    /// Schedules a check of a node for when it will have been silent for too long.
    fn look_when_silent(&mut self, name: &str, now: Timestamp) {
        let heard = self.monitor.heard(name);
        let silent = heard.map(|at| at + self.options.grace);
        if let Some(silent) = silent.filter(|at| *at >= now) {
            self.looks.after(silent);
        }
    }

    fn write(&mut self) {
        while self.writes.len() < WRITES {
            let Some(task) = self.tasks.pop_front() else {
                return;
            };
            let (client, now) = (self.client.clone(), self.environment.now());
            self.writes.spawn(async move {
                match task {
                    Task::Conditions(name, conditions) => {
                        writes::conditions(client, &name, conditions).await
                    }
                    Task::Taints(node, taints) => writes::taints(client, &node, taints).await,
                    Task::NotReady(pod) => writes::not_ready(client, &pod, now).await,
                    Task::Evict(pod) => writes::evict(client, &pod, now).await,
                }
            });
        }
    }

    fn node_entry(&self, name: &str) -> Option<Arc<Object>> {
        let entry = self.nodes.entry(&Key::cluster(name));
        entry.map(|entry| entry.object().clone())
    }

    /// Looks at a node as it is now, and again in the next period if something is left to do.
    fn node(&mut self, key: &Key) {
        let (before, now) = (self.tasks.len(), self.environment.now());
        let node = self.node_entry(key.name());
        self.look_at(key);
        let waits = self.zones.mode == Mode::Usual
            && self
                .nodes
                .get(key)
                .is_some_and(|node| health::awaits_eviction(&node));
        let idle = self.tasks.len() == before && !waits;
        let voice = self.monitor.last(key.name(), self.options.grace, now);
        let Some(known) = self.known.get_mut(key.name()) else {
            return;
        };
        known.settled = node.filter(|_| idle).map(|node| (node, voice));
        if idle {
            self.look_when_silent(key.name(), now)
        } else {
            self.looks.after(now)
        }
    }

    fn look_at(&mut self, key: &Key) {
        let name = key.name().to_owned();
        let Some(node) = self.nodes.get(key) else {
            return self.node_gone(&name);
        };
        let now = self.environment.now();
        if !self.known.contains_key(&name) {
            let known = Known {
                key: key.clone(),
                settled: None,
            };
            self.known.insert(name.clone(), known);
            let text = format!("Node {name} event: Registered Node {name} in Controller");
            self.recorder
                .about(&node, EventKind::Normal, "RegisteredNode", &text);
        }
        let lease = self.leases.get(&Key::new(LEASES, &name));
        let voice = self
            .monitor
            .judge(&node, lease.as_deref(), self.options.grace, now);
        if voice == Voice::Silent
            && let Some(conditions) = health::silent_conditions(&node, now)
        {
            self.tasks
                .push_back(Task::Conditions(name.clone(), conditions));
        }
        self.taint(&node, voice, now);
        self.tell_pods(&node, &name);
        if self.evicting_taints_changed(&node, &name) {
            for pod in self.on_node.get(&name).cloned().unwrap_or_default() {
                self.consider(&pod);
            }
        }
    }

    /// Gives a node the taints that it should have, at the pace of its zone.
    fn taint(&mut self, node: &Arc<Node>, voice: Voice, now: Timestamp) {
        let health = if voice == Voice::Speaks && health::is_ready(node) {
            Health::Ready
        } else {
            Health::NotReady
        };
        if self.zones.observe(node, health) {
            self.mode_changed(now);
        }
        let eviction = self.zones.eviction(node, now);
        if let Eviction::Later(Some(next)) = eviction
            && health::awaits_eviction(node)
        {
            self.looks.after(next);
        }
        if let Some(taints) = health::taints(node, eviction, now) {
            if eviction == Eviction::Allowed && health::awaits_eviction(node) {
                self.zones.given_up(node, now);
            }
            self.tasks.push_back(Task::Taints(node.clone(), taints));
        }
    }

    /// The first node is ready again, or the last one is no more: all of them are looked at anew.
    fn mode_changed(&mut self, now: Timestamp) {
        tracing::debug!(mode = ?self.zones.mode, "the disruption of the cluster has changed");
        if self.zones.mode == Mode::Usual {
            self.monitor.restart(now);
        }
        for known in self.known.values_mut() {
            known.settled = None;
        }
        self.looks.after(now);
    }

    /// Whether a node has other taints that evict than when it was last looked at.
    fn evicting_taints_changed(&mut self, node: &Node, name: &str) -> bool {
        let taints = node.spec.as_ref().and_then(|s| s.taints.clone());
        let mut taints = taints.unwrap_or_default();
        taints.retain(|taint| taint.effect == "NoExecute");
        let before = if taints.is_empty() {
            self.evicting.remove(name)
        } else {
            self.evicting.insert(name.to_owned(), taints.clone())
        };
        before.unwrap_or_default() != taints
    }

    /// Pods of a node that has fallen silent are not ready either. One that speaks says itself how they are, ready or not.
    fn tell_pods(&mut self, node: &Arc<Node>, name: &str) {
        if !health::is_unknown(node) {
            self.unready.remove(name);
            return;
        }
        if !self.unready.insert(name.to_owned()) {
            return;
        }
        let text = format!("Node {name} status is now: NodeNotReady");
        self.recorder
            .about(node, EventKind::Normal, "NodeNotReady", &text);
        for key in self.on_node.get(name).cloned().unwrap_or_default() {
            if let Some(pod) = self.pods.get(&key).filter(|pod| says_ready(pod)) {
                let text = "Node is not ready";
                self.recorder
                    .about(&pod, EventKind::Warning, "NodeNotReady", text);
                self.tasks.push_back(Task::NotReady(pod));
            }
        }
    }

    fn node_gone(&mut self, name: &str) {
        if self.known.remove(name).is_some() {
            if self.zones.forget(name) {
                self.mode_changed(self.environment.now());
            }
            self.monitor.forget(name);
            self.unready.remove(name);
            self.evicting.remove(name);
        }
    }

    /// Takes up where a pod is.
    fn pod(&mut self, key: &Key) {
        let Some(pod) = self.pods.get(key) else {
            return self.leave(key);
        };
        let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref());
        let Some(node) = node.filter(|node| !node.is_empty()) else {
            return self.leave(key);
        };
        if self.place.get(key).is_none_or(|before| before != node) {
            self.leave(key);
            self.place.insert(key.clone(), node.to_owned());
            let pods = self.on_node.entry(node.to_owned()).or_default();
            pods.insert(key.clone());
        }
        self.consider_pod(key, &pod, node);
    }

    fn leave(&mut self, key: &Key) {
        self.evictions.forget(key);
        let Some(node) = self.place.remove(key) else {
            return;
        };
        if let Some(pods) = self.on_node.get_mut(&node) {
            pods.remove(key);
            if pods.is_empty() {
                self.on_node.remove(&node);
            }
        }
    }

    fn consider(&mut self, key: &Key) {
        if let (Some(pod), Some(node)) = (self.pods.get(key), self.place.get(key).cloned()) {
            self.consider_pod(key, &pod, &node);
        }
    }

    fn consider_pod(&mut self, key: &Key, pod: &Arc<Pod>, node: &str) {
        let Some(node) = self.nodes.get(&Key::cluster(node)) else {
            return self.evictions.forget(key);
        };
        let taints = node.spec.as_ref().and_then(|s| s.taints.as_deref());
        let taints = taints.unwrap_or_default();
        let now = self.environment.now();
        if self.evictions.consider(key, pod, taints, now) == Change::Cancelled {
            let text = format!("Cancelling deletion of Pod {key}");
            self.recorder
                .about(pod, EventKind::Normal, "TaintManagerEviction", &text);
        }
    }

    fn evict(&mut self, key: &Key, now: Timestamp) {
        let Some(pod) = self.pods.get(key) else {
            return;
        };
        tracing::debug!(%key, %now, "a taint evicts a pod");
        let text = format!("Marking for deletion Pod {key}");
        self.recorder
            .about(&pod, EventKind::Normal, "TaintManagerEviction", &text);
        self.tasks.push_back(Task::Evict(pod));
    }
}

fn says_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|s| s.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|c| c.type_ == "Ready" && c.status == "True")
}
