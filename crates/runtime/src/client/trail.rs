//! What one reconcile wrote.

use std::fmt;
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
    /// The key of the object that was written.
    pub key: Key,
    /// The version that the server answered with; empty for a deletion.
    pub resource_version: String,
}

/// Reads as `patch deployments.apps default/web`.
impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb, self.resource, self.key)
    }
}

/// The writes of one reconcile, in order, until it ends. What a clone of its client writes later is nobody's to take.
#[derive(Debug)]
pub(crate) struct Trail(Mutex<Option<Vec<Write>>>);

impl Default for Trail {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Trail {
    pub(crate) fn note(&self, write: Write) {
        if let Some(writes) = &mut *self.0.lock() {
            writes.push(write);
        }
    }

    /// The writes. The trail ends here.
    pub(crate) fn take(&self) -> Vec<Write> {
        self.0.lock().take().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trail_that_was_taken_keeps_nothing() {
        let trail = Trail::default();
        let write = || Write {
            verb: "update",
            resource: "pods".into(),
            key: Key::new("default", "a"),
            resource_version: "1".to_owned(),
        };
        trail.note(write());
        assert_eq!(trail.take(), [write()]);
        trail.note(write());
        assert!(trail.take().is_empty());
    }
}
