//! Requests: keys on their way to a controller's queue, with their causes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Key;
use kubewright_workqueue::{Add, Priority, Queue};

use crate::cause::{Pending, Raised, Taken};

/// Where sources put the keys that are to be reconciled. Cheap to clone.
#[derive(Clone)]
pub struct Requests {
    queue: Queue<Key>,
    pending: Arc<Pending>,
}

impl Requests {
    pub(crate) fn new(queue: Queue<Key>) -> Self {
        Self {
            queue,
            pending: Arc::default(),
        }
    }

    /// Asks for a reconcile.
    pub fn add(&self, key: Key) {
        self.raise(key, Raised::Asked);
    }

    /// Asks for a reconcile once this time has passed.
    pub fn add_after(&self, key: Key, delay: Duration) {
        self.pending.raise(&key, Raised::Asked);
        self.queue.add_after(key, delay);
    }

    pub(crate) fn raise(&self, key: Key, raised: Raised) {
        let priority = match raised.is_patient() {
            true => Priority::LOW,
            false => Priority::NORMAL,
        };
        // The cause first: a worker that is faster than this must find it.
        self.pending.raise(&key, raised);
        self.queue.add_with(key, Add::now().priority(priority));
    }

    /// Notes why a key will run again that the queue keeps by itself.
    pub(crate) fn note(&self, key: &Key, raised: Raised) {
        self.pending.raise(key, raised);
    }

    pub(crate) fn causes(&self, key: &Key) -> Taken {
        self.pending.take(key)
    }

    pub(crate) fn queue(&self) -> &Queue<Key> {
        &self.queue
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Requests({})", self.queue.name())
    }
}
