//! How keys get into the queue.

use std::time::Duration;

use super::{Queue, Request};
use crate::note::Note;
use crate::options::{Add, When};

/// So many keys are added under one lock.
const ADDS_PER_LOCK: usize = 256;

impl<K: Request, N: Note> Queue<K, N> {
    /// Asks for a run of the key. Does nothing if one is already asked for and has not begun.
    ///
    /// A key that runs at present runs again afterwards, never twice at once.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// let item = queue.try_get().expect("a key is ready");
    /// queue.add("a");
    /// assert!(queue.is_empty(), "it runs, and not twice at once");
    /// item.done();
    /// assert_eq!(queue.len(), 1, "it was added while it ran");
    /// ```
    pub fn add(&self, key: K) {
        self.add_with(key, Add::now());
    }

    /// Asks for a run of the key once `delay` has passed. Of several delays the earliest wins.
    ///
    /// A delay is independent of runs asked for otherwise: a key that is also added now runs both times.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add_after("a", Duration::from_secs(60));
    /// assert!(queue.is_empty());
    /// assert_eq!(queue.stats().waiting, 1);
    /// ```
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_with(key, Add::after(delay));
    }

    /// Asks for a run of the key after a delay that the limiter decides, and counts a requeue.
    pub fn add_rate_limited(&self, key: K) {
        self.add_with(key, Add::rate_limited());
    }

    /// Asks for a run of the key, saying when and how urgently.
    pub fn add_with(&self, key: K, how: Add) {
        self.add_noting(key, N::default(), how);
    }

    /// Asks for a run of the key like [`add_with`](Queue::add_with), and leaves a note for that run.
    pub fn add_noting(&self, key: K, note: N, how: Add) {
        let now = match how.when {
            When::Now => self.measured_now(),
            When::After(_) | When::RateLimited => Some(self.now()),
        };
        self.step(now, |machine, now| machine.add(key, note, how, now));
    }

    /// Asks for a run of many keys, such as those of an initial list. Cheaper than one by one, otherwise the same.
    ///
    /// ```
    /// # use kubewright_workqueue::{Add, Options, Priority, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add_all(["a", "b", "c"], Add::now().priority(Priority::NORMAL));
    /// assert_eq!(queue.len(), 3);
    /// ```
    pub fn add_all(&self, keys: impl IntoIterator<Item = K>, how: Add) {
        let mut keys = keys.into_iter();
        loop {
            // The iterator is the caller's, and does not run under the lock.
            let batch: Vec<K> = keys.by_ref().take(ADDS_PER_LOCK).collect();
            if batch.is_empty() {
                return;
            }
            self.step(Some(self.now()), |machine, now| {
                let keys = batch.into_iter();
                keys.for_each(|key| machine.add(key, N::default(), how, now));
            });
        }
    }
}
