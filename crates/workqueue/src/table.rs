//! A hash table from hashes to slot numbers, made for a million keys that come once and go.
//!
//! Open addressing with linear probing: a lookup, an insertion and a removal each wait for one place in memory, where a
//! general table, which keeps its tags apart, waits for two. The place follows from the highest bits of the hash, so
//! entries stay in the order of their hashes and growth is one pass through old and new memory.
//!
//! Keys are not stored here: the caller compares them, and only those whose whole hash agrees.

/// The smallest number of cells is two to this power.
const SMALLEST: u32 = 4;

/// A hash in the upper half and a slot number plus one in the lower half. Zero is empty, so that the memory of a new
/// table comes zeroed from the system and is touched only where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell(u64);

impl Cell {
    fn new(hash: u32, slot: u32) -> Self {
        Self(u64::from(hash) << 32 | (u64::from(slot) + 1))
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn slot(self) -> u32 {
        (self.0 as u32).wrapping_sub(1)
    }
}

/// Slot numbers by hash.
#[derive(Debug)]
pub(crate) struct Table {
    /// Always a power of two, and at most two thirds full, so that every probe meets an empty cell.
    cells: Vec<u64>,
    len: usize,
    /// How far to shift a hash down to get its first cell.
    shift: u32,
}

impl Table {
    /// Room for this many slot numbers.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let cells = capacity.saturating_mul(3).div_ceil(2).max(1);
        let bits = cells.next_power_of_two().ilog2();
        Self::of_bits(bits.clamp(SMALLEST, 31))
    }

    fn of_bits(bits: u32) -> Self {
        Self {
            cells: vec![0; 1 << bits],
            len: 0,
            shift: 32 - bits,
        }
    }

    /// How many slot numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Looks at the first cell of each hash. The processor waits for all of them at once, while the lookups that follow,
    /// each of which depends on what it finds, would wait for one after the other.
    pub(crate) fn foresee(&self, hashes: impl Iterator<Item = u32>) {
        let cells = hashes.map(|hash| self.cells[self.first(hash)]);
        std::hint::black_box(cells.fold(0, u64::wrapping_add));
    }

    /// The slot with this hash that `is_it`.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.position(hash, is_it).map(|at| self.cell(at).slot())
    }

    /// Adds a slot number that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, slot: u32) {
        if (self.len + 1) * 3 > self.cells.len() * 2 {
            self.grow();
        }
        self.len += 1;
        self.place(Cell::new(hash, slot));
    }

    /// Takes a slot number out.
    pub(crate) fn remove(&mut self, hash: u32, slot: u32) {
        let Some(mut hole) = self.position(hash, |other| other == slot) else {
            return;
        };
        self.len -= 1;
        // What follows moves up, unless that would put it before its first cell.
        let mut at = self.next(hole);
        while !self.cell(at).is_empty() {
            let first = self.first(self.cell(at).hash());
            if self.distance(first, at) >= self.distance(hole, at) {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = self.next(at);
        }
        self.cells[hole] = 0;
    }

    fn position(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mut at = self.first(hash);
        loop {
            let cell = self.cell(at);
            if cell.is_empty() {
                return None;
            }
            if cell.hash() == hash && is_it(cell.slot()) {
                return Some(at);
            }
            at = self.next(at);
        }
    }

    fn place(&mut self, cell: Cell) {
        let mut at = self.first(cell.hash());
        while self.cells[at] != 0 {
            at = self.next(at);
        }
        self.cells[at] = cell.0;
    }

    fn grow(&mut self) {
        let bits = 33 - self.shift;
        assert!(bits < 32, "a queue holds fewer than 2^30 keys");
        let old = std::mem::replace(self, Self::of_bits(bits));
        self.len = old.len;
        for cell in old.cells.into_iter().map(Cell) {
            if !cell.is_empty() {
                self.place(cell);
            }
        }
    }

    fn cell(&self, at: usize) -> Cell {
        Cell(self.cells[at])
    }

    fn first(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.cells.len() - 1)
    }

    /// How many steps lead from one cell to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & (self.cells.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Few different hashes, at both ends, so that probes run into each other and around the corner.
    fn poor_hash(slot: u32, poorness: u32) -> u32 {
        (slot % poorness).wrapping_sub(poorness / 2) << 27
    }

    #[test]
    fn capacity_is_room_without_growth() {
        for capacity in [0, 1, 10, 11, 1000] {
            let mut table = Table::with_capacity(capacity);
            let cells = table.cells.len();
            (0..capacity as u32).for_each(|slot| table.insert(slot << 20, slot));
            assert_eq!(table.cells.len(), cells, "{capacity}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn table_agrees_with_a_map(
            steps in prop::collection::vec(0u32..60, 1..200),
            poorness in 1u32..32,
        ) {
            let mut table = Table::with_capacity(0);
            let mut model = BTreeMap::new();
            for slot in steps {
                let hash = poor_hash(slot, poorness);
                if model.remove(&slot).is_some() {
                    table.remove(hash, slot);
                } else {
                    model.insert(slot, hash);
                    table.insert(hash, slot);
                }
                prop_assert_eq!(table.len(), model.len());
                for slot in 0..60 {
                    let found = table.find(poor_hash(slot, poorness), |other| other == slot);
                    prop_assert_eq!(found, model.contains_key(&slot).then_some(slot));
                }
            }
        }
    }
}
