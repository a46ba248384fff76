//! Events of kubelets: each is written by the user of its node, and names the node.

use std::collections::BTreeMap;

use kubewright_runtime::Environment;
use kubewright_runtime::events::{EventWriter, Recorder};

use crate::events;
use crate::identity;

/// The recorder of each node's kubelet.
pub(crate) struct Recorders {
    client: kube::Client,
    shared: Recorder,
    /// Made when a node reports for the first time: a user of its own costs a task.
    nodes: BTreeMap<String, Recorder>,
}

impl Recorders {
    /// Recorders, and the writer that has to run for their events to arrive.
    pub(crate) fn new(client: kube::Client, environment: Environment) -> (Self, EventWriter) {
        let (shared, writer) = events::recorder(&client, "kubelet", environment);
        let recorders = Self {
            client,
            shared,
            nodes: BTreeMap::new(),
        };
        (recorders, writer)
    }

    /// The recorder of a node.
    pub(crate) fn of(&mut self, node: &str) -> &Recorder {
        self.nodes.entry(node.to_owned()).or_insert_with(|| {
            let kubelet = identity::acting_as(&self.client, identity::node(node));
            self.shared.with_kube(kubelet).with_host(node)
        })
    }

    /// Forgets a node that is gone.
    pub(crate) fn forget(&mut self, node: &str) {
        self.nodes.remove(node);
    }
}
