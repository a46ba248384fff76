//! Which key runs next, and when: the lanes of ready keys and the alarms of delayed ones.

use std::time::Duration;

use super::slot::{Phase, Slot};
use super::terms::Wake;
use crate::alarms::Alarms;
use crate::lanes::Lanes;
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::{Priority, PriorityPolicy};

/// Everything about the order of keys, except for what their slots remember.
pub(super) struct Schedule<K> {
    /// Every slot whose phase is `Ready` has exactly one valid entry here, and no other slot has one.
    pub(super) lanes: Lanes<K>,
    /// Every slot with an alarm has exactly one entry here.
    pub(super) alarms: Alarms<K>,
    /// How many slots are `Ready`.
    pub(super) ready: usize,
    /// The latest time seen: time does not go back, even if callers raced for the lock.
    pub(super) now: Moment,
    pub(super) wake: Wake,
    pub(super) adds: u64,
    pub(super) retries: u64,
}

impl<K: Clone> Schedule<K> {
    pub(super) fn new(policy: PriorityPolicy) -> Self {
        Self {
            lanes: Lanes::new(policy),
            alarms: Alarms::new(),
            ready: 0,
            now: Moment::default(),
            wake: Wake::default(),
            adds: 0,
            retries: 0,
        }
    }

    /// Makes sure that the key runs, now or as soon as its present run is done.
    pub(super) fn want_run<N>(&mut self, key: K, slot: &mut Slot<N>, priority: Priority) {
        match slot.phase {
            Phase::Idle | Phase::Running { .. } => {
                self.adds += 1;
                slot.added = self.now;
            }
            Phase::Ready { .. } | Phase::RunningAgain { .. } if slot.priority >= priority => return,
            Phase::Ready { .. } => {
                self.ready -= 1;
                self.lanes.lighten(slot.priority);
                self.lanes.mark_stale(slot.priority);
            }
            Phase::RunningAgain { .. } => self.lanes.lighten(slot.priority),
        }
        slot.priority = priority;
        self.lanes.deepen(priority);
        match slot.phase {
            Phase::Idle | Phase::Ready { .. } => self.line_up(key, slot),
            Phase::Running { started } | Phase::RunningAgain { started } => {
                slot.phase = Phase::RunningAgain { started };
            }
        }
    }

    /// Puts the key at the tail of the lane of its priority.
    pub(super) fn line_up<N>(&mut self, key: K, slot: &mut Slot<N>) {
        let ticket = self.lanes.push(slot.priority, key);
        slot.phase = Phase::Ready { ticket };
        self.ready += 1;
        self.wake.workers += 1;
    }

    /// The key is to run once more, after this delay. The note waits with it: an earlier run has other reasons.
    pub(super) fn retry<N: Note>(
        &mut self,
        key: K,
        slot: &mut Slot<N>,
        delay: Duration,
        (priority, note): (Priority, N),
    ) {
        self.retries += 1;
        if delay.is_zero() {
            self.want_run(key, slot, priority);
            slot.note.merge(note);
            return;
        }
        slot.alarm_priority = match slot.alarm {
            Some(_) => slot.alarm_priority.max(priority),
            None => priority,
        };
        let before = self.alarms.next_due();
        let at = self.now.after(delay);
        let due = self.alarms.set(key, slot.alarm, at);
        if slot.alarm != Some(due) {
            slot.alarm_note = note;
        }
        slot.alarm = Some(due);
        self.wake.timer |= self.alarms.next_due() != before;
    }
}
