//! Requests: keys on their way to a controller's queue, with their causes.

use std::fmt;
use std::time::Duration;

use kubewright_cache::Key;
use kubewright_workqueue::{Add, Priority, Queue};

use crate::cause::{Raised, Reasons};

/// Where sources put the keys that are to be reconciled. Cheap to clone.
#[derive(Clone)]
pub struct Requests {
    queue: Queue<Key, Reasons>,
}

impl Requests {
    pub(crate) fn new(queue: Queue<Key, Reasons>) -> Self {
        Self { queue }
    }

    /// Asks for a reconcile.
    pub fn add(&self, key: Key) {
        self.raise(key, Raised::Asked);
    }

    /// Asks for a reconcile once this time has passed.
    pub fn add_after(&self, key: Key, delay: Duration) {
        let asked = Raised::Asked.into();
        self.queue.add_noting(key, asked, Add::after(delay));
    }

    pub(crate) fn raise(&self, key: Key, raised: Raised) {
        let priority = match raised.is_patient() {
            true => Priority::LOW,
            false => Priority::NORMAL,
        };
        let how = Add::now().priority(priority);
        self.queue.add_noting(key, raised.into(), how);
    }

    pub(crate) fn queue(&self) -> &Queue<Key, Reasons> {
        &self.queue
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Requests({})", self.queue.name())
    }
}
