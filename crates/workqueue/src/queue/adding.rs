//! How keys get into the queue.

use std::time::Duration;

use super::inbox::Put;
use super::{Key, Queue};
use crate::machine::Added;
use crate::note::Note;
use crate::options::{Add, When};
use crate::priority::Priority;
use crate::slots::Hashed;

/// So many keys are added under one lock.
const ADDS_PER_LOCK: usize = 256;

impl<K: Key, N: Note> Queue<K, N> {
    /// Asks for a run of the key. Does nothing if one is already asked for and has not begun.
    ///
    /// A key that runs at present runs again afterwards, never twice at once.
    pub fn add(&self, key: K) {
        self.add_with(key, Add::now());
    }

    /// Asks for a run of the key once `delay` has passed. Of several delays the earliest wins.
    ///
    /// A delay is independent of runs asked for otherwise: a key that is also added now runs both times.
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

    /// The same, and leaves a note for that run.
    pub fn add_noting(&self, key: K, note: N, how: Add) {
        let key = self.hashed(key);
        if how.when == When::Now {
            return self.add_now(key, note, how.priority);
        }
        let now = self.clock_look();
        self.locked(|machine| machine.add(key, note, how, now));
    }

    fn add_now(&self, key: Hashed<K>, note: N, priority: Priority) {
        let early = self.measured_now();
        let add = Added {
            key,
            note,
            priority,
            at: early.unwrap_or_default(),
        };
        match self.shared.inbox.put(add) {
            Put::Kept => {}
            Put::Full => self.locked(|_| ()),
            Put::Refused(Added { key, note, .. }) => {
                let how = Add::now().priority(priority);
                let now = self.now_or(early);
                self.locked(|machine| machine.add(key, note, how, now));
            }
        }
    }

    /// Asks for a run of many keys, such as those of an initial list. Cheaper than one by one, otherwise the same.
    pub fn add_all(&self, keys: impl IntoIterator<Item = K>, how: Add) {
        let mut keys = keys.into_iter();
        loop {
            let at = self.now();
            let next = keys.by_ref().take(ADDS_PER_LOCK);
            let mut batch: Vec<Added<K, N>> = next
                .map(|key| Added {
                    key: self.hashed(key),
                    note: N::default(),
                    priority: how.priority,
                    at,
                })
                .collect();
            if batch.is_empty() {
                return;
            }
            self.locked(|machine| match how.when {
                When::Now => machine.take_in(&mut batch),
                When::After(_) | When::RateLimited => batch
                    .drain(..)
                    .for_each(|add| machine.add(add.key, add.note, how, || at)),
            });
        }
    }
}
