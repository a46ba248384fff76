//! The map behind the store: objects in numbered slots, found by key through a hash table.
//!
//! Slots sit in small blocks that are copied only when somebody still reads the old one, so a snapshot of everything
//! costs one pointer for each block. Order is slot order: it follows from what was put and removed, never from a hash.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::object::Object;

/// Slots in a block: a snapshot costs 1/128 of the objects, a write under a snapshot at most 128 pointer copies.
const BLOCK: usize = 128;

type Block = Arc<Vec<Option<Arc<Object>>>>;

/// A place in the table.
pub(crate) type Slot = u32;

/// Every object has one slot; `by_key` has exactly the slots in use; `free` has exactly the others; `bytes` is what all
/// objects take.
#[derive(Default)]
pub(crate) struct Table {
    blocks: Vec<Block>,
    by_key: HashTable<Slot>,
    free: Vec<Slot>,
    bytes: usize,
    hasher: DefaultHashBuilder,
}

/// What was stored at one moment. Holding it blocks nobody.
#[derive(Clone, Default, Debug)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// The number of objects in them.
    len: usize,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Bytes held on the heap by all objects, decoded values aside.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn find(&self, key: &str) -> Option<Slot> {
        let hash = self.hasher.hash_one(key);
        let same = |slot: &Slot| is_at(&self.blocks, *slot, key);
        self.by_key.find(hash, same).copied()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Object>> {
        self.at(self.find(key)?)
    }

    pub(crate) fn at(&self, slot: Slot) -> Option<&Arc<Object>> {
        at(&self.blocks, slot)
    }

    /// Puts an object; gives its slot and what was there.
    pub(crate) fn put(&mut self, object: Arc<Object>) -> (Slot, Option<Arc<Object>>) {
        self.bytes += object.heap_size();
        if let Some(slot) = self.find(object.key().as_str()) {
            let old = self.place(slot).replace(object);
            self.bytes -= old.as_ref().map_or(0, |old| old.heap_size());
            return (slot, old);
        }
        let hash = self.hasher.hash_one(object.key().as_str());
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        *self.place(slot) = Some(object);
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        self.by_key.insert_unique(hash, slot, |slot| {
            at(blocks, *slot).map_or(0, |object| hasher.hash_one(object.key().as_str()))
        });
        (slot, None)
    }

    /// Removes an object; gives the slot it had.
    pub(crate) fn remove(&mut self, key: &str) -> Option<(Slot, Arc<Object>)> {
        let hash = self.hasher.hash_one(key);
        let blocks = &self.blocks;
        let entry = self
            .by_key
            .find_entry(hash, |slot| is_at(blocks, *slot, key))
            .ok()?;
        let (slot, _) = entry.remove();
        let object = self.place(slot).take()?;
        self.bytes -= object.heap_size();
        self.free.push(slot);
        Some((slot, object))
    }

    pub(crate) fn blocks(&self) -> Blocks {
        Blocks {
            blocks: self.blocks.clone(),
            len: self.len(),
        }
    }

    /// Makes room for this many objects at once.
    pub(crate) fn reserve(&mut self, more: usize) {
        let (blocks, hasher) = (&self.blocks, &self.hasher);
        self.by_key.reserve(more, |slot| {
            at(blocks, *slot).map_or(0, |object| hasher.hash_one(object.key().as_str()))
        });
    }

    fn place(&mut self, slot: Slot) -> &mut Option<Arc<Object>> {
        let slot = slot as usize;
        let block = Arc::make_mut(&mut self.blocks[slot / BLOCK]);
        &mut block[slot % BLOCK]
    }

    /// A new block; its first slot is returned, the others are free, lowest first.
    fn grow(&mut self) -> Slot {
        let first = self.blocks.len() * BLOCK;
        let last =
            Slot::try_from(first + BLOCK - 1).expect("fewer than 2^32 objects fit in memory");
        self.blocks.push(Arc::new(vec![None; BLOCK]));
        let first = last - (BLOCK as Slot - 1);
        self.free.extend((first + 1..=last).rev());
        first
    }
}

impl Blocks {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The objects in slot order, with their slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &Arc<Object>)> {
        let slots = self.blocks.iter().flat_map(|block| block.iter());
        slots
            .enumerate()
            .filter_map(|(slot, object)| Some((slot as Slot, object.as_ref()?)))
    }

    /// The first object at `slot` or after it, and where to go on.
    pub(crate) fn next_from(&self, slot: usize) -> Option<(usize, &Arc<Object>)> {
        let mut at = slot;
        while let Some(block) = self.blocks.get(at / BLOCK) {
            match block.get(at % BLOCK).and_then(Option::as_ref) {
                Some(object) => return Some((at + 1, object)),
                None => at += 1,
            }
        }
        None
    }
}

fn at(blocks: &[Block], slot: Slot) -> Option<&Arc<Object>> {
    let slot = slot as usize;
    blocks.get(slot / BLOCK)?.get(slot % BLOCK)?.as_ref()
}

fn is_at(blocks: &[Block], slot: Slot, key: &str) -> bool {
    at(blocks, slot).is_some_and(|object| object.key().as_str() == key)
}
