//! What controllers know that no object tells: it outlives them, and goes with forks and snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewright_runtime::Key;
use parking_lot::Mutex;

use super::autoscaler::memory::Memory;
use super::daemonset::backoff::Backoff;

/// What controllers remember. Clones are the same memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    /// Recommendations and scalings of autoscalers.
    pub(super) autoscalers: Arc<Mutex<BTreeMap<Key, Memory>>>,
    /// How long DaemonSets leave failed pods alone.
    pub(super) daemon_sets: Arc<Mutex<Backoff>>,
}

impl Remembered {
    /// The same, from now on independent.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::default();
        copy.become_like(self);
        copy
    }

    /// Everything as another memory has it now.
    pub(crate) fn become_like(&self, other: &Self) {
        let autoscalers = other.autoscalers.lock().clone();
        *self.autoscalers.lock() = autoscalers;
        let daemon_sets = other.daemon_sets.lock().clone();
        *self.daemon_sets.lock() = daemon_sets;
    }
}
