//! Which key runs next, and when: the lanes of ready keys and the alarms of delayed ones.

use std::time::Duration;

use super::slot::{Alarm, Phase, Slot};
use super::slots::Place;
use super::terms::Wake;
use crate::alarms::Alarms;
use crate::lanes::Lanes;
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::{Priority, PriorityPolicy};

/// Everything about the order of keys, except for what their slots remember.
pub(super) struct Schedule {
    /// Every slot whose phase is `Ready` has exactly one valid entry here, and no other slot has one.
    pub(super) lanes: Lanes<Place>,
    /// Every slot with an alarm has exactly one entry here.
    pub(super) alarms: Alarms<Place>,
    /// How many slots are `Ready`.
    pub(super) ready: usize,
    /// The latest time seen: time does not go back, even if callers raced for the lock.
    pub(super) now: Moment,
    pub(super) wake: Wake,
    pub(super) adds: u64,
    pub(super) retries: u64,
}

impl Schedule {
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
    pub(super) fn want_run<N>(&mut self, place: Place, slot: &mut Slot<N>, priority: Priority) {
        match slot.phase {
            Phase::Idle => {
                self.adds += 1;
                self.lanes.deepen(priority);
                self.line_up(place, slot, (priority, self.now));
            }
            Phase::Running { started } => {
                self.adds += 1;
                self.lanes.deepen(priority);
                let added = self.now;
                slot.phase = Phase::RunningAgain {
                    started,
                    priority,
                    added,
                };
            }
            Phase::Ready {
                priority: before, ..
            }
            | Phase::RunningAgain {
                priority: before, ..
            } if before >= priority => {}
            Phase::Ready {
                priority: before,
                added,
                ..
            } => {
                self.ready -= 1;
                self.lanes.mark_stale(before);
                self.lanes.lighten(before);
                self.lanes.deepen(priority);
                self.line_up(place, slot, (priority, added));
            }
            Phase::RunningAgain {
                started,
                priority: before,
                added,
            } => {
                self.lanes.lighten(before);
                self.lanes.deepen(priority);
                slot.phase = Phase::RunningAgain {
                    started,
                    priority,
                    added,
                };
            }
        }
    }

    /// Puts the key at the tail of the lane of this priority.
    pub(super) fn line_up<N>(
        &mut self,
        place: Place,
        slot: &mut Slot<N>,
        (priority, added): (Priority, Moment),
    ) {
        let ticket = self.lanes.push(priority, place);
        slot.phase = Phase::Ready {
            ticket,
            priority,
            added,
        };
        self.ready += 1;
        self.wake.workers += 1;
    }

    /// The key is to run once more, after this delay. The note waits with it: an earlier run has other reasons.
    pub(super) fn retry<N: Note>(
        &mut self,
        place: Place,
        slot: &mut Slot<N>,
        delay: Duration,
        (priority, note): (Priority, N),
    ) {
        self.retries += 1;
        if delay.is_zero() {
            self.want_run(place, slot, priority);
            slot.note.merge(note);
            return;
        }
        let before = self.alarms.next_due();
        let at = self.now.after(delay);
        let earlier = slot.take_alarm();
        let due = self
            .alarms
            .set(place, earlier.as_ref().map(|alarm| alarm.due), at);
        slot.set_alarm(match earlier {
            Some(earlier) => Alarm {
                due,
                priority: earlier.priority.max(priority),
                note: if earlier.due == due {
                    earlier.note
                } else {
                    note
                },
            },
            None => Alarm {
                due,
                priority,
                note,
            },
        });
        self.wake.timer |= self.alarms.next_due() != before;
    }
}
