//! What nodes report of themselves, and what happens to their machines.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kubewright_cache::Key;
use kubewright_runtime::EventKind;

use super::{Done, Shell};
use crate::node::fleet::World as _;
use crate::node::handle::Housed;
use crate::node::kubelet::shutdown::Next;
use crate::node::signal::Signal;
use crate::node::spec::Reporting;
use crate::node::state::NodeChange;
use crate::node::status::is_terminal;
use crate::node::writes;

impl Shell<'_> {
    /// Something happens to a node; says whether there is one.
    pub(super) fn change_node(&mut self, name: &str, change: NodeChange) -> bool {
        let now = self.now();
        let before = self.fleet.node(name).map(|node| node.state.clone());
        let Some(pods) = self.fleet.change(name, change, now) else {
            return false;
        };
        self.stirred.extend(pods);
        let node = self.fleet.node(name);
        let (Some(before), Some(node)) = (before, node) else {
            return false;
        };
        let after = &node.state;
        if after.reboots != before.reboots {
            let id = node.spec.boot_id(after.reboots);
            let text = format!("Node {name} has been rebooted, boot id: {id}");
            self.record_node(name, EventKind::Warning, "Rebooted", &text);
        } else if after.shutdown.is_some() && before.shutdown.is_none() {
            let text = "Shutdown manager detected shutdown event";
            self.record_node(name, EventKind::Normal, "Shutdown", text);
        }
        true
    }

    /// What is on a node; nothing when it is silent, or not there.
    pub(super) fn housed(&self, name: &str) -> Option<Housed> {
        let node = self.fleet.node(name).filter(|node| !node.state.is_off())?;
        let object = self.views.node(name);
        let created = object.and_then(|node| node.metadata.creation_timestamp.clone());
        let keys = self.fleet.pods_on(name);
        Some(Housed {
            since: created.map(|at| at.0),
            memory: node.host().allocatable.1,
            pods: keys
                .iter()
                .filter_map(|key| self.views.pods.get(key))
                .collect(),
        })
    }

    /// A node writes its status.
    pub(super) fn report(&mut self, name: &str, now: Timestamp) {
        let before = self.views.node(name);
        let before = before.and_then(|node| node.status.clone());
        let Some(node) = self.fleet.node(name) else {
            return;
        };
        let reporting = Reporting {
            state: &node.state,
            before: before.as_ref(),
            now,
        };
        let status = node.spec.status(node.address, &reporting);
        if let Some(reason) = self.fleet.reports(name, before.as_ref()) {
            let text = format!("Node {name} status is now: {reason}");
            self.record_node(name, EventKind::Normal, reason, &text);
        }
        let (kubelet, name) = (self.kubelet(name), name.to_owned());
        self.writes.spawn(async move {
            Done::Reported(writes::report(kubelet, name, before, status).await)
        });
    }

    fn record_node(&mut self, name: &str, kind: EventKind, reason: &str, message: &str) {
        let uid = self.fleet.node(name).map(|node| node.uid.clone());
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(name.to_owned()),
            uid,
            ..ObjectReference::default()
        };
        self.recorders.of(name).event(&about, kind, reason, message);
    }

    /// A node that shuts down asks the pods whose turn it is to end, and is off when all have.
    pub(super) fn go_on_shutting_down(&mut self, name: &str, now: Timestamp) {
        let keys = self.fleet.pods_on(name).into_iter();
        let pods: Vec<_> = keys
            .filter_map(|key| Some((key.clone(), self.views.pods.get(&key)?)))
            .filter(|(_, pod)| !is_terminal(pod))
            .collect();
        let running: Vec<(Key, _)> = pods
            .iter()
            .map(|(key, pod)| (key.clone(), &**pod))
            .collect();
        match self.fleet.shut_down(name, |state| state.next(now, running)) {
            Some(Next::End(pods)) => {
                for (key, grace) in pods {
                    if self.fleet.signal(&key, Signal::ShutDown { grace }) {
                        self.stirred.insert(key);
                    }
                }
            }
            Some(Next::Off) => drop(self.change_node(name, NodeChange::Stop)),
            None => {}
        }
    }
}
