//! What follows from preemption: victims get a condition and are deleted, and their room is kept for the pod they make way
//! for.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Patch, PatchParams};
use kubewright_cache::{Key, Reader};
use kubewright_runtime::EventKind;
use serde::de::IgnoredAny;
use serde_json::json;

use super::assign::Done;
use super::board::Identity;
use super::demand::Demand;
use super::preemption::{Eviction, Needy, choose};
use super::shell::Shell;
use super::verdict::{ineligible, without_preemption};
use super::volumes::Volumes;
use crate::identity::Acting;
use crate::pods::disruption::Disruption;

/// The name under which this is written.
const MANAGER: &str = "kube-scheduler";

/// Pods that wait for others to go.
pub(super) struct Nominations {
    pub(super) budgets: Reader<PodDisruptionBudget>,
    pods: BTreeMap<Key, Nomination>,
}

/// A node that is kept for a pod.
struct Nomination {
    node: String,
    /// What the pod takes there, and nothing that would draw others near or keep them away: it is not there yet.
    room: Demand,
}

impl Nominations {
    pub(super) fn new(budgets: Reader<PodDisruptionBudget>) -> Self {
        Self {
            budgets,
            pods: BTreeMap::new(),
        }
    }
}

impl Shell {
    /// Keeps no node any more for a pod that has one or is gone.
    pub(super) fn note_placement(&mut self, key: &Key) {
        if !self.nominations.pods.contains_key(key) {
            return;
        }
        let pod = self.stores.pods.get(key);
        let waits = |pod: &Pod| {
            pod.spec
                .as_ref()
                .is_some_and(|spec| spec.node_name.is_none())
        };
        if !pod.is_some_and(|pod| waits(&pod)) {
            self.nominations.pods.remove(key);
        }
    }

    /// Keeps the node for a pod that was promised one before this scheduler began.
    pub(super) fn note_nomination(&mut self, key: &Key, pod: &Pod, demand: &Demand) {
        if let Some(node) = nominated(pod).filter(|_| !self.nominations.pods.contains_key(key)) {
            self.nominate(key, node.to_owned(), demand);
        }
    }

    pub(super) fn drop_nomination(&mut self, key: &Key) {
        self.nominations.pods.remove(key);
    }

    fn nominate(&mut self, key: &Key, node: String, demand: &Demand) {
        let room = Demand {
            priority: demand.priority,
            requests: demand.requests.clone(),
            ports: demand.ports.clone(),
            ..Demand::default()
        };
        let nomination = Nomination { node, room };
        self.nominations.pods.insert(key.clone(), nomination);
    }

    /// Counts the room that is kept for others of the same importance or a greater one; to be given back.
    pub(super) fn reserve(&mut self, key: &Key, demand: &Demand) -> Vec<Key> {
        let mut reserved = Vec::new();
        for (other, nomination) in &self.nominations.pods {
            let kept = other != key && nomination.room.priority >= demand.priority;
            if kept && self.board.placed(other).is_none() {
                let identity = Identity {
                    key: other.clone(),
                    uid: String::new(),
                    generation: 0,
                };
                self.board
                    .place(identity, &nomination.node, &nomination.room);
                reserved.push(other.clone());
            }
        }
        reserved
    }

    pub(super) fn give_back(&mut self, reserved: Vec<Key>) {
        for key in reserved {
            self.board.remove(&key);
        }
    }

    /// Makes room for a pod that fits nowhere, if less important ones are in its way. What there is to tell its owner.
    pub(super) fn make_room(
        &mut self,
        (key, pod): (&Key, &Arc<Pod>),
        demand: &Demand,
        volumes: &Volumes,
        message: String,
    ) -> String {
        if !self.board.has_below(demand.priority) {
            return message;
        }
        let spec = pod.spec.as_ref();
        if spec.and_then(|s| s.preemption_policy.as_deref()) == Some("Never") {
            return ineligible(&message, "not eligible due to preemptionPolicy=Never.");
        }
        if self.victims_leave(key, pod, demand) {
            let why = "not eligible due to a terminating pod on the nominated node.";
            return ineligible(&message, why);
        }
        let budgets = self.nominations.budgets.list();
        let needy = Needy { demand, volumes };
        let pods = &self.stores.pods;
        let found = choose(&mut self.board, &needy, |key| pods.get(key), &budgets);
        let Some(eviction) = found else {
            self.resign(key, pod);
            return message;
        };
        self.nominate(key, eviction.node.to_string(), demand);
        self.evict(key, pod, eviction);
        without_preemption(&message)
    }

    /// Keeps no node for a pod any more that finds no room there.
    fn resign(&mut self, key: &Key, pod: &Arc<Pod>) {
        self.nominations.pods.remove(key);
        if nominated(pod).is_some() {
            let (client, key, pod) = (self.client.clone(), key.clone(), pod.clone());
            self.writes.spawn(async move {
                let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": null}});
                Done::Written(key, patch_status(&client, &pod, patch).await)
            });
        }
    }

    /// Whether pods are terminating that were evicted for this one.
    fn victims_leave(&self, key: &Key, pod: &Pod, demand: &Demand) -> bool {
        let known = self.nominations.pods.get(key);
        let node = known.map(|known| &*known.node).or_else(|| nominated(pod));
        let Some(node) = node else {
            return false;
        };
        let below = self.board.below(demand.priority);
        let keys = below.get(node).into_iter().flatten();
        let mut pods = keys.filter_map(|key| self.stores.pods.get(key));
        pods.any(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    fn evict(&mut self, key: &Key, pod: &Arc<Pod>, eviction: Eviction) {
        let (now, node) = (self.environment.now(), eviction.node);
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let found = eviction
            .victims
            .iter()
            .filter_map(|key| self.stores.pods.get(key));
        let victims: Vec<Arc<Pod>> = found.collect();
        for victim in &victims {
            let message = format!("Preempted by pod {uid} on node {node}");
            self.recorder
                .about(victim, EventKind::Normal, "Preempted", &message);
        }
        let (client, key, pod) = (self.client.clone(), key.clone(), pod.clone());
        self.writes.spawn(async move {
            let written = write(client, &pod, &node, &victims, now).await;
            Done::Written(key, written)
        });
    }
}

fn nominated(pod: &Pod) -> Option<&str> {
    let node = pod.status.as_ref()?.nominated_node_name.as_deref();
    node.filter(|node| !node.is_empty())
}

/// Tells the victims to go, and the pod where it will be.
async fn write(
    client: kube::Client,
    pod: &Pod,
    node: &str,
    victims: &[Arc<Pod>],
    now: Timestamp,
) -> Result<(), kube::Error> {
    for victim in victims {
        remove(&client, victim, now).await?;
    }
    let patch =
        json!({"metadata": {"uid": pod.metadata.uid}, "status": {"nominatedNodeName": node}});
    patch_status(&client, pod, patch).await
}

/// A pod that makes way for another one.
const PREEMPTION: Disruption = Disruption {
    manager: MANAGER,
    reason: "PreemptionByScheduler",
    message: "default-scheduler: preempting to accommodate a higher priority pod",
};

async fn remove(client: &kube::Client, victim: &Pod, now: Timestamp) -> Result<(), kube::Error> {
    if victim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    PREEMPTION.delete(client, victim, now).await
}

async fn patch_status(
    client: &kube::Client,
    pod: &Pod,
    patch: serde_json::Value,
) -> Result<(), kube::Error> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let (acting, patch) = (Acting::of(client), Patch::Strategic(patch));
    let object = (Some(namespace), name);
    let patched = acting.patch_status::<Pod, IgnoredAny>(object, &params, &patch);
    patched.await.map(drop)
}
