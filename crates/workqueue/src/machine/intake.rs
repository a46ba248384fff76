//! Adds that gathered elsewhere, taken in together.

use super::{Added, Durations, Life, Machine};
use crate::note::Note;

/// So many keys are looked up together.
const FORESEEN: usize = 64;

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    /// Adds keys that are to run at once, each at its own moment if durations are measured. Finding the place of a key in a
    /// large table means waiting for memory; keys that are looked up together wait together.
    pub(crate) fn take_in(&mut self, adds: &mut Vec<Added<K, N>>) {
        if self.life != Life::Open {
            adds.clear();
        }
        let mut adds = adds.drain(..);
        while !adds.as_slice().is_empty() {
            let next = adds.as_slice().iter().take(FORESEEN);
            self.slots.foresee(next.map(|add| add.key.hash));
            adds.by_ref()
                .take(FORESEEN)
                .for_each(|add| self.take_one_in(add));
        }
    }

    fn take_one_in(&mut self, add: Added<K, N>) {
        // What was due before it runs before it.
        self.advance_if_it_matters(|| add.at);
        let priority = self.lanes.effective(add.priority);
        let slot = self.slots.intern(add.key);
        self.slots[slot].note.merge(add.note);
        self.want_run(slot, priority);
    }

    /// Whether adds have to come one by one: something else may happen between them, and they do not tell the time.
    pub(crate) fn is_particular(&self) -> bool {
        let timed = self.durations == Durations::Unknown && self.alarms.len() > 0;
        timed || self.life != Life::Open
    }
}
