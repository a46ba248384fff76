//! A few old states of collections, kept so that paging through a list rebuilds its state at most once.

use std::collections::VecDeque;

use super::root::Root;

/// Lists that are paged through at the same time without rebuilding. More work too, a little slower.
const PINS: usize = 16;

/// The states used last, most recent first.
#[derive(Debug, Default)]
pub(super) struct Pins {
    pins: VecDeque<(usize, u64, Root)>,
}

impl Pins {
    pub(super) fn get(&mut self, table: usize, revision: u64) -> Option<Root> {
        let found = self
            .pins
            .iter()
            .position(|(t, r, _)| (*t, *r) == (table, revision))?;
        let pin = self.pins.remove(found)?;
        let root = pin.2.clone();
        self.pins.push_front(pin);
        Some(root)
    }

    pub(super) fn put(&mut self, table: usize, revision: u64, root: Root) {
        if self.get(table, revision).is_none() {
            self.pins.truncate(PINS - 1);
            self.pins.push_front((table, revision, root));
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(usize, u64) -> bool) {
        self.pins
            .retain(|(table, revision, _)| keep(*table, *revision));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_used_longest_ago_goes_first() {
        let mut pins = Pins::default();
        for revision in 0..PINS as u64 {
            pins.put(0, revision, Root::default());
        }
        assert!(pins.get(0, 0).is_some());
        pins.put(0, 100, Root::default());
        assert!(pins.get(0, 0).is_some());
        assert!(pins.get(0, 1).is_none());
        assert!(pins.get(1, 0).is_none(), "another collection");
        pins.retain(|_, revision| revision >= 100);
        assert!(pins.get(0, 0).is_none());
        assert!(pins.get(0, 100).is_some());
    }
}
