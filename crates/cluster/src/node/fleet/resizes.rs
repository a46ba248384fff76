//! Which pods get the resources that they want in place of those that they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, ResourceRequirements};
use kubewright_cache::Key;

use super::room::exactly_taken;
use super::{Fleet, World};
use crate::node::kubelet::admission::Promise;
use crate::node::kubelet::resize::{self, INFEASIBLE, Verdict};
use crate::node::signal::Signal;
use crate::node::status;

impl Fleet {
    /// Looks whether a pod can have what it wants, if that is not what it has.
    pub(super) fn consider_resize(&mut self, key: &Key, pod: &Pod, world: &dyn World) {
        let Some(tenant) = self.pods.get_mut(key) else {
            return;
        };
        let over = status::is_terminal(pod) || tenant.promised.is_none();
        let signals = &tenant.run.signals;
        let known =
            |signal: &Signal| matches!(signal, Signal::Resized(_) | Signal::Rejected { .. });
        if over || signals.iter().any(known) || tenant.run.ended.is_some() {
            return;
        }
        if !resize::is_wanted(pod, &mut tenant.run) {
            if let Some(node) = self.nodes.get_mut(&tenant.node) {
                node.deferred.remove(key);
            }
            return;
        }
        let Some(verdict) = self.verdict(key, pod, world) else {
            return;
        };
        self.settle(key, pod, &verdict);
        self.signal(key, Signal::Resized(verdict));
    }

    /// What the node of a pod says to what it wants.
    fn verdict(&self, key: &Key, pod: &Pod, world: &dyn World) -> Option<Verdict> {
        let tenant = self.pods.get(key)?;
        let node = self.nodes.get(&tenant.node)?;
        if let Some(message) = resize::infeasible(pod, &tenant.run, node.state.has_static_cpus) {
            let reason = INFEASIBLE.to_owned();
            return Some(Verdict::Waits { reason, message });
        }
        let mut others = node.taken.clone();
        if let Some(own) = &tenant.promised {
            others.subtract(own);
        }
        let exactly = || {
            let mut pods: BTreeSet<Key> = node.pods.clone();
            pods.remove(key);
            exactly_taken(&self.pods, &pods, world)
        };
        let refused = node.refusal(pod, world, &others, exactly);
        Some(refused.map_or(Verdict::Granted, |refused| Verdict::Waits {
            reason: refused.reason,
            message: refused.message,
        }))
    }

    /// What was set aside for a container, if that is not what its pod says.
    pub(crate) fn allocated(
        &self,
        key: &Key,
        pod: &Pod,
        container: &str,
    ) -> Option<ResourceRequirements> {
        let run = &self.pods.get(key)?.run;
        let mut containers = run.containers.iter().filter(|_| !run.is_settled(pod));
        let found = containers.find(|one| one.name == container)?;
        found.allocated.resources()
    }

    /// Keeps account of the verdict about a pod.
    fn settle(&mut self, key: &Key, pod: &Pod, verdict: &Verdict) {
        let Some(tenant) = self.pods.get_mut(key) else {
            return;
        };
        let Some(node) = self.nodes.get_mut(&tenant.node) else {
            return;
        };
        match verdict {
            Verdict::Waits { reason, .. } if reason == INFEASIBLE => {
                node.deferred.remove(key);
            }
            Verdict::Waits { .. } => {
                node.deferred.insert(key.clone());
            }
            Verdict::Granted => {
                node.deferred.remove(key);
                node.give_back(&mut tenant.promised);
                let promised = Promise::of(pod);
                node.taken.add(&promised);
                tenant.promised = Some(promised);
                self.freed.insert(tenant.node.clone());
            }
        }
    }

    /// Tries the resizes again that wait on nodes where something has become free, the most important ones first. Gives the
    /// pods to look at.
    pub(crate) fn retry_resizes(&mut self, world: &dyn World) -> Vec<Key> {
        let mut again = Vec::new();
        for name in std::mem::take(&mut self.freed) {
            let Some(node) = self.nodes.get(&name).filter(|node| !node.state.is_off()) else {
                continue;
            };
            let waiting = node.deferred.iter().filter_map(|key| {
                let (pod, tenant) = (world.pod(key)?, self.pods.get(key)?);
                Some((resize::rank(&pod, &tenant.run), key.clone(), pod))
            });
            let mut waiting: Vec<(_, Key, Arc<Pod>)> = waiting.collect();
            waiting.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
            for (_, key, pod) in waiting {
                self.consider_resize(&key, &pod, world);
                again.push(key);
            }
        }
        // What was granted just now has been looked at by those that come after it, and what it gave back by the next turn.
        again
    }
}
