//! How runs end: what a worker says of one, and when the queue forgets its key.

use super::{Durations, Finish, Life, Machine, Needed, Run};
use crate::moment::Moment;
use crate::note::Note;
use crate::options::When;
use crate::slots::{Phase, RETIRED_KEPT};

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    /// The worker is done, and leaves a note for the run that it may have asked for. Returns keys that the queue
    /// forgets, to be dropped without the lock.
    pub(crate) fn done(
        &mut self,
        run: &Run<K, N>,
        finish: Finish,
        left: N,
        now: impl FnOnce() -> Moment,
    ) -> Vec<K> {
        let ended = match finish {
            Finish::Ended | Finish::Succeeded => self.advance_if_it_matters(now),
            Finish::Failed | Finish::Again(_) => Some(self.advance_to(now())),
        };
        if let (Some(ended), Durations::Measured) = (ended, self.durations) {
            let spent = ended.nanoseconds_since(run.started);
            self.work_duration.observe(spent);
        }
        self.conclude(run, finish, left);
        let slot = run.entry.slot;
        match self.slots[slot].phase {
            Phase::Running { index } => {
                self.unlist(index);
                self.slots[slot].phase = Phase::Idle;
            }
            Phase::RunningAgain { index } => {
                self.unlist(index);
                self.make_ready(slot);
            }
            Phase::Idle | Phase::Ready { .. } => {
                unreachable!("a slot that a worker has is running")
            }
        }
        if self.life != Life::Open && self.is_drained() {
            self.wake.everybody = Needed::Yes;
        }
        self.release(slot)
    }

    fn conclude(&mut self, run: &Run<K, N>, finish: Finish, left: N) {
        if matches!(finish, Finish::Succeeded | Finish::Again(_)) {
            self.limiter.forget(&run.key);
            self.slots[run.entry.slot].requeues = 0;
        }
        if self.life != Life::Open {
            return;
        }
        let when = match finish {
            Finish::Ended | Finish::Succeeded => return,
            Finish::Failed => When::RateLimited,
            Finish::Again(delay) => When::After(delay),
        };
        self.slots[run.entry.slot].note.merge(left);
        self.retry(run.entry.slot, when, run.priority);
    }

    pub(super) fn unlist(&mut self, index: u32) {
        self.running.swap_remove(index as usize);
        let Some(moved) = self.running.get(index as usize) else {
            return;
        };
        match &mut self.slots[moved.slot].phase {
            Phase::Running { index: place } | Phase::RunningAgain { index: place } => {
                *place = index
            }
            Phase::Idle | Phase::Ready { .. } => unreachable!("a listed slot is running"),
        }
    }

    /// Lets go of the slot if nothing is left to remember. Freeing is done in batches, and when work runs out.
    fn release(&mut self, slot: u32) -> Vec<K> {
        let batch = self.slots.retire(slot);
        if batch >= RETIRED_KEPT || self.is_drained() {
            self.free_retired()
        } else {
            Vec::new()
        }
    }

    /// Frees slots with nothing to remember, and the memory of a past burst with the last of them.
    pub(super) fn free_retired(&mut self) -> Vec<K> {
        let keys = self.slots.free_retired();
        if self.slots.are_worth_dropping() {
            self.slots.reset();
            self.lanes.reset();
            self.alarms.reset();
        }
        keys
    }

    /// Starts the count of requeues of a key afresh. Returns keys that the queue forgets altogether.
    pub(crate) fn forget(&mut self, key: &K, hash: u32) -> Vec<K> {
        self.limiter.forget(key);
        let Some(slot) = self.slots.find(key, hash) else {
            return Vec::new();
        };
        self.slots[slot].requeues = 0;
        self.release(slot)
    }
}
