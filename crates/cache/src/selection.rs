//! Selections: which objects an informer keeps, decided here rather than by the server.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::key::Key;

/// Decides by the key which objects of a kind are kept, and may change its mind.
///
/// Other objects are read from the wire and dropped: they take no memory, no handler hears of them, and reads do not find
/// them. When the selection changes, the informer reads the whole state again; handlers hear of what is new as added, and
/// of what is not selected any more as deleted.
#[derive(Clone)]
pub struct Selection {
    holds: Arc<dyn Fn(&Key) -> bool + Send + Sync>,
    changes: watch::Receiver<u64>,
}

impl Selection {
    /// The objects for whose keys `holds` says so. Whenever `changes` changes, it is asked about all objects again.
    pub fn new(
        changes: watch::Receiver<u64>,
        holds: impl Fn(&Key) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            holds: Arc::new(holds),
            changes,
        }
    }

    pub(crate) fn holds(&self, key: &Key) -> bool {
        (self.holds)(key)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selection")
    }
}
