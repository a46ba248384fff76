//! What nodes know that no object tells: which were removed, which are silent, unwell or low on something, how far back-offs
//! are. It outlives the task of the nodes, and goes with forks and snapshots.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use kubewright_cache::Key;
use parking_lot::Mutex;

use super::run::{Run, State, Volumes};
use super::state::NodeState;

/// What nodes know. Clones are the same memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Contents>>);

/// Everything at one moment. Persistent maps: a copy costs next to nothing.
#[derive(Debug, Clone, Default)]
struct Contents {
    removed: OrdSet<String>,
    /// Nodes that are not as a new one is.
    states: OrdMap<String, NodeState>,
    /// Pods of which their status does not tell everything.
    runs: OrdMap<Key, Run>,
}

impl Memory {
    /// The same, from now on independent.
    pub(crate) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().clone())))
    }

    /// Everything as another memory has it now.
    pub(crate) fn become_like(&self, other: &Self) {
        let contents = other.0.lock().clone();
        *self.0.lock() = contents;
    }

    pub(crate) fn added(&self, node: &str) {
        self.0.lock().removed.remove(node);
    }

    pub(crate) fn removed(&self, node: &str) {
        let mut contents = self.0.lock();
        contents.removed.insert(node.to_owned());
        contents.states.remove(node);
    }

    pub(crate) fn is_removed(&self, node: &str) -> bool {
        self.0.lock().removed.contains(node)
    }

    /// Remembers what a node is like.
    pub(crate) fn keep(&self, node: &str, state: &NodeState) {
        let mut contents = self.0.lock();
        if *state == NodeState::default() {
            contents.states.remove(node);
        } else {
            contents.states.insert(node.to_owned(), state.clone());
        }
    }

    pub(crate) fn state(&self, node: &str) -> NodeState {
        self.0.lock().states.get(node).cloned().unwrap_or_default()
    }

    /// Remembers what the status of a pod does not tell.
    pub(crate) fn looked_at(&self, key: &Key, run: &Run) {
        let mut contents = self.0.lock();
        if is_in_status(run) {
            contents.runs.remove(key);
        } else {
            contents.runs.insert(key.clone(), run.clone());
        }
    }

    pub(crate) fn forget(&self, key: &Key) {
        let mut contents = self.0.lock();
        contents.runs.remove(key);
    }

    /// What is remembered of a pod with this uid.
    pub(crate) fn recall(&self, key: &Key, uid: &str) -> Option<Run> {
        let contents = self.0.lock();
        contents.runs.get(key).filter(|run| run.uid == uid).cloned()
    }
}

/// Whether the status of a pod tells all that its node knows.
fn is_in_status(run: &Run) -> bool {
    let plain = run.containers.iter().all(|container| {
        let settled = matches!(
            container.state,
            State::Running { .. } | State::Ended(_) | State::Waiting
        );
        settled && container.last.is_none() && !container.hung && container.pull_pause.is_none()
    });
    let mounting = matches!(run.volumes, Volumes::Unmounted { pause, .. } if !pause.is_zero());
    let resizing = run.resize.pending.is_some() || run.resize.progress.is_some();
    plain && !mounting && !run.rebooting && !resizing
}
