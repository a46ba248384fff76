//! What a node is like besides its spec: whether it runs, what it reports of itself, how often it has been started.

use std::collections::BTreeSet;

use super::kubelet::eviction::Pressure;
use super::kubelet::shutdown::{self, Shutdown};

/// The state of a node. No object has all of it, so it outlives the task of the nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeState {
    pub(crate) power: Power,
    /// What it is low on.
    pub(crate) pressures: BTreeSet<Pressure>,
    /// Why it reports that it is not ready; nothing while it is.
    pub(crate) unready: Option<Unready>,
    /// How far it is with shutting down. It stays when the node is off, until that starts again.
    pub(crate) shutdown: Option<Shutdown>,
    /// How often it has been started again.
    pub(crate) reboots: u32,
    /// Whether containers of Guaranteed pods have processors of their own.
    pub(crate) has_static_cpus: bool,
}

/// Whether a node does anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Power {
    #[default]
    On,
    Off,
}

/// Why a node reports that it is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unready {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Something that happens to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeChange {
    /// It no longer renews its lease.
    Stop,
    /// It goes on, or is switched on after it was shut down.
    Start,
    /// It is low on these from now on.
    Press(BTreeSet<Pressure>),
    NotReady(Unready),
    Ready,
    Reboot,
    ShutDown,
}

impl NodeState {
    /// Status, reason and message of the condition `Ready`.
    ///
    /// Mirrors `nodestatus.ReadyCondition`.
    pub(crate) fn ready(&self) -> (&'static str, &str, &str) {
        match &self.unready {
            _ if self.shutdown.is_some() => ("False", "KubeletNotReady", shutdown::NODE_MESSAGE),
            Some(unready) => ("False", &unready.reason, &unready.message),
            None => ("True", "KubeletReady", "kubelet is posting ready status"),
        }
    }

    pub(crate) fn is_off(&self) -> bool {
        self.power == Power::Off
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// `nodestatus.ReadyCondition`: the shutdown manager's error is one of those that make a node not ready.
    #[test]
    fn node_is_ready_unless_it_is_unwell_or_shuts_down() {
        let mut state = NodeState::default();
        assert_eq!(state.ready().0, "True");
        state.unready = Some(Unready {
            reason: "KubeletNotReady".to_owned(),
            message: "PLEG is not healthy".to_owned(),
        });
        let (status, reason, message) = state.ready();
        let expect = ("False", "KubeletNotReady", "PLEG is not healthy");
        assert_eq!((status, reason, message), expect);
        state.shutdown = Some(Shutdown::begun(Timestamp::UNIX_EPOCH));
        assert_eq!(state.ready().2, "node is shutting down");
    }
}
