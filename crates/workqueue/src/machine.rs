//! The queue as a pure state machine: no lock, no task, no clock; the time is an argument.
//!
//! Guarantees, kept by the phase of each slot (see [`Phase`]):
//! - a key is never with two workers at once;
//! - a key added while it runs becomes ready again, at the tail, when that run is done;
//! - a key that is ready is not added a second time, at most it becomes more urgent;
//! - of several delays for one key the earliest wins, and its note with it;
//! - a delay is independent of the key being ready or running, and its note waits for the run that falls due;
//! - after shutdown nothing is added, what is ready is still handed out, and what waits for a delay is dropped;
//! - a limiter that panics loses no key: the key then waits as it would with the default limiter.
//!
//! Whom to wake is collected in [`Wake`] and taken by the shell after each call.

mod schedule;
mod slot;
mod slots;
mod terms;

use std::time::Duration;

pub use terms::Finish;
pub(crate) use terms::{End, Life, Next, Run, Wake};

use crate::limiter::guarded::Guarded;
use crate::moment::Moment;
use crate::note::Note;
use crate::options::{Add, Options, When};
use crate::priority::{Priority, PriorityPolicy};
use crate::queue::Request;
use crate::stats::{Histogram, Stats};
use schedule::Schedule;
use slot::{Phase, Slot};
use slots::{Known, Place, Slots};

/// At most this many delayed keys become ready in one call, so that no call holds the shell's lock for long.
const RINGS_PER_CALL: usize = 256;
/// An empty queue keeps room for this many keys; what a larger burst took is given back.
const ROOM_KEPT: usize = 1 << 16;

/// The state of one queue.
pub(crate) struct Machine<K, N> {
    /// Every key that is ready, runs, waits for a delay, or has failures to remember.
    slots: Slots<K, N>,
    schedule: Schedule,
    limiter: Guarded<K>,
    /// How many slots are `Running` or `RunningAgain`.
    running: usize,
    life: Life,
    /// Whether it is measured how long keys wait and run. Reading the clock costs about as much as all the rest.
    measures: bool,
    queue_duration: Histogram,
    work_duration: Histogram,
}

impl<K: Request, N: Note> Machine<K, N> {
    pub(crate) fn new(options: Options<K>) -> Self {
        Self {
            slots: Slots::with_capacity(options.capacity),
            schedule: Schedule::new(options.priorities),
            limiter: Guarded::new(options.limiter),
            running: 0,
            life: Life::Open,
            measures: !options.name.is_empty(),
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
        }
    }

    /// Adds a key.
    pub(crate) fn add(&mut self, key: K, note: N, how: Add, now: Moment) {
        if self.life != Life::Open {
            return;
        }
        self.advance(now);
        let priority = self.schedule.lanes.effective(how.priority);
        let place = self.slots.find_or_insert(key);
        let Known { key, slot, .. } = self.slots.at_mut(place);
        let delay = match how.when {
            When::Now => {
                self.schedule.want_run(place, slot, priority);
                slot.note.merge(note);
                return;
            }
            When::After(delay) => delay,
            When::RateLimited => {
                let now = self.schedule.now.since_epoch();
                self.limiter.delay(key, slot.count_requeue(), now)
            }
        };
        self.schedule.retry(place, slot, delay, (priority, note));
    }

    /// Moves the time on: delayed keys that are due become ready, in the order in which they are due.
    pub(crate) fn advance(&mut self, now: Moment) {
        self.schedule.now = self.schedule.now.max(now);
        for _ in 0..RINGS_PER_CALL {
            let Some(place) = self.schedule.alarms.ring(self.schedule.now) else {
                return;
            };
            let slot = &mut self.slots.at_mut(place).slot;
            if let Some(alarm) = slot.take_alarm() {
                self.schedule.want_run(place, slot, alarm.priority);
                slot.note.merge(alarm.note);
            }
        }
    }

    /// The key whose turn it is.
    pub(crate) fn get(&mut self, now: Moment) -> Next<K, N> {
        self.advance(now);
        match self.start_next() {
            Some(run) => Next::Run(run),
            None if self.life == Life::Open => Next::Empty,
            None => Next::ShutDown,
        }
    }

    fn start_next(&mut self) -> Option<Run<K, N>> {
        let slots = &self.slots;
        // The place of a stale entry may be another key's by now, or nobody's; a ticket is never given twice.
        let is_valid = |place: &Place, ticket| {
            let phase = slots.phase(*place);
            matches!(phase, Some(Phase::Ready { ticket: current, .. }) if current == ticket)
        };
        let place = self.schedule.lanes.pop(is_valid)?;
        let Known { key, slot, .. } = self.slots.at_mut(place);
        let started = self.schedule.now;
        let phase = std::mem::replace(&mut slot.phase, Phase::Running { started });
        let Phase::Ready {
            priority, added, ..
        } = phase
        else {
            unreachable!("a valid entry of a lane belongs to a slot that is ready");
        };
        self.schedule.ready -= 1;
        self.schedule.lanes.lighten(priority);
        self.running += 1;
        if self.measures {
            let waited = started.nanoseconds_since(added);
            self.queue_duration.observe(waited);
        }
        Some(Run {
            key: key.clone(),
            place,
            note: std::mem::take(&mut slot.note),
            priority,
            requeues: slot.requeues(),
            started,
        })
    }

    /// The worker is done with a key.
    pub(crate) fn done(&mut self, run: &Run<K, N>, end: End<N>, now: Moment) {
        self.advance(now);
        if self.measures {
            let spent = now.nanoseconds_since(run.started);
            self.work_duration.observe(spent);
        }
        let place = run.place;
        let slot = &mut self.slots.at_mut(place).slot;
        self.running -= 1;
        match slot.phase {
            Phase::RunningAgain {
                priority, added, ..
            } => self.schedule.line_up(place, slot, (priority, added)),
            _ => slot.phase = Phase::Idle,
        }
        if matches!(end.finish, Finish::Succeeded | Finish::Again(_)) {
            self.limiter.forget(&run.key);
            slot.forget_requeues();
        }
        let delay = match end.finish {
            _ if self.life != Life::Open => None,
            Finish::Ended | Finish::Succeeded => None,
            Finish::Again(delay) => Some(delay),
            Finish::Failed => {
                let now = self.schedule.now.since_epoch();
                Some(self.limiter.delay(&run.key, slot.count_requeue(), now))
            }
        };
        if let Some(delay) = delay {
            let priority = end.priority.unwrap_or(run.priority);
            let priority = self.schedule.lanes.effective(priority);
            let wanted = (priority, end.left);
            self.schedule.retry(place, slot, delay, wanted);
        }
        self.release(place);
        self.schedule.wake.everybody |= self.life != Life::Open && self.is_drained();
    }

    /// Starts the count of requeues of a key again at zero.
    pub(crate) fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
        if let Some(place) = self.slots.find(key) {
            self.slots.at_mut(place).slot.forget_requeues();
            self.release(place);
        }
    }

    /// Takes no more keys and drops those that are not due yet; a second call may change how the end is waited for.
    pub(crate) fn shut_down(&mut self, life: Life, now: Moment) {
        self.advance(now);
        while self.next_due().is_some_and(|due| due <= self.now()) {
            self.advance(now);
        }
        self.life = life;
        self.schedule.wake.everybody = true;
        for place in self.schedule.alarms.clear() {
            self.slots.at_mut(place).slot.take_alarm();
            self.release(place);
        }
    }

    /// Forgets the key if there is nothing to remember, and with the last one the memory of a past burst.
    fn release(&mut self, place: Place) {
        self.slots.release(place);
        if self.slots.len() == 0 && self.slots.capacity() > 2 * ROOM_KEPT {
            self.slots.reset(ROOM_KEPT);
            self.schedule.lanes.reset();
        }
    }

    /// How many rate-limited adds a key had since it was last forgotten.
    pub(crate) fn requeues(&self, key: &K) -> u32 {
        let place = self.slots.find(key);
        place.map_or(0, |place| self.slots.at(place).slot.requeues())
    }

    /// How many keys are ready. Those that are due but have not been moved yet count from the next call on.
    pub(crate) fn len(&self) -> usize {
        self.schedule.ready
    }

    /// When the next delayed key is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.schedule.alarms.next_due()
    }

    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// The latest time that a caller passed.
    pub(crate) fn now(&self) -> Moment {
        self.schedule.now
    }

    /// Whether nothing is ready and nothing runs.
    pub(crate) fn is_drained(&self) -> bool {
        self.schedule.ready == 0 && self.running == 0
    }

    /// Who must look again because of the calls since the last time this was asked.
    pub(crate) fn take_wake(&mut self) -> Wake {
        let mut wake = std::mem::take(&mut self.schedule.wake);
        wake.workers = wake.workers.min(self.schedule.ready);
        wake
    }

    pub(crate) fn stats(&mut self, name: &str, now: Moment) -> Stats {
        self.advance(now);
        let (lanes, now) = (&self.schedule.lanes, self.now());
        let mut by_priority = Vec::new();
        if lanes.policy() != PriorityPolicy::Ignore {
            by_priority.extend(lanes.depths());
            if by_priority.is_empty() {
                by_priority.push((Priority::NORMAL, 0));
            }
        }
        let spent = |slot: &Slot<N>| match slot.phase {
            Phase::Running { started } | Phase::RunningAgain { started, .. } if self.measures => {
                now.since(started)
            }
            _ => Duration::ZERO,
        };
        Stats {
            name: name.to_owned(),
            depth: lanes.depths().map(|(_, depth)| depth).sum(),
            depth_by_priority: by_priority,
            running: self.running,
            waiting: self.schedule.alarms.len(),
            known: self.slots.len(),
            adds: self.schedule.adds,
            retries: self.schedule.retries,
            limiter_panics: self.limiter.panics(),
            queue_duration: self.queue_duration.clone(),
            work_duration: self.work_duration.clone(),
            unfinished_work: self.slots.iter().map(spent).sum(),
            longest_running: self.slots.iter().map(spent).max().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
