//! Interned keys: each known key has one dense slot number, and everything the queue knows of it is in that slot.
//!
//! The hash table holds slot numbers only, so a key is stored once and every other structure deals in `u32`.
//! Nothing ever iterates over the table: the hash decides no order.

use std::ops::{Index, IndexMut};

use hashbrown::HashTable;

use crate::alarms::Alarm;
use crate::moment::Moment;
use crate::priority::Priority;

/// With fewer slots than this, memory is kept for the next burst.
const SLOTS_KEPT: usize = 4096;

/// A key with its hash, which is computed before any lock is taken.
#[derive(Debug, Clone)]
pub(crate) struct Hashed<K> {
    pub(crate) key: K,
    pub(crate) hash: u64,
}

/// Where a key is between being added and being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Neither ready nor running: it waits for an alarm, or failures are remembered.
    Idle,
    /// In a lane.
    Ready,
    /// A worker has it.
    Running,
    /// A worker has it, and it was added again meanwhile: it becomes ready when that worker is done.
    RunningAgain,
}

/// All that is known of one key.
#[derive(Debug)]
pub(crate) struct Slot<K> {
    /// Nothing while the slot is free.
    pub(crate) key: Option<K>,
    hash: u64,
    pub(crate) phase: Phase,
    /// Of the next run; meaningful when ready or running again.
    pub(crate) priority: Priority,
    /// When the next run was asked for; meaningful when ready or running again.
    pub(crate) added: Moment,
    /// When the present run began; meaningful when running.
    pub(crate) started: Moment,
    /// Which entry of the lanes is the valid one; meaningful when ready.
    pub(crate) ticket: u64,
    /// Where this slot is in the list of running slots; meaningful when running.
    pub(crate) running_index: u32,
    /// Independent of the phase: a key may be ready now and due again later.
    pub(crate) alarm: Option<Alarm>,
    /// Of the run that the alarm will ask for.
    pub(crate) alarm_priority: Priority,
    /// Rate-limited adds since the key was last forgotten.
    pub(crate) requeues: u32,
}

/// All slots of one queue.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    slots: Vec<Slot<K>>,
    free: Vec<u32>,
    table: HashTable<u32>,
    /// Up to so many slots stay when all keys are gone.
    kept: usize,
}

impl<K> Slots<K> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            free: Vec::new(),
            table: HashTable::with_capacity(capacity),
            kept: capacity.max(SLOTS_KEPT),
        }
    }

    /// How many keys are known.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Every slot there is, free ones too.
    #[cfg(test)]
    pub(crate) fn all(&self) -> &[Slot<K>] {
        &self.slots
    }

    /// Whether the memory of a past burst can go: no key is known, but there is room for many.
    pub(crate) fn are_worth_dropping(&self) -> bool {
        self.table.is_empty() && self.slots.len() > self.kept
    }

    /// Drops all slots and their memory. Only for when no key is known and nobody holds a slot number.
    pub(crate) fn reset(&mut self) {
        let kept = self.kept;
        *self = Self::with_capacity(0);
        self.kept = kept;
    }

    /// Frees a slot that has nothing left to remember, and returns its key.
    pub(crate) fn free_if_unused(&mut self, slot: u32) -> Option<K> {
        let unused = &mut self.slots[slot as usize];
        if unused.phase != Phase::Idle || unused.alarm.is_some() || unused.requeues > 0 {
            return None;
        }
        let key = unused.key.take();
        if let Ok(entry) = self.table.find_entry(unused.hash, |&other| other == slot) {
            entry.remove();
        }
        self.free.push(slot);
        key
    }
}

impl<K: Eq> Slots<K> {
    /// The slot of a key, if the key is known.
    pub(crate) fn find(&self, key: &K, hash: u64) -> Option<u32> {
        let same = |&slot: &u32| self.slots[slot as usize].key.as_ref() == Some(key);
        self.table.find(hash, same).copied()
    }

    /// The slot of a key, which is made known if it was not.
    pub(crate) fn intern(&mut self, Hashed { key, hash }: Hashed<K>) -> u32 {
        if let Some(slot) = self.find(&key, hash) {
            return slot;
        }
        let slot = self.occupy(key, hash);
        let slots = &self.slots;
        self.table
            .insert_unique(hash, slot, |&other| slots[other as usize].hash);
        slot
    }

    fn occupy(&mut self, key: K, hash: u64) -> u32 {
        let slot = Slot {
            key: Some(key),
            hash,
            phase: Phase::Idle,
            priority: Priority::NORMAL,
            added: Moment::default(),
            started: Moment::default(),
            ticket: 0,
            running_index: 0,
            alarm: None,
            alarm_priority: Priority::NORMAL,
            requeues: 0,
        };
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return index;
        }
        let index = u32::try_from(self.slots.len()).expect("a queue holds fewer than 2^32 keys");
        self.slots.push(slot);
        index
    }
}

impl<K> Index<u32> for Slots<K> {
    type Output = Slot<K>;

    fn index(&self, slot: u32) -> &Slot<K> {
        &self.slots[slot as usize]
    }
}

impl<K> IndexMut<u32> for Slots<K> {
    fn index_mut(&mut self, slot: u32) -> &mut Slot<K> {
        &mut self.slots[slot as usize]
    }
}
