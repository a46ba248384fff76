//! The last reconciles of a controller: why each ran, what it wrote, how it ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubewright_cache::Key;
use parking_lot::Mutex;
use serde::Serialize;

use crate::cause::Cause;
use crate::client::Write;

/// Reconciles that are remembered.
const KEPT: usize = 256;

/// One reconcile, after the fact.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Reconciled {
    /// The controller.
    #[serde(serialize_with = "crate::cause::as_text")]
    pub controller: Arc<str>,
    /// The number of the reconcile.
    pub id: u64,
    /// Namespace and name.
    #[serde(serialize_with = "as_key")]
    pub key: Key,
    /// When it began.
    pub started: Timestamp,
    /// How long it took, in microseconds.
    #[serde(serialize_with = "as_microseconds", rename = "microseconds")]
    pub took: Duration,
    /// Why it ran.
    pub causes: Vec<Cause>,
    /// What it wrote, as `patch deployments.apps default/web`.
    #[serde(serialize_with = "as_lines")]
    pub writes: Vec<Write>,
    /// How it ended: `done`, `requeue`, `requeue after 10s`, or the error.
    pub ended: String,
}

/// The last reconciles, oldest first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct History {
    ring: Arc<Mutex<VecDeque<Arc<Reconciled>>>>,
    told: Arc<tokio::sync::Notify>,
}

impl History {
    pub(crate) fn push(&self, reconciled: Reconciled) {
        let mut ring = self.ring.lock();
        if ring.len() == KEPT {
            ring.pop_front();
        }
        ring.push_back(Arc::new(reconciled));
        drop(ring);
        self.told.notify_waiters();
    }

    /// The reconciles that are remembered, oldest first.
    pub fn list(&self) -> Vec<Arc<Reconciled>> {
        self.ring.lock().iter().cloned().collect()
    }

    /// Completes when another reconcile has ended. It counts from this call.
    pub fn grown(&self) -> impl Future<Output = ()> + Send + '_ {
        self.told.notified()
    }
}

fn as_key<S: serde::Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(key.as_str())
}

fn as_microseconds<S: serde::Serializer>(took: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

fn as_lines<S: serde::Serializer>(writes: &[Write], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(writes.iter().map(|write| {
        let Write {
            verb,
            resource,
            key,
            ..
        } = write;
        format!("{verb} {resource} {}", key.as_str())
    }))
}
