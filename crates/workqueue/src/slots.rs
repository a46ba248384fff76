//! Interned keys: each known key has one dense slot number, and everything the queue knows of it is in that slot.
//!
//! The table holds slot numbers only, so a key is stored once and every other structure deals in `u32`.
//! Nothing ever iterates over the table: the hash decides no order.
//!
//! A slot with nothing left to remember is retired first and freed in a batch. Freeing touches memory at random,
//! and in a batch the processor waits for many such places at once.

use std::ops::{Index, IndexMut};

use crate::alarms::Alarm;
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::Priority;
use crate::table::Table;

/// With fewer slots than this, memory is kept for the next burst.
const SLOTS_KEPT: usize = 4096;

/// So many slots are freed at once. The keys of fewer stay in memory although they are done.
pub(crate) const RETIRED_KEPT: usize = 128;

/// A key with its hash, which is computed before any lock is taken.
#[derive(Debug, Clone)]
pub(crate) struct Hashed<K> {
    pub(crate) key: K,
    pub(crate) hash: u32,
}

/// Where a key is between being added and being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Neither ready nor running: it waits for an alarm, or failures are remembered, or it is retired.
    Idle,
    /// In a lane, in the entry with this ticket.
    Ready { ticket: u32 },
    /// A worker has it; it is at this place in the list of running slots.
    Running { index: u32 },
    /// A worker has it, and it was added again meanwhile: it becomes ready when that worker is done.
    RunningAgain { index: u32 },
}

/// All that is known of one key. With a key of two words this is one cache line.
#[derive(Debug)]
pub(crate) struct Slot<K, N> {
    /// Nothing while the slot is free.
    pub(crate) key: Option<K>,
    /// What adds left for the next run.
    pub(crate) note: N,
    pub(crate) phase: Phase,
    /// When the next run was asked for; meaningful when ready or running again.
    pub(crate) added: Moment,
    /// When the alarm goes off, or never. Independent of the phase: a key may be ready now and due again later.
    pub(crate) alarm_due: Moment,
    /// Tells the alarm from others that this slot had for the same moment.
    alarm_sequence: u32,
    /// Of the run that the alarm will ask for.
    pub(crate) alarm_priority: Priority,
    /// Of the present run, or of the next one when ready or running again.
    pub(crate) priority: Priority,
    /// Rate-limited adds since the key was last forgotten.
    pub(crate) requeues: u32,
    hash: u32,
}

impl<K, N> Slot<K, N> {
    pub(crate) fn has_alarm(&self) -> bool {
        self.alarm_due != Moment::NEVER
    }

    /// Whether this is the alarm that counts. One that was replaced does not.
    pub(crate) fn holds(&self, alarm: &Alarm) -> bool {
        self.alarm_due == alarm.due && self.alarm_sequence == alarm.sequence as u32
    }

    pub(crate) fn set_alarm(&mut self, alarm: &Alarm) {
        self.alarm_due = alarm.due;
        // Alarms of one slot for one moment are never 2^32 apart, and it would do no harm.
        self.alarm_sequence = alarm.sequence as u32;
    }

    pub(crate) fn clear_alarm(&mut self) {
        self.alarm_due = Moment::NEVER;
    }

    fn is_unused(&self) -> bool {
        self.phase == Phase::Idle && !self.has_alarm() && self.requeues == 0
    }
}

/// All slots of one queue.
#[derive(Debug)]
pub(crate) struct Slots<K, N> {
    slots: Vec<Slot<K, N>>,
    table: Table,
    free: Vec<u32>,
    /// Slots that were unused when they were put here. They may have come into use again, and may be here twice.
    retired: Vec<u32>,
    /// Up to so many slots stay when all keys are gone.
    kept: usize,
}

impl<K, N: Note> Slots<K, N> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            table: Table::with_capacity(capacity),
            free: Vec::new(),
            retired: Vec::new(),
            kept: capacity.max(SLOTS_KEPT),
        }
    }

    /// Keys with these hashes are about to be looked up.
    pub(crate) fn foresee(&self, hashes: impl Iterator<Item = u32>) {
        self.table.foresee(hashes);
    }

    /// How many keys are in memory.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Every slot there is, free ones too.
    #[cfg(test)]
    pub(crate) fn all(&self) -> &[Slot<K, N>] {
        &self.slots
    }

    /// Whether the memory of a past burst can go: no key is known, but there is room for many.
    pub(crate) fn are_worth_dropping(&self) -> bool {
        self.table.len() == 0 && self.slots.len() > self.kept
    }

    /// Drops all slots and their memory. Only for when no key is known and nobody holds a slot number.
    pub(crate) fn reset(&mut self) {
        let kept = self.kept;
        *self = Self::with_capacity(0);
        self.kept = kept;
    }

    /// Lets go of the slot if it has nothing left to remember. Says how many slots are to be freed by now.
    pub(crate) fn retire(&mut self, slot: u32) -> usize {
        if self[slot].is_unused() {
            self.retired.push(slot);
        }
        self.retired.len()
    }

    /// Frees the retired slots and returns their keys, to be dropped where it does not matter how long that takes.
    pub(crate) fn free_retired(&mut self) -> Vec<K> {
        let retired = self.retired.iter();
        self.table
            .foresee(retired.map(|&slot| self.slots[slot as usize].hash));
        let mut keys = Vec::with_capacity(self.retired.len());
        for slot in self.retired.drain(..) {
            let unused = &mut self.slots[slot as usize];
            if !unused.is_unused() {
                continue;
            }
            let Some(key) = unused.key.take() else {
                continue;
            };
            keys.push(key);
            // Nothing came of it: the run that it was for was called off.
            unused.note = N::default();
            self.table.remove(unused.hash, slot);
            self.free.push(slot);
        }
        keys
    }
}

impl<K: Eq, N: Note> Slots<K, N> {
    /// The slot of a key, if the key is known.
    pub(crate) fn find(&self, key: &K, hash: u32) -> Option<u32> {
        let same = |slot: u32| self.slots[slot as usize].key.as_ref() == Some(key);
        self.table.find(hash, same)
    }

    /// The slot of a key, which is made known if it was not.
    pub(crate) fn intern(&mut self, Hashed { key, hash }: Hashed<K>) -> u32 {
        if let Some(slot) = self.find(&key, hash) {
            return slot;
        }
        let slot = self.occupy(key, hash);
        self.table.insert(hash, slot);
        slot
    }

    fn occupy(&mut self, key: K, hash: u32) -> u32 {
        let slot = Slot {
            key: Some(key),
            note: N::default(),
            phase: Phase::Idle,
            added: Moment::default(),
            alarm_due: Moment::NEVER,
            alarm_sequence: 0,
            alarm_priority: Priority::NORMAL,
            priority: Priority::NORMAL,
            requeues: 0,
            hash,
        };
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return index;
        }
        let index = u32::try_from(self.slots.len()).expect("a queue holds fewer than 2^30 keys");
        self.slots.push(slot);
        index
    }
}

impl<K, N> Index<u32> for Slots<K, N> {
    type Output = Slot<K, N>;

    fn index(&self, slot: u32) -> &Slot<K, N> {
        &self.slots[slot as usize]
    }
}

impl<K, N> IndexMut<u32> for Slots<K, N> {
    fn index_mut(&mut self, slot: u32) -> &mut Slot<K, N> {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slot_of_a_two_word_key_is_one_cache_line() {
        assert_eq!(size_of::<Slot<std::sync::Arc<str>, ()>>(), 64);
    }

    #[test]
    fn key_that_comes_back_before_its_slot_is_freed_keeps_it() {
        let mut slots = Slots::<_, ()>::with_capacity(0);
        let key = || Hashed { key: "a", hash: 7 };
        let slot = slots.intern(key());
        slots.retire(slot);
        slots.retire(slot);
        assert_eq!(slots.intern(key()), slot);
        slots[slot].requeues = 1;
        assert_eq!(slots.free_retired(), [] as [&str; 0]);
        slots[slot].requeues = 0;
        slots.retire(slot);
        slots.retire(slot);
        assert_eq!(slots.free_retired(), ["a"]);
        assert_eq!((slots.len(), slots.find(&"a", 7)), (0, None));
    }

    #[test]
    fn keys_with_the_same_hash_are_told_apart() {
        let mut slots = Slots::<_, ()>::with_capacity(0);
        let [a, b] = ["a", "b"].map(|key| slots.intern(Hashed { key, hash: 7 }));
        assert_ne!(a, b);
        slots.retire(a);
        assert_eq!(slots.free_retired(), ["a"]);
        assert_eq!(slots.find(&"b", 7), Some(b));
    }
}
