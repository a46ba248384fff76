//! What follows from a decision: the pod is bound, waits for its volumes, or gets the reason why it has no node.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kubewright_cache::Key;
use kubewright_runtime::EventKind;

use super::bind::{self, Bound};
use super::board::NodeName;
use super::demand::Demand;
use super::shell::{Shell, identity};
use super::volumes::{Storage, Volumes};
use crate::controllers::volumes::objects::{claim_of, is_bound};

/// How long volumes may take until a pod is put elsewhere.
const VOLUME_PATIENCE: Duration = Duration::from_secs(600);

/// What came of a write.
pub(super) enum Done {
    Bound(Key, Result<Bound, kube::Error>),
    /// What was to be said of a pod, or bound for it, was written.
    Written(Key, Result<(), kube::Error>),
}

/// A pod that has a node and waits for its volumes.
#[derive(Debug)]
pub(super) struct Waiting {
    node: NodeName,
    claims: Vec<Key>,
    pub(super) until: Timestamp,
}

impl Shell {
    /// Counts the pod on its node from now on, and puts it there.
    pub(super) fn assign(
        &mut self,
        key: &Key,
        pod: &Arc<Pod>,
        demand: &Demand,
        node: NodeName,
        volumes: Volumes,
    ) {
        self.board.place(identity(key, pod), &node, demand);
        self.encourage();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        self.assumed.insert(key.clone(), uid);
        if volumes.waiting.is_empty() {
            return self.bind(key, node);
        }
        let choices = self
            .board
            .node(&node)
            .and_then(|place| volumes.choose(place));
        let choices = choices.unwrap_or_default().into_iter();
        let choices: Vec<_> = choices
            .filter_map(|choice| {
                let claim = self.stores.claim(&choice.claim)?;
                Some((choice, claim))
            })
            .collect();
        let (client, at, pod_key) = (self.client.clone(), node.clone(), key.clone());
        self.writes.spawn(async move {
            Done::Written(pod_key, bind::bind_volumes(client, choices, &at).await)
        });
        let claims: Vec<Key> = volumes.waiting.into_iter().map(|one| one.claim).collect();
        self.claimants.put(key, claims.iter().cloned());
        let waiting = Waiting {
            node,
            claims,
            until: self.environment.now() + VOLUME_PATIENCE,
        };
        self.waiting.insert(key.clone(), waiting);
    }

    fn bind(&mut self, key: &Key, node: NodeName) {
        let Some(pod) = self.stores.pods.get(key) else {
            return self.forget(key);
        };
        let (client, key) = (self.client.clone(), key.clone());
        self.writes.spawn(async move {
            let bound = bind::bind(client, &pod, &node).await;
            Done::Bound(key, bound.map(|()| Bound { pod, node }))
        });
    }

    /// Binds the pods that waited for this claim alone, and tries those again that it may help.
    pub(super) fn claim_changed(&mut self, claim: &Key) {
        let concerned = self.claimants.of(claim);
        for pod in &concerned {
            if self.has_its_volumes(pod)
                && let Some(waiting) = self.waiting.remove(pod)
            {
                self.claimants.remove(pod);
                self.bind(pod, waiting.node);
            }
        }
        self.queue.rouse_these(&concerned, self.environment.now());
    }

    /// A volume says which node its claim can be used on.
    pub(super) fn volume_changed(&mut self, volume: &Key) {
        let volume = self.stores.volume(volume.name());
        if let Some(claim) = volume.as_deref().and_then(claim_of) {
            self.claim_changed(&claim);
        }
    }

    /// Whether a pod has a node and all volumes that it waited for.
    fn has_its_volumes(&self, pod: &Key) -> bool {
        let bound = |key: &Key| self.stores.claim(key).is_some_and(|claim| is_bound(&claim));
        let waiting = self.waiting.get(pod);
        waiting.is_some_and(|waiting| waiting.claims.iter().all(bound))
    }

    pub(super) fn give_up_on_volumes(&mut self) {
        let now = self.environment.now();
        let late = self.waiting.iter().filter(|(_, w)| w.until <= now);
        let late: Vec<Key> = late.map(|(key, _)| key.clone()).collect();
        for key in late {
            self.waiting.remove(&key);
            self.forget(&key);
            self.queue.failed_for_now(&key);
        }
    }

    /// Tells why a pod has no node, once for each answer.
    pub(super) fn refuse(&mut self, key: &Key, pod: &Arc<Pod>, message: String) {
        let now = self.environment.now();
        self.queue.failed(key, now);
        self.recorder
            .about(pod, EventKind::Warning, "FailedScheduling", &message);
        if bind::says(pod, &message) {
            return;
        }
        let (client, key, pod) = (self.client.clone(), key.clone(), pod.clone());
        self.writes.spawn(async move {
            Done::Written(key, bind::unschedulable(client, &pod, &message, now).await)
        });
    }

    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Bound(_, Ok(Bound { pod, node })) => {
                let meta = &pod.metadata;
                let (namespace, name) = (meta.namespace.as_deref(), meta.name.as_deref());
                let message = format!(
                    "Successfully assigned {}/{} to {node}",
                    namespace.unwrap_or(""),
                    name.unwrap_or("")
                );
                self.recorder
                    .about(&pod, EventKind::Normal, "Scheduled", &message);
            }
            Done::Bound(key, Err(error)) => {
                tracing::debug!(%key, %error, "a pod could not be bound");
                self.forget(&key);
                self.queue.failed_for_now(&key);
            }
            Done::Written(_, Ok(())) => {}
            Done::Written(key, Err(error)) => {
                tracing::debug!(%key, %error, "the scheduling condition of a pod could not be written");
                if self.waiting.remove(&key).is_some() {
                    self.forget(&key);
                    self.queue.failed_for_now(&key);
                }
            }
        }
    }

    /// Counts a pod no more that was to be put somewhere.
    fn forget(&mut self, key: &Key) {
        if self.assumed.remove(key).is_some() {
            self.board.remove(key);
        }
    }
}
