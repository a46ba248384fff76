//! Adds that nobody waits for are taken in together.
//!
//! Finding the place of a new key in a large table means waiting for memory, once for each key; keys that are looked up
//! together wait together. So while nothing depends on the moment of an add, keys gather here, and whatever asks about
//! keys takes them in first, in the order they came: nobody can tell the difference.

use super::Machine;
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::Priority;
use crate::slots::Hashed;

/// So many adds gather before they are taken in.
const GATHERED: usize = 64;

/// An add that has not been looked at.
pub(super) struct Waiting<K, N> {
    key: Hashed<K>,
    note: N,
    priority: Priority,
    /// When it came, if durations are measured.
    added: Moment,
}

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    /// Whether it makes no difference when an add is looked at: no alarm is due before it.
    pub(super) fn may_gather(&self) -> bool {
        self.alarms.len() == 0
    }

    /// Leaves an add for later.
    pub(super) fn gather(&mut self, key: Hashed<K>, note: N, priority: Priority, added: Moment) {
        self.inbox.push(Waiting {
            key,
            note,
            priority,
            added,
        });
        if self.inbox.len() >= GATHERED {
            self.take_in();
        }
    }

    /// Looks at all adds that were left for later.
    pub(super) fn take_in(&mut self) {
        if self.inbox.is_empty() {
            return;
        }
        let mut inbox = std::mem::take(&mut self.inbox);
        self.slots.foresee(inbox.iter().map(|add| add.key.hash));
        for add in inbox.drain(..) {
            let slot = self.slots.intern(add.key);
            self.slots[slot].note.merge(add.note);
            self.now = self.now.max(add.added);
            self.want_run(slot, add.priority);
        }
        // Its memory is used again.
        self.inbox = inbox;
    }
}
