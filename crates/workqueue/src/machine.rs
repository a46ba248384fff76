//! The queue as a pure state machine: no lock, no task, no clock; the time is an argument.
//!
//! Guarantees, kept by the phase of each slot (see [`Phase`]):
//! - a key is never with two workers at once;
//! - a key added while it runs becomes ready again, at the tail, when that run is done;
//! - a key that is ready is not added a second time, at most it becomes more urgent;
//! - of several delays for one key the earliest wins, and a delay is independent of the key being ready or running;
//! - after shutdown nothing is added, what is ready is still handed out, and what waits for a delay is dropped.
//!
//! What others must be told is collected in [`Wake`] and taken by the shell after each call.

mod along;
mod ending;
mod intake;
mod terms;

use std::time::Duration;

pub use terms::Finish;
pub(crate) use terms::{Added, Durations, Life, Needed, Next, Run, Wake};

use crate::alarms::{Alarms, Set};
use crate::lanes::{Entry, Lanes};
use crate::limiter::{RateLimiter, Retry};
use crate::moment::Moment;
use crate::note::Note;
use crate::options::{Add, When};
use crate::priority::{Priority, PriorityPolicy};
use crate::slots::{Hashed, Phase, Slots};
use crate::stats::{Histogram, Stats};

/// At most this many delayed keys become ready in one call, so that no call holds the shell's lock for long.
const RINGS_PER_CALL: usize = 256;

/// The state of one queue.
pub(crate) struct Machine<K, N> {
    slots: Slots<K, N>,
    /// Every slot whose phase is `Ready` has exactly one valid entry here, and no other slot has one.
    lanes: Lanes,
    alarms: Alarms,
    /// Every slot whose phase is `Running` or `RunningAgain`, at the index it names, in no order that matters.
    running: Vec<Running>,
    /// How many of them were taken along, and wait for their worker to get to them.
    along: usize,
    /// How many slots are `Ready`.
    ready: usize,
    limiter: Box<dyn RateLimiter<K>>,
    life: Life,
    durations: Durations,
    /// The latest time seen: time does not go back, even if callers raced for the lock. Without durations and alarms
    /// nobody asks for the time, and this falls behind.
    now: Moment,
    wake: Wake,
    adds: u64,
    retries: u64,
    queue_duration: Histogram,
    work_duration: Histogram,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    slot: u32,
    started: Moment,
}

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    pub(crate) fn new(
        policy: PriorityPolicy,
        limiter: Box<dyn RateLimiter<K>>,
        durations: Durations,
        capacity: usize,
    ) -> Self {
        Self {
            slots: Slots::with_capacity(capacity),
            lanes: Lanes::new(policy),
            alarms: Alarms::default(),
            running: Vec::new(),
            along: 0,
            ready: 0,
            limiter,
            life: Life::Open,
            durations,
            now: Moment::default(),
            wake: Wake::default(),
            adds: 0,
            retries: 0,
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
        }
    }

    /// Adds a key. The time is asked for only if something depends on it.
    pub(crate) fn add(&mut self, key: Hashed<K>, note: N, how: Add, now: impl FnOnce() -> Moment) {
        if self.life != Life::Open {
            return;
        }
        let priority = self.lanes.effective(how.priority);
        let slot = self.slots.intern(key);
        self.slots[slot].note.merge(note);
        match how.when {
            When::Now => {
                if !self.would_change(slot, priority) {
                    return;
                }
                self.advance_if_it_matters(now);
                self.want_run(slot, priority);
            }
            When::After(_) | When::RateLimited => {
                self.advance(now());
                self.retry(slot, how.when, priority);
            }
        }
    }

    /// Whether a run with this priority is more than what is already asked for.
    fn would_change(&self, slot: u32, priority: Priority) -> bool {
        let slot = &self.slots[slot];
        match slot.phase {
            Phase::Idle | Phase::Running { .. } => true,
            Phase::Ready { .. } | Phase::RunningAgain { .. } => slot.priority < priority,
        }
    }

    /// The key in this slot is to run once more, after the delay that `when` says.
    fn retry(&mut self, slot: u32, when: When, priority: Priority) {
        let delay = match when {
            When::Now => Duration::ZERO,
            When::After(delay) => delay,
            When::RateLimited => self.limited_delay(slot),
        };
        self.retries += 1;
        if delay.is_zero() {
            self.want_run(slot, priority);
            return;
        }
        let held = &mut self.slots[slot];
        held.alarm_priority = match held.has_alarm() {
            true => held.alarm_priority.max(priority),
            false => priority,
        };
        if self
            .alarms
            .set(&mut self.slots, slot, self.now.after(delay))
            == Set::First
        {
            self.wake.timekeeper = Needed::Yes;
        }
    }

    fn limited_delay(&mut self, slot: u32) -> Duration {
        let held = &mut self.slots[slot];
        let earlier = held.requeues;
        held.requeues = earlier.saturating_add(1);
        let key = held.key.as_ref().expect("a slot in use has a key");
        let now = self.now.since_epoch();
        self.limiter.delay(&Retry { key, earlier, now })
    }

    /// Makes sure that the key in this slot runs, now or as soon as its present run is done.
    fn want_run(&mut self, slot: u32, priority: Priority) {
        if !self.would_change(slot, priority) {
            return;
        }
        let held = &mut self.slots[slot];
        let phase = held.phase;
        match phase {
            Phase::Idle | Phase::Running { .. } => {
                self.adds += 1;
                held.added = self.now;
            }
            Phase::Ready { .. } | Phase::RunningAgain { .. } => self.lanes.lighten(held.priority),
        }
        held.priority = priority;
        self.lanes.deepen(priority);
        match phase {
            Phase::Idle => self.make_ready(slot),
            Phase::Ready { .. } => {
                let ticket = self.lanes.push(priority, slot);
                held.phase = Phase::Ready { ticket };
            }
            Phase::Running { index } => held.phase = Phase::RunningAgain { index },
            Phase::RunningAgain { .. } => {}
        }
    }

    fn make_ready(&mut self, slot: u32) {
        let held = &mut self.slots[slot];
        let ticket = self.lanes.push(held.priority, slot);
        held.phase = Phase::Ready { ticket };
        self.ready += 1;
        self.wake.workers += 1;
    }

    /// Moves the time on if anything depends on it, and says what it was moved to.
    fn advance_if_it_matters(&mut self, now: impl FnOnce() -> Moment) -> Option<Moment> {
        let matters = self.durations == Durations::Measured || self.alarms.len() > 0;
        matters.then(|| self.advance_to(now()))
    }

    fn advance_to(&mut self, now: Moment) -> Moment {
        self.advance(now);
        now
    }

    /// Moves the time on: delayed keys that are due become ready, in the order in which they are due.
    pub(crate) fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        for _ in 0..RINGS_PER_CALL {
            let Some(slot) = self.alarms.ring(&mut self.slots, self.now) else {
                return;
            };
            let priority = self.slots[slot].alarm_priority;
            self.want_run(slot, priority);
        }
    }

    /// The key whose turn it is.
    pub(crate) fn get(&mut self, now: impl FnOnce() -> Moment) -> Next<K, N> {
        self.advance_if_it_matters(now);
        match self.start_next() {
            Some(run) => Next::Run(run),
            None if self.life == Life::Open => Next::Empty,
            None => Next::ShutDown,
        }
    }

    fn start_next(&mut self) -> Option<Run<K, N>> {
        let slots = &self.slots;
        let valid = |entry: Entry| {
            let ticket = entry.ticket();
            slots[entry.slot].phase == Phase::Ready { ticket }
        };
        let entry = self.lanes.pop(valid)?;
        self.ready -= 1;
        Some(self.start(entry))
    }

    fn start(&mut self, entry: Entry) -> Run<K, N> {
        let (slot, started) = (entry.slot, self.now);
        // Slot numbers are `u32`, and no slot runs twice.
        let index = self.running.len() as u32;
        self.running.push(Running { slot, started });
        let held = &mut self.slots[slot];
        held.phase = Phase::Running { index };
        if self.durations == Durations::Measured {
            let waited = started.nanoseconds_since(held.added);
            self.queue_duration.observe(waited);
        }
        self.lanes.lighten(held.priority);
        Run {
            entry,
            key: held.key.clone().expect("a slot in use has a key"),
            note: std::mem::take(&mut held.note),
            priority: held.priority,
            requeues: held.requeues,
            started,
        }
    }

    /// How many rate-limited adds a key had since it was last forgotten.
    pub(crate) fn requeues(&self, key: &K, hash: u32) -> u32 {
        let slot = self.slots.find(key, hash);
        slot.map_or(0, |slot| self.slots[slot].requeues)
    }

    /// How many keys are ready. Those that are due but have not been moved yet count from the next call on.
    pub(crate) fn len(&self) -> usize {
        self.ready
    }

    /// When the next delayed key is due.
    pub(crate) fn next_due(&mut self) -> Option<Moment> {
        self.alarms.next_due(&self.slots)
    }

    pub(crate) fn life(&self) -> Life {
        self.life
    }

    /// Takes no more keys and drops those that are not due yet; a second call may change how the end is waited for.
    pub(crate) fn shut_down(&mut self, life: Life, now: Moment) {
        self.advance(now);
        while self.next_due().is_some_and(|due| due <= self.now) {
            self.advance(now);
        }
        self.life = life;
        self.wake.everybody = Needed::Yes;
        for slot in self.alarms.clear(&mut self.slots) {
            self.slots.retire(slot);
        }
        self.free_retired();
    }

    /// The latest time that anybody told.
    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Whether nothing is ready and nothing runs.
    pub(crate) fn is_drained(&self) -> bool {
        self.ready == 0 && self.running.is_empty()
    }

    /// Who must look again because of the calls since the last time this was asked.
    pub(crate) fn take_wake(&mut self) -> Wake {
        let mut wake = std::mem::take(&mut self.wake);
        wake.workers = wake.workers.min(self.ready);
        wake
    }

    pub(crate) fn stats(&mut self, name: &str, now: Moment) -> Stats {
        self.advance(now);
        self.free_retired();
        let spent = |run: &Running| match self.durations {
            Durations::Measured => self.now.since(run.started),
            Durations::Unknown => Duration::ZERO,
        };
        let mut by_priority = Vec::new();
        if self.lanes.policy() != PriorityPolicy::Ignore {
            by_priority.extend(self.lanes.depths());
            if by_priority.is_empty() {
                by_priority.push((Priority::NORMAL, 0));
            }
        }
        Stats {
            name: name.to_owned(),
            depth: self.lanes.depths().map(|(_, depth)| depth).sum(),
            depth_by_priority: by_priority,
            running: self.running.len() - self.along,
            waiting: self.alarms.len(),
            known: self.slots.len(),
            adds: self.adds,
            retries: self.retries,
            queue_duration: self.queue_duration.clone(),
            work_duration: self.work_duration.clone(),
            unfinished_work: self.running.iter().map(spent).sum(),
            longest_running: self.running.iter().map(spent).max().unwrap_or_default(),
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
