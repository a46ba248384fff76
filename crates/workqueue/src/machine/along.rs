//! Keys that a worker takes along with the one it works on, and puts back if it does not get to them.

use super::{Machine, Run};
use crate::note::Note;
use crate::slots::Phase;

/// Of the keys that are ready a worker takes along this part at most: the others find enough.
const SHARE: usize = 8;

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    /// More keys for a worker that has one, at most so many: in the order of their turns, if it gets to them.
    pub(crate) fn take_along(&mut self, most: usize, to: &mut Vec<Run<K, N>>) {
        let count = most.min(self.ready / SHARE);
        let taken = (0..count).map_while(|_| self.start_next());
        to.extend(taken);
        self.along += count;
    }

    /// So many keys that a worker took along are about to be handed back, or are what it works on by now.
    pub(crate) fn settled(&mut self, count: usize) {
        self.along -= count;
    }

    /// The worker did not get to this key: it is as ready as it was. If it was added again meanwhile, one run serves.
    pub(crate) fn put_back(&mut self, run: Run<K, N>) {
        let held = &mut self.slots[run.entry.slot];
        let (index, raised) = match held.phase {
            Phase::Running { index } => {
                self.lanes.deepen(run.priority);
                (index, false)
            }
            Phase::RunningAgain { index } => {
                let again = held.priority;
                if again < run.priority {
                    self.lanes.lighten(again);
                    self.lanes.deepen(run.priority);
                }
                (index, again > run.priority)
            }
            Phase::Idle | Phase::Ready { .. } => {
                unreachable!("a slot that a worker has is running")
            }
        };
        let mut note = run.note;
        note.merge(std::mem::take(&mut held.note));
        held.note = note;
        self.unlist(index);
        // What it waited so far has been counted.
        self.slots[run.entry.slot].added = self.now;
        if raised {
            return self.make_ready(run.entry.slot);
        }
        let held = &mut self.slots[run.entry.slot];
        held.priority = run.priority;
        held.phase = Phase::Ready {
            ticket: run.entry.ticket(),
        };
        self.lanes.put_back(run.priority, run.entry);
        self.ready += 1;
        self.wake.workers += 1;
    }
}
