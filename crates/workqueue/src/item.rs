//! A key in the hands of a worker.

use std::fmt;
use std::time::Duration;

use crate::machine::{Finish, Run};
use crate::priority::Priority;
use crate::queue::{Key, Queue};

/// A key that one worker has and no other can get.
///
/// Dropping it says that the run is over, whatever way it ended: a worker that panics or is cancelled does not keep
/// the key. To say how it ended, use [`done`](Item::done), [`retry`](Item::retry) or
/// [`run_again_after`](Item::run_again_after).
#[must_use = "dropping an item says that its run is over"]
pub struct Item<K: Key> {
    queue: Queue<K>,
    run: Run<K>,
    /// What is reported when the item is dropped.
    finish: Finish,
}

impl<K: Key> Item<K> {
    pub(crate) fn new(queue: Queue<K>, run: Run<K>) -> Self {
        Self {
            queue,
            run,
            finish: Finish::Ended,
        }
    }

    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.run.key
    }

    /// How urgent this run is.
    pub fn priority(&self) -> Priority {
        self.run.priority
    }

    /// How many retries there were before this run, since the key was last forgotten.
    pub fn requeues(&self) -> u32 {
        self.run.requeues
    }

    /// It worked, or nothing more can be done: the count of requeues starts afresh.
    pub fn done(mut self) {
        self.finish = Finish::Succeeded;
    }

    /// It failed: run it again after the limiter's delay, as urgently as now.
    pub fn retry(mut self) {
        self.finish = Finish::Failed;
    }

    /// It worked, and is to run again after a while: the count of requeues starts afresh.
    pub fn run_again_after(mut self, delay: Duration) {
        self.finish = Finish::Again(delay);
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.queue.done(&self.run, self.finish);
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.run.key)
            .field("priority", &self.run.priority)
            .finish_non_exhaustive()
    }
}
