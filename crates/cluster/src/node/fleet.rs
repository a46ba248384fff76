//! All simulated nodes and their pods: who is where, and when to look at what again. Time comes in as an argument and
//! nothing is written from here.

mod changes;
mod resizes;
mod room;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubewright_cache::Key;

use super::addresses::{Addresses, Networks};
use super::handle::{NodesError, NodesOptions};
use super::kubelet::admission::{Promise, Taken};
use super::kubelet::resize;
use super::kubelet::sources::Sources;
use super::machine::{PodMachine, Surroundings};
use super::run::Run;
use super::runtime::{ContainerId, PodId};
use super::signal::Signal;
use super::spec::NodeSpec;
use super::state::NodeState;
use super::status::{self, Host, Published};
use super::step::{Fate, Step};

/// Nodes and pods.
#[derive(Debug)]
pub(crate) struct Fleet {
    options: NodesOptions,
    nodes: BTreeMap<String, Simulated>,
    pods: BTreeMap<Key, Tenant>,
    /// Pods that were put on nodes that are not among these, by the name of the node.
    strays: BTreeMap<String, BTreeSet<Key>>,
    networks: Networks,
    alarms: BTreeSet<(Timestamp, Alarm)>,
    /// Nodes on which something has become free since deferred resizes were tried.
    freed: BTreeSet<String>,
    /// How many nodes there have been, to give each the next zone.
    count: usize,
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    Lease(String),
    Report(String),
    /// A node that is low on something looks for a pod that can go.
    Evict(String),
    /// A node that shuts down looks at what still runs.
    ShutDown(String),
    Pod(Key),
}

/// One node.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) spec: NodeSpec,
    pub(crate) zone: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) uid: String,
    /// The lease as it was written last; nothing when the server has to be asked.
    pub(crate) lease: Option<Arc<Lease>>,
    pub(crate) state: NodeState,
    /// Whether it has reported that it is ready; nothing when its object has to be asked.
    pub(crate) reported: Option<Readiness>,
    addresses: Addresses,
    pods: BTreeSet<Key>,
    /// Pods whose resizes wait for room.
    deferred: BTreeSet<Key>,
    /// What the pods on it were promised.
    taken: Taken,
}

/// What a node has reported of itself last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    Ready,
    NotReady,
}

/// A pod on one of the nodes.
#[derive(Debug)]
struct Tenant {
    node: String,
    run: Run,
    /// The address that is given back when the pod is done with it.
    address: Option<Ipv4Addr>,
    alarm: Option<Timestamp>,
    stage: Stage,
    /// What was promised to it; nothing once it has ended.
    promised: Option<Promise>,
}

/// Whether something about a pod is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    /// Being written; whether something happened since.
    Writing {
        again: bool,
    },
    /// Its object has been deleted.
    Gone,
}

/// What came of looking at a pod.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) node: String,
    pub(crate) step: Step,
}

impl Fleet {
    pub(crate) fn new(options: NodesOptions) -> Self {
        Self {
            networks: Networks::new(options.ranges),
            options,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            strays: BTreeMap::new(),
            alarms: BTreeSet::new(),
            freed: BTreeSet::new(),
            count: 0,
        }
    }

    /// Makes room for a node. One that has an object already keeps its addresses.
    ///
    /// # Errors
    /// When there is one, or no room.
    pub(crate) fn add(
        &mut self,
        spec: NodeSpec,
        existing: Option<&Node>,
    ) -> Result<&Simulated, NodesError> {
        let name = spec.name.clone();
        if self.nodes.contains_key(&name) {
            return Err(NodesError::Exists(name));
        }
        let cidr = existing.and_then(|node| node.spec.as_ref()?.pod_cidr.clone());
        let block = cidr
            .and_then(|cidr| self.networks.adopt(&cidr))
            .or_else(|| self.networks.block(spec.pods()))
            .ok_or(NodesError::NoAddresses)?;
        let known = existing.and_then(internal_address);
        let address = match known {
            Some(address) if self.networks.adopt_node(address) => address,
            _ => self.networks.node(),
        };
        let zones = &self.options.zones;
        let zone = zones.get(self.count % zones.len().max(1)).cloned();
        self.count += 1;
        let mut state = self.options.memory.state(&name);
        state.has_static_cpus |= spec.has_static_cpus;
        self.options.memory.keep(&name, &state);
        let node = Simulated {
            zone: zone.unwrap_or_default(),
            address,
            uid: String::new(),
            lease: None,
            addresses: Addresses::new(block),
            state,
            reported: None,
            pods: BTreeSet::new(),
            deferred: BTreeSet::new(),
            taken: Taken::default(),
            spec,
        };
        self.options.memory.added(&name);
        Ok(self.nodes.entry(name).or_insert(node))
    }

    /// The pods that were put on a node before it was there.
    pub(crate) fn strays(&mut self, name: &str) -> BTreeSet<Key> {
        self.strays.remove(name).unwrap_or_default()
    }

    /// A node is no more. Its pods are nobody's, and are given to whoever has to end them; nothing when there is no such
    /// node.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Vec<PodId>> {
        let node = self.nodes.remove(name)?;
        let mut left = Vec::new();
        for key in &node.pods {
            if let Some(tenant) = self.pods.remove(key) {
                self.disarm(key, tenant.alarm);
                let namespace = key.namespace().unwrap_or("");
                left.push(PodId::new(namespace, key.name(), &tenant.run.uid));
            }
        }
        if !node.pods.is_empty() {
            self.strays.insert(name.to_owned(), node.pods.clone());
        }
        self.networks.release(node.addresses.block());
        self.networks.release_node(node.address);
        self.silence(name);
        Some(left)
    }

    /// Something happens to a pod; says whether it is on one of the nodes.
    pub(crate) fn signal(&mut self, key: &Key, signal: Signal) -> bool {
        let Some(tenant) = self.pods.get_mut(key) else {
            return false;
        };
        tenant.run.signals.push(signal);
        true
    }

    /// The runs of the containers of a pod that run; nothing when the pod is not on one of the nodes, or its node is
    /// silent.
    pub(crate) fn running(&self, pod: &PodId) -> Option<Vec<ContainerId>> {
        let tenant = self.pods.get(&Key::new(&pod.namespace, &pod.name))?;
        let node = self.nodes.get(&tenant.node)?;
        if tenant.run.uid != pod.uid || node.state.is_off() {
            return None;
        }
        let containers = tenant.run.containers.iter();
        let running = containers.filter(|c| matches!(c.state, super::run::State::Running { .. }));
        let ids = running.map(|c| ContainerId::new(pod.clone(), &c.name, c.current_run()));
        Some(ids.collect())
    }

    /// The uid of the pod under a key.
    pub(crate) fn uid(&self, key: &Key) -> Option<&str> {
        self.pods.get(key).map(|tenant| tenant.run.uid.as_str())
    }

    /// The address of a pod, and of its node with what it has.
    pub(crate) fn place(&self, key: &Key) -> Option<(Option<Ipv4Addr>, Host)> {
        let tenant = self.pods.get(key)?;
        let node = self.nodes.get(&tenant.node)?;
        Some((tenant.run.address, node.host()))
    }

    /// A node.
    pub(crate) fn node(&self, name: &str) -> Option<&Simulated> {
        self.nodes.get(name)
    }

    /// The lease of a node has been written, or nobody knows.
    pub(crate) fn renewed(&mut self, name: &str, uid: &str, lease: Option<Arc<Lease>>) {
        if let Some(node) = self.nodes.get_mut(name).filter(|node| node.uid == uid) {
            node.lease = lease;
        }
    }

    /// Looks at a pod as it is now.
    pub(crate) fn look(
        &mut self,
        key: &Key,
        pod: &Pod,
        world: &dyn World,
        now: Timestamp,
    ) -> Option<Look> {
        self.take_up(key, pod, world, now);
        let tenant = self.pods.get_mut(key)?;
        let node = self.nodes.get_mut(&tenant.node)?;
        if node.state.is_off() {
            return None;
        }
        match &mut tenant.stage {
            Stage::Gone => return None,
            Stage::Writing { again } => {
                *again = true;
                return None;
            }
            Stage::Idle => {}
        }
        if tenant.run.address.is_none() && !status::is_terminal(pod) {
            // Its sandbox is a new one.
            if let Some(old) = tenant.address.take() {
                node.addresses.release(old);
            }
            tenant.address = node.house(pod, &mut tenant.run);
        }
        self.consider_resize(key, pod, world);
        let tenant = self.pods.get_mut(key)?;
        let node = self.nodes.get(&tenant.node)?;
        let around = Surroundings {
            behaviour: &self.options.behaviour,
            host: &node.host(),
            sources: world.sources(),
            engine: &self.options.engine,
        };
        let step = PodMachine::step(now, pod, &mut tenant.run, &around);
        self.options.memory.looked_at(key, &tenant.run);
        let alarm = std::mem::replace(&mut tenant.alarm, step.wake);
        if step.status.is_some() || step.fate == Fate::Goes {
            tenant.stage = Stage::Writing { again: false };
        }
        let node = tenant.node.clone();
        self.disarm(key, alarm);
        if let Some(at) = step.wake {
            self.alarms.insert((at, Alarm::Pod(key.clone())));
        }
        Some(Look { node, step })
    }

    /// What was to be written about a pod has been written. Says whether to look again.
    pub(crate) fn written(&mut self, key: &Key, outcome: &Outcome) -> bool {
        let Some(tenant) = self.pods.get_mut(key).filter(|t| t.run.uid == outcome.uid) else {
            return false;
        };
        let again = matches!(tenant.stage, Stage::Writing { again: true });
        tenant.stage = match outcome.fate {
            Fate::Goes => Stage::Gone,
            Fate::Stays => Stage::Idle,
        };
        if outcome.published.is_some() {
            tenant.run.published = outcome.published;
        }
        if (outcome.ended == Ending::Over || outcome.fate == Fate::Goes)
            && let Some(node) = self.nodes.get_mut(&tenant.node)
        {
            node.give_back(&mut tenant.promised);
            self.freed.insert(tenant.node.clone());
            if let Some(address) = tenant.address.take() {
                node.addresses.release(address);
            }
        }
        again
    }

    /// What was to be written about a pod could not be; it is tried again at a time.
    pub(crate) fn failed(&mut self, key: &Key, at: Timestamp) {
        let Some(tenant) = self.pods.get_mut(key) else {
            return;
        };
        tenant.stage = Stage::Idle;
        let before = tenant.alarm.replace(at);
        self.disarm(key, before);
        self.alarms.insert((at, Alarm::Pod(key.clone())));
    }

    /// Forgets a pod that is no more; gives its uid if it was here.
    pub(crate) fn forget(&mut self, key: &Key) -> Option<String> {
        self.options.memory.forget(key);
        let Some(mut tenant) = self.pods.remove(key) else {
            self.strays.retain(|_, keys| {
                keys.remove(key);
                !keys.is_empty()
            });
            return None;
        };
        self.disarm(key, tenant.alarm);
        if let Some(node) = self.nodes.get_mut(&tenant.node) {
            node.pods.remove(key);
            node.deferred.remove(key);
            node.give_back(&mut tenant.promised);
            self.freed.insert(tenant.node.clone());
            if let Some(address) = tenant.address {
                node.addresses.release(address);
            }
        }
        Some(tenant.run.uid)
    }

    /// The next thing to look at that is due; leases and reports are set for the next time.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Alarm> {
        let (at, _) = self.alarms.first()?;
        if *at > now {
            return None;
        }
        let (_, alarm) = self.alarms.pop_first()?;
        let next = match &alarm {
            Alarm::Lease(_) => self.options.lease_interval,
            Alarm::Report(_) => self.options.status_interval,
            Alarm::Evict(_) => changes::EVICT_EVERY,
            Alarm::ShutDown(_) => changes::SHUT_DOWN_EVERY,
            Alarm::Pod(key) => {
                if let Some(tenant) = self.pods.get_mut(key) {
                    tenant.alarm = None;
                }
                return Some(alarm);
            }
        };
        self.alarms.insert((now + next, alarm.clone()));
        Some(alarm)
    }

    /// When something is due next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(at, _)| *at)
    }

    fn take_up(&mut self, key: &Key, pod: &Pod, world: &dyn World, now: Timestamp) {
        let uid = pod.metadata.uid.as_deref().unwrap_or("");
        let spec = pod.spec.as_ref();
        let name = spec.and_then(|s| s.node_name.as_deref()).unwrap_or("");
        match self.pods.get(key) {
            Some(tenant) if tenant.run.uid == uid && tenant.node == name => return,
            Some(_) => drop(self.forget(key)),
            None => {}
        }
        let Some(node) = self.nodes.get_mut(name) else {
            if !name.is_empty() && !status::is_terminal(pod) {
                let strays = self.strays.entry(name.to_owned()).or_default();
                strays.insert(key.clone());
            }
            return;
        };
        let recalled = self.options.memory.recall(key, uid);
        let mut run = recalled.map_or_else(|| Run::adopt(pod, now), Run::again);
        let ended = status::is_terminal(pod);
        let mut promised = None;
        if !ended {
            if !Run::is_admitted(pod) && pod.metadata.deletion_timestamp.is_none() {
                let exactly = || room::exactly_taken(&self.pods, &node.pods, world);
                run.signals.extend(node.rejection(pod, world, exactly));
            }
            resize::is_wanted(pod, &mut run);
            promised = Some(Promise::of(&resize::allocated(pod, &run)));
        }
        let own = if ended {
            None
        } else {
            node.house(pod, &mut run)
        };
        node.pods.insert(key.clone());
        if let Some(promised) = &promised {
            node.taken.add(promised);
        }
        let tenant = Tenant {
            node: name.to_owned(),
            run,
            address: own,
            alarm: None,
            stage: Stage::Idle,
            promised,
        };
        self.pods.insert(key.clone(), tenant);
    }

    fn disarm(&mut self, key: &Key, alarm: Option<Timestamp>) {
        if let Some(at) = alarm {
            self.alarms.remove(&(at, Alarm::Pod(key.clone())));
        }
    }
}

/// What a fleet looks up when it needs to know more than it is given.
pub(crate) trait World {
    fn sources(&self) -> &dyn Sources;
    /// A pod as it is now.
    fn pod(&self, key: &Key) -> Option<Arc<Pod>>;
    /// A node as it is now.
    fn node(&self, name: &str) -> Option<Arc<Node>>;
}

/// What came of a write about a pod.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) uid: String,
    /// The status that was written, if one was.
    pub(crate) published: Option<Published>,
    pub(crate) fate: Fate,
    pub(crate) ended: Ending,
}

/// Whether a pod has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Open,
    Over,
}

fn internal_address(node: &Node) -> Option<Ipv4Addr> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    let internal = addresses.iter().find(|a| a.type_ == "InternalIP")?;
    internal.address.parse().ok()
}
