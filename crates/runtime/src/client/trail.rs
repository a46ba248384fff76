//! What one reconcile wrote.

use std::sync::Arc;

use kubewright_cache::Key;
use parking_lot::Mutex;

/// A write that a reconcile made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// What was asked for.
    pub verb: &'static str,
    /// The resource, as `deployments.apps`.
    pub resource: Arc<str>,
    /// The object.
    pub key: Key,
    /// The version that the server answered with; empty for a deletion.
    pub resource_version: String,
}

/// The writes of one reconcile, in order.
#[derive(Debug, Default)]
pub(crate) struct Trail(Mutex<Vec<Write>>);

impl Trail {
    pub(crate) fn note(&self, write: Write) {
        self.0.lock().push(write);
    }

    pub(crate) fn take(&self) -> Vec<Write> {
        std::mem::take(&mut self.0.lock())
    }
}
