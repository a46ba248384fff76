//! What happens to nodes: they fall silent and come back, are unwell or low on something, shut down and start again.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeStatus;
use kubewright_cache::Key;

use super::{Alarm, Fleet, Readiness};
use crate::node::kubelet::eviction::Pressure;
use crate::node::kubelet::shutdown::Shutdown;
use crate::node::signal::Signal;
use crate::node::state::{NodeChange, NodeState, Power};

/// How often a node that is low on something lets a pod go: `evictionMonitoringPeriod` of a kubelet.
pub(super) const EVICT_EVERY: Duration = Duration::from_secs(10);
/// How often a node that shuts down looks whether its pods have ended.
pub(super) const SHUT_DOWN_EVERY: Duration = Duration::from_secs(1);

impl Fleet {
    /// The node has registered: it reports from now on.
    pub(crate) fn registered(&mut self, name: &str, uid: &str, now: Timestamp) {
        let later = now + self.options.status_interval;
        if let Some(node) = self.nodes.get_mut(name) {
            node.uid = uid.to_owned();
            node.lease = None;
            if !node.state.is_off() {
                self.set_alarms(name, later, now);
            }
        }
    }

    /// Something happens to a node. Gives the pods to look at; nothing when there is no such node.
    pub(crate) fn change(
        &mut self,
        name: &str,
        change: NodeChange,
        now: Timestamp,
    ) -> Option<Vec<Key>> {
        let state = &self.nodes.get(name)?.state;
        let (is_off, is_shut_down) = (state.is_off(), state.shutdown.is_some());
        match change {
            NodeChange::Stop => {
                self.alter(name, |state| state.power = Power::Off);
                self.silence(name);
            }
            // A machine that was switched off has lost all that ran on it.
            NodeChange::Start if is_shut_down => return Some(self.reboot(name, now)),
            NodeChange::Start => return Some(self.resume(name, now)),
            NodeChange::Reboot => return Some(self.reboot(name, now)),
            NodeChange::Press(pressures) => self.alter(name, |state| state.pressures = pressures),
            NodeChange::NotReady(why) => self.alter(name, |state| state.unready = Some(why)),
            NodeChange::Ready => self.alter(name, |state| state.unready = None),
            NodeChange::ShutDown => self.alter(name, |state| {
                state.shutdown.get_or_insert(Shutdown::begun(now));
            }),
        }
        if !is_off && !self.nodes.get(name)?.state.is_off() {
            self.report_soon(name, now);
        }
        Some(Vec::new())
    }

    /// A node goes on: it reports at once. Gives its pods.
    fn resume(&mut self, name: &str, now: Timestamp) -> Vec<Key> {
        self.alter(name, |state| state.power = Power::On);
        self.set_alarms(name, now, now);
        let Some(node) = self.nodes.get_mut(name) else {
            return Vec::new();
        };
        node.reported = None;
        let pods: Vec<Key> = node.pods.iter().cloned().collect();
        for key in &pods {
            if let Some(tenant) = self.pods.get_mut(key) {
                // Others may have written the status in the meantime.
                tenant.run.published = None;
            }
        }
        pods
    }

    /// The machine of a node starts again: nothing runs on it any more. Gives its pods.
    fn reboot(&mut self, name: &str, now: Timestamp) -> Vec<Key> {
        self.alter(name, |state| {
            state.reboots = state.reboots.saturating_add(1);
            state.shutdown = None;
        });
        let pods = self.resume(name, now);
        for key in &pods {
            self.signal(key, Signal::Rebooted);
        }
        pods
    }

    /// A node reports. Gives the reason of the event about it: that it has become ready, or is not any more.
    pub(crate) fn reports(
        &mut self,
        name: &str,
        before: Option<&NodeStatus>,
    ) -> Option<&'static str> {
        let node = self.nodes.get_mut(name)?;
        let conditions = before.iter().flat_map(|s| s.conditions.iter().flatten());
        let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
        let seen = ready
            .next()
            .map(|condition| match condition.status.as_str() {
                "True" => Readiness::Ready,
                _ => Readiness::NotReady,
            });
        let (status, ..) = node.state.ready();
        let (now, reason) = match status {
            "True" => (Readiness::Ready, "NodeReady"),
            _ => (Readiness::NotReady, "NodeNotReady"),
        };
        let was = node.reported.replace(now).or(seen)?;
        (was != now).then_some(reason)
    }

    /// The pods of a node that is low on something, and what it is low on; nothing when it is not.
    pub(crate) fn tenants(&self, name: &str) -> Option<(Pressure, Vec<Key>)> {
        let pressure = *self.nodes.get(name)?.state.pressures.first()?;
        Some((pressure, self.pods_on(name)))
    }

    /// The pods on a node.
    pub(crate) fn pods_on(&self, name: &str) -> Vec<Key> {
        let node = self.nodes.get(name);
        let pods = node.map(|node| node.pods.iter().cloned().collect());
        pods.unwrap_or_default()
    }

    /// Changes how far a node is with shutting down; gives nothing when it does not.
    pub(crate) fn shut_down<T>(
        &mut self,
        name: &str,
        step: impl FnOnce(&mut Shutdown) -> T,
    ) -> Option<T> {
        let mut done = None;
        self.alter(name, |state| done = state.shutdown.as_mut().map(step));
        done
    }

    fn alter(&mut self, name: &str, change: impl FnOnce(&mut NodeState)) {
        if let Some(node) = self.nodes.get_mut(name) {
            change(&mut node.state);
            self.options.memory.keep(name, &node.state);
        }
    }

    /// Everything that a node does by itself begins anew, its reports at this moment.
    fn set_alarms(&mut self, name: &str, report: Timestamp, now: Timestamp) {
        self.silence(name);
        self.alarms.insert((now, Alarm::Lease(name.to_owned())));
        self.alarms.insert((report, Alarm::Report(name.to_owned())));
        self.watch_over(name, now);
    }

    /// A node reports at once, and goes by what it is low on.
    fn report_soon(&mut self, name: &str, now: Timestamp) {
        self.alarms.retain(|(_, alarm)| match alarm {
            Alarm::Report(of) | Alarm::Evict(of) | Alarm::ShutDown(of) => of != name,
            Alarm::Lease(_) | Alarm::Pod(_) => true,
        });
        self.alarms.insert((now, Alarm::Report(name.to_owned())));
        self.watch_over(name, now);
    }

    fn watch_over(&mut self, name: &str, now: Timestamp) {
        let Some(state) = self.nodes.get(name).map(|node| &node.state) else {
            return;
        };
        if !state.pressures.is_empty() {
            let soon = now + EVICT_EVERY;
            self.alarms.insert((soon, Alarm::Evict(name.to_owned())));
        }
        if state.shutdown.is_some() {
            self.alarms.insert((now, Alarm::ShutDown(name.to_owned())));
        }
    }

    /// Drops the alarms of a node itself.
    pub(super) fn silence(&mut self, name: &str) {
        self.alarms.retain(|(_, alarm)| match alarm {
            Alarm::Lease(of) | Alarm::Report(of) | Alarm::Evict(of) | Alarm::ShutDown(of) => {
                of != name
            }
            Alarm::Pod(_) => true,
        });
    }
}
