//! What is left of a node: which pods it takes, and where they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Pod;
use kubewright_cache::Key;

use super::{Simulated, Tenant, World};
use crate::node::kubelet::admission::{NodeView, Promise, Rejection, Taken, admit};
use crate::node::run::Run;
use crate::node::signal::Signal;
use crate::node::status::{self, Host};
use crate::scheduler::resources::Resources;

impl Simulated {
    /// The node as pods on it see it.
    pub(crate) fn host(&self) -> Host {
        let amounts = Resources::of(Some(&self.spec.amounts()));
        Host {
            address: self.address.to_string(),
            allocatable: (amounts.cpu, amounts.memory),
        }
    }

    /// Why the node does not take a pod, if it does not.
    pub(super) fn rejection(
        &self,
        pod: &Pod,
        world: &dyn World,
        exactly: impl FnOnce() -> Taken,
    ) -> Option<Signal> {
        let refused = self.refusal(pod, world, &self.taken, exactly)?;
        Some(Signal::Rejected {
            reason: refused.reason,
            message: refused.message,
        })
    }

    /// Why a pod does not fit beside what is taken, if it does not.
    pub(super) fn refusal(
        &self,
        pod: &Pod,
        world: &dyn World,
        taken: &Taken,
        exactly: impl FnOnce() -> Taken,
    ) -> Option<Rejection> {
        let object = world.node(&self.spec.name);
        let meta = object.as_ref().map(|node| &node.metadata);
        let spec = object.as_ref().and_then(|node| node.spec.as_ref());
        let (allocatable, pod_limit) = Resources::of_node(Some(&self.spec.amounts()));
        let view = NodeView {
            name: self.spec.name.clone(),
            labels: meta.and_then(|m| m.labels.clone()).unwrap_or_default(),
            taints: spec.and_then(|s| s.taints.clone()).unwrap_or_default(),
            allocatable,
            pod_limit,
            pressures: self.state.pressures.iter().copied().collect(),
            is_shutting_down: self.state.shutdown.is_some(),
        };
        admit(pod, &view, taken).err()?;
        // Pods that have ended, and whose end is on its way here, take nothing.
        admit(pod, &view, &exactly()).err()
    }

    /// Gives a pod an address, or the one that it has. What it gives back in the end is its own.
    pub(super) fn house(&mut self, pod: &Pod, run: &mut Run) -> Option<Ipv4Addr> {
        let spec = pod.spec.as_ref();
        if spec.and_then(|spec| spec.host_network) == Some(true) {
            run.address = Some(self.address);
            return None;
        }
        match run.address {
            Some(address) => self.addresses.adopt(address),
            None => run.address = self.addresses.take(),
        }
        run.address
    }

    pub(super) fn give_back(&mut self, promised: &mut Option<Promise>) {
        if let Some(promised) = promised.take() {
            self.taken.subtract(&promised);
        }
    }

    /// The network of the node's pods.
    pub(crate) fn cidr(&self) -> String {
        self.addresses.block().cidr()
    }
}

/// What the pods on a node take that have not ended.
pub(super) fn exactly_taken(
    tenants: &BTreeMap<Key, Tenant>,
    pods: &BTreeSet<Key>,
    world: &dyn World,
) -> Taken {
    let mut taken = Taken::default();
    for key in pods {
        let runs = world.pod(key).is_some_and(|pod| !status::is_terminal(&pod));
        let promised = tenants.get(key).and_then(|tenant| tenant.promised.as_ref());
        if let Some(promised) = promised.filter(|_| runs) {
            taken.add(promised);
        }
    }
    taken
}
