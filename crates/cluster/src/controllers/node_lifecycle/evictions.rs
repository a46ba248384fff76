//! Which pods have to leave their node because of its taints, and when. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Taint};
use kubewright_cache::Key;

use crate::scheduler::taints::{Stay, stay};

/// Who has to leave when.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    by_pod: BTreeMap<Key, Timestamp>,
    by_time: BTreeSet<(Timestamp, Key)>,
}

impl Evictions {
    /// Looks at a pod and the taints of its node. A pod that had to leave and need not any more is left alone; says so.
    pub(super) fn consider(
        &mut self,
        key: &Key,
        pod: &Pod,
        taints: &[Taint],
        now: Timestamp,
    ) -> Change {
        let before = self.by_pod.get(key).copied();
        match (leaves_at(pod, taints, now), before) {
            (None, None) => Change::None,
            (None, Some(_)) => {
                self.forget(key);
                Change::Cancelled
            }
            // A time that was set stands, unless the new one is earlier.
            (Some(at), Some(before)) if at >= before => Change::None,
            (Some(at), _) => {
                self.forget(key);
                self.by_pod.insert(key.clone(), at);
                self.by_time.insert((at, key.clone()));
                Change::None
            }
        }
    }

    /// Forgets a pod.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(at) = self.by_pod.remove(key) {
            self.by_time.remove(&(at, key.clone()));
        }
    }

    /// The next pod that has to leave now.
    pub(super) fn due(&mut self, now: Timestamp) -> Option<Key> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_pod.remove(&key);
        Some(key)
    }

    /// When somebody has to leave next.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

/// What changed for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// It had to leave and may stay now.
    Cancelled,
}

/// When a pod has to leave; never if there is nothing. Counted from when the taint is seen, whatever it says of itself
/// (`taint_eviction.go: processPodOnNode`).
fn leaves_at(pod: &Pod, taints: &[Taint], now: Timestamp) -> Option<Timestamp> {
    let tolerations = pod.spec.as_ref().and_then(|s| s.tolerations.as_deref());
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    match stay(taints, tolerations.unwrap_or_default()) {
        Stay::Forever => None,
        Stay::No => Some(now),
        Stay::Seconds(seconds) => {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            Some(now + Duration::from_secs(seconds))
        }
    }
}
