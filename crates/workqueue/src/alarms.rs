//! Delays: which key is due when, earliest first, ties in the order of setting.

use std::collections::BTreeMap;

use crate::moment::Moment;

/// When the alarm of one key goes off: its time, then the order of setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Due {
    pub(crate) at: Moment,
    sequence: u64,
}

/// The alarms of one queue. A key has at most one, which its slot names.
#[derive(Debug)]
pub(crate) struct Alarms<K> {
    keys: BTreeMap<Due, K>,
    next_sequence: u64,
}

impl<K> Alarms<K> {
    pub(crate) fn new() -> Self {
        Self {
            keys: BTreeMap::new(),
            next_sequence: 0,
        }
    }

    /// How many keys wait for their time.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Sets the alarm of a key whose present alarm is `current`. The earlier of the two stays, and is returned.
    pub(crate) fn set(&mut self, key: K, current: Option<Due>, at: Moment) -> Due {
        if let Some(earlier) = current.filter(|current| current.at <= at) {
            return earlier;
        }
        if let Some(later) = current {
            self.keys.remove(&later);
        }
        let due = Due {
            at,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        self.keys.insert(due, key);
        due
    }

    /// When the next alarm goes off.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.keys.first_key_value().map(|(due, _)| due.at)
    }

    /// Takes the key whose alarm goes off first, if it is due.
    pub(crate) fn ring(&mut self, now: Moment) -> Option<K> {
        let first = self.keys.first_entry()?;
        (first.key().at <= now).then(|| first.remove())
    }

    /// Forgets every alarm, and returns the keys that had one.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = K> + use<K> {
        std::mem::take(&mut self.keys).into_values()
    }
}
