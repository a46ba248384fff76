//! What the scheduler knows: nodes, what is promised on them, and who is where.
//!
//! Everything is kept in sums that change with each pod that comes and goes, so that the cost of one more pod depends on
//! the number of nodes and not on the number of pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Taint};
use kubewright_cache::Key;

use super::demand::{Demand, HostPort, Pods, Term, Terminating};
use super::resources::{Requests, Resources};
use super::selector::Labels;
use super::tally::{Tallies, Tally};

/// The name of a node, shared.
pub(crate) type NodeName = Arc<str>;

/// Nodes and the pods on them.
#[derive(Debug, Default)]
pub(crate) struct Board {
    nodes: BTreeMap<NodeName, Place>,
    pods: BTreeMap<Key, Placed>,
    namespaces: BTreeMap<String, Labels>,
    tallies: Tallies,
    /// Pods that placed pods keep away from their domain, by the nodes of those that do.
    repelling: BTreeMap<Term, BTreeMap<NodeName, u32>>,
    /// How many placed pods use a claim.
    claims: BTreeMap<Key, u32>,
    /// How many placed pods have a priority.
    priorities: BTreeMap<i32, u32>,
}

/// One node. `used`, `assumed`, `pods` and `ports` are the sums over the pods placed on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) taints: Vec<Taint>,
    pub(crate) cordon: Cordon,
    pub(crate) allocatable: Resources,
    pub(crate) pod_limit: i64,
    pub(crate) used: Resources,
    pub(crate) assumed: (i64, i64),
    pub(crate) pods: i64,
    pub(crate) ports: BTreeMap<HostPort, u32>,
    presence: Presence,
}

/// Whether something is different now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Yes,
    No,
}

/// Whether a node takes new pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Cordon {
    #[default]
    Open,
    Closed,
}

/// Whether a node is there. Pods may be heard of before their node, and stay when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Presence {
    #[default]
    Unknown,
    Present,
}

/// A pod on a node.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) node: NodeName,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) namespace: String,
    pub(crate) labels: Labels,
    pub(crate) terminating: bool,
    priority: i32,
    requests: Requests,
    ports: Vec<HostPort>,
    repels: Vec<Term>,
    claims: Vec<Key>,
}

/// Who a placed pod is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) generation: i64,
}

impl Board {
    /// Takes up a node as it is now. Says whether that makes a difference to pods that wait.
    pub(crate) fn put_node(&mut self, node: &Node) -> Changed {
        let Some(name) = node.metadata.name.as_deref() else {
            return Changed::No;
        };
        let place = self.place_mut(name);
        let spec = node.spec.as_ref();
        let allocatable = node.status.as_ref().and_then(|s| s.allocatable.as_ref());
        let (allocatable, pod_limit) = Resources::of_node(allocatable);
        let mut new = Place {
            name: name.to_owned(),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            taints: spec.and_then(|s| s.taints.clone()).unwrap_or_default(),
            cordon: match spec.and_then(|s| s.unschedulable) {
                Some(true) => Cordon::Closed,
                _ => Cordon::Open,
            },
            allocatable,
            pod_limit,
            used: Resources::default(),
            assumed: place.assumed,
            pods: place.pods,
            ports: BTreeMap::new(),
            presence: Presence::Present,
        };
        // What is reserved on the node does not change.
        std::mem::swap(&mut new.used, &mut place.used);
        std::mem::swap(&mut new.ports, &mut place.ports);
        let same = new.labels == place.labels
            && new.taints == place.taints
            && (new.cordon, new.presence) == (place.cordon, place.presence)
            && (&new.allocatable, new.pod_limit) == (&place.allocatable, place.pod_limit);
        *place = new;
        if same { Changed::No } else { Changed::Yes }
    }

    /// Forgets a node. The pods on it are still counted, should it come back.
    pub(crate) fn remove_node(&mut self, name: &str) {
        if let Some(place) = self.nodes.get_mut(name) {
            place.presence = Presence::Unknown;
            self.sweep(name);
        }
    }

    /// Takes up the labels of a namespace, or that it is gone.
    pub(crate) fn put_namespace(&mut self, name: &str, labels: Option<Labels>) {
        let before = match labels.clone() {
            Some(labels) => self.namespaces.insert(name.to_owned(), labels),
            None => self.namespaces.remove(name),
        };
        if before != labels {
            // Counts that choose namespaces by labels may have changed; they are made anew when they are needed.
            self.tallies.clear();
        }
    }

    /// Puts a pod on a node, wherever it was before.
    pub(crate) fn place(&mut self, identity: Identity, node: &str, demand: &Demand) {
        self.remove(&identity.key);
        let name = self.name_of(node);
        let place = self.place_mut(node);
        place.pods += 1;
        place.used.add(&demand.requests.exact);
        place.assumed.0 += demand.requests.assumed.0;
        place.assumed.1 += demand.requests.assumed.1;
        for port in &demand.ports {
            *place.ports.entry(port.clone()).or_default() += 1;
        }
        for term in &demand.apart {
            let nodes = self.repelling.entry(term.clone()).or_default();
            *nodes.entry(name.clone()).or_default() += 1;
        }
        let placed = Placed {
            node: name,
            uid: identity.uid,
            generation: identity.generation,
            namespace: demand.namespace.clone(),
            labels: demand.labels.clone(),
            terminating: demand.terminating,
            priority: demand.priority,
            requests: demand.requests.clone(),
            ports: demand.ports.clone(),
            repels: demand.apart.clone(),
            claims: demand
                .claims
                .iter()
                .map(|claim| claim.key.clone())
                .collect(),
        };
        for claim in &placed.claims {
            *self.claims.entry(claim.clone()).or_default() += 1;
        }
        *self.priorities.entry(demand.priority).or_default() += 1;
        self.tallies.add(&placed, &self.namespaces);
        self.pods.insert(identity.key, placed);
    }

    /// Takes a pod off its node. Says whether it was on one.
    pub(crate) fn remove(&mut self, key: &Key) -> bool {
        let Some(placed) = self.pods.remove(key) else {
            return false;
        };
        self.tallies.subtract(&placed, &self.namespaces);
        decrement(&mut self.priorities, &placed.priority);
        for claim in &placed.claims {
            decrement(&mut self.claims, claim);
        }
        for term in &placed.repels {
            let Some(nodes) = self.repelling.get_mut(term) else {
                continue;
            };
            decrement(nodes, &placed.node);
            if nodes.is_empty() {
                self.repelling.remove(term);
            }
        }
        if let Some(place) = self.nodes.get_mut(&placed.node) {
            place.pods -= 1;
            place.used.subtract(&placed.requests.exact);
            place.assumed.0 -= placed.requests.assumed.0;
            place.assumed.1 -= placed.requests.assumed.1;
            for port in &placed.ports {
                decrement(&mut place.ports, port);
            }
            self.sweep(&placed.node);
        }
        true
    }

    /// A placed pod.
    pub(crate) fn placed(&self, key: &Key) -> Option<&Placed> {
        self.pods.get(key)
    }

    /// Whether any placed pod uses a claim.
    pub(crate) fn uses(&self, claim: &Key) -> bool {
        self.claims.contains_key(claim)
    }

    /// Whether any placed pod is less important than this.
    pub(crate) fn has_below(&self, priority: i32) -> bool {
        let lowest = self.priorities.keys().next();
        lowest.is_some_and(|lowest| *lowest < priority)
    }

    /// The placed pods that are less important than this, by node. Looks at all pods.
    pub(crate) fn below(&self, priority: i32) -> BTreeMap<NodeName, Vec<Key>> {
        let mut found: BTreeMap<NodeName, Vec<Key>> = BTreeMap::new();
        for (key, placed) in self.pods.iter().filter(|(_, p)| p.priority < priority) {
            let keys = found.entry(placed.node.clone()).or_default();
            keys.push(key.clone());
        }
        found
    }

    /// The nodes that are there, by name.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&NodeName, &Place)> {
        let present = |(_, place): &(&NodeName, &Place)| place.presence == Presence::Present;
        self.nodes.iter().filter(present)
    }

    /// A node that is there.
    pub(crate) fn node(&self, name: &str) -> Option<&Place> {
        let place = self.nodes.get(name);
        place.filter(|place| place.presence == Presence::Present)
    }

    /// How many pods of a set are on each node.
    pub(crate) fn tally(&mut self, pods: &Pods) -> &Tally {
        self.tallies.get(pods, &self.pods, &self.namespaces)
    }

    /// The terms of placed pods that want a pod away, with the nodes of those that have them.
    pub(crate) fn repelling<'a>(
        &'a self,
        demand: &'a Demand,
    ) -> impl Iterator<Item = (&'a Term, impl Iterator<Item = &'a NodeName>)> {
        self.repelling
            .iter()
            .filter(|(term, _)| self.includes(&term.pods, demand))
            .map(|(term, nodes)| (term, nodes.keys()))
    }

    /// Whether a pod is in a set.
    pub(crate) fn includes(&self, pods: &Pods, demand: &Demand) -> bool {
        pods.contains(&demand.namespace, &demand.labels, &self.namespaces)
    }

    /// The domain of a node under a key, if it has one.
    pub(crate) fn domain(&self, node: &str, topology_key: &str) -> Option<&str> {
        let place = self.node(node)?;
        place.labels.get(topology_key).map(String::as_str)
    }

    fn place_mut(&mut self, name: &str) -> &mut Place {
        self.nodes
            .entry(name.into())
            .or_insert_with_key(|name| Place {
                name: name.to_string(),
                ..Place::default()
            })
    }

    fn name_of(&mut self, node: &str) -> NodeName {
        match self.nodes.get_key_value(node) {
            Some((name, _)) => name.clone(),
            None => node.into(),
        }
    }

    /// Drops what is known of a node that is gone, once nothing is on it.
    fn sweep(&mut self, name: &str) {
        let empty = |place: &Place| place.presence == Presence::Unknown && place.pods == 0;
        if self.nodes.get(name).is_some_and(empty) {
            self.nodes.remove(name);
        }
    }
}

impl Pods {
    /// Whether a pod on a node is in the set.
    pub(crate) fn counts(&self, placed: &Placed, namespaces: &BTreeMap<String, Labels>) -> bool {
        let seen = self.terminating == Terminating::Counted || !placed.terminating;
        seen && self.contains(&placed.namespace, &placed.labels, namespaces)
    }

    /// Whether a pod of this namespace with these labels is in the set.
    pub(crate) fn contains(
        &self,
        namespace: &str,
        labels: &Labels,
        namespaces: &BTreeMap<String, Labels>,
    ) -> bool {
        let named = || self.namespaces.iter().any(|name| name == namespace);
        let chosen = || {
            let selector = &self.namespace_selector;
            selector.is_everything()
                || namespaces
                    .get(namespace)
                    .is_some_and(|labels| selector.matches(labels))
        };
        self.selector.matches(labels) && (named() || chosen())
    }
}

/// Counts one less, and forgets what is down to none.
pub(super) fn decrement<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(key);
        }
    }
}
