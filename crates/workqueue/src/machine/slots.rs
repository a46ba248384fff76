//! All keys that the queue knows. A key stays in its place while it is known, so whatever points to it, a lane, an alarm or a
//! run, finds it again without hashing, and keys that were added one after the other lie side by side.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use slab::Slab;

use super::slot::{Phase, Slot};
use crate::queue::Request;

/// Where a known key is. It is given to another key once this one is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// A key, and what is remembered of it.
pub(super) struct Known<K, N> {
    pub(super) key: K,
    pub(super) slot: Slot<N>,
    hash: u64,
}

/// All known keys.
pub(super) struct Slots<K, N> {
    known: Slab<Known<K, N>>,
    /// The place of each of them, by the hash of its key. Nothing depends on the order.
    places: HashTable<Place>,
    hasher: RandomState,
}

impl<K: Request, N: Default> Slots<K, N> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            known: Slab::with_capacity(capacity),
            places: HashTable::with_capacity(capacity),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.known.capacity()
    }

    /// Where this key is, if it is known.
    pub(super) fn find(&self, key: &K) -> Option<Place> {
        let hash = self.hasher.hash_one(key);
        let found = self.places.find(hash, |place| self.at(*place).key == *key);
        found.copied()
    }

    /// Where this key is, from now on if it was not known.
    pub(super) fn find_or_insert(&mut self, key: K) -> Place {
        let hash = self.hasher.hash_one(&key);
        let known = &mut self.known;
        let found = self.places.entry(
            hash,
            |place| known[place.index()].key == key,
            |place| known[place.index()].hash,
        );
        match found {
            Entry::Occupied(place) => *place.get(),
            Entry::Vacant(vacant) => {
                let slot = Slot::default();
                let place = Place::new(self.known.insert(Known { key, slot, hash }));
                vacant.insert(place);
                place
            }
        }
    }

    pub(super) fn at(&self, place: Place) -> &Known<K, N> {
        &self.known[place.index()]
    }

    pub(super) fn at_mut(&mut self, place: Place) -> &mut Known<K, N> {
        &mut self.known[place.index()]
    }

    /// Where the key that is here is on its way, if one is.
    pub(super) fn phase(&self, place: Place) -> Option<Phase> {
        self.known.get(place.index()).map(|known| known.slot.phase)
    }

    /// Forgets the key that is here if there is nothing to remember of it.
    pub(super) fn release(&mut self, place: Place) {
        let known = self.at(place);
        if !known.slot.is_forgettable() {
            return;
        }
        let found = self.places.find_entry(known.hash, |other| *other == place);
        if let Ok(entry) = found {
            entry.remove();
        }
        self.known.remove(place.index());
    }

    /// Gives back the memory of a past burst, down to room for this many keys. Only for when no key is known.
    pub(super) fn reset(&mut self, room: usize) {
        self.known = Slab::with_capacity(room);
        self.places.shrink_to(room, |_| 0);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot<N>> {
        self.known.iter().map(|(_, known)| &known.slot)
    }
}

impl Place {
    fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than four thousand million keys fit into memory"))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}
