//! What the queue remembers of one key.

use crate::alarms::Due;
use crate::lanes::Ticket;
use crate::moment::Moment;
use crate::priority::Priority;

/// What the queue remembers of one key. It is small, because with many keys the queue is as fast as the memory is.
#[derive(Debug, Default)]
pub(super) struct Slot<N> {
    pub(super) phase: Phase,
    /// The note for the next run.
    pub(super) note: N,
    /// What delayed and failing keys have besides. Most keys are neither.
    retry: Option<Box<Retry<N>>>,
}

/// Where a key is on its way through the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// No run is asked for.
    #[default]
    Idle,
    /// It waits for a worker; the entry with this ticket is its place in the lane of this priority.
    Ready {
        ticket: Ticket,
        priority: Priority,
        added: Moment,
    },
    /// A worker has it.
    Running { started: Moment },
    /// A worker has it, and another run of this priority is asked for.
    RunningAgain {
        started: Moment,
        priority: Priority,
        added: Moment,
    },
}

/// A run in the future, and how many there were already.
#[derive(Debug, Default)]
struct Retry<N> {
    alarm: Option<Alarm<N>>,
    /// Rate-limited adds since the key was last forgotten.
    requeues: u32,
}

/// A run that falls due, whatever the phase is.
#[derive(Debug)]
pub(super) struct Alarm<N> {
    pub(super) due: Due,
    pub(super) priority: Priority,
    pub(super) note: N,
}

impl<N: Default> Slot<N> {
    /// Whether nothing would be lost without this slot.
    pub(super) fn is_forgettable(&self) -> bool {
        self.phase == Phase::Idle && self.retry.is_none()
    }

    #[cfg(test)]
    pub(super) fn has_alarm(&self) -> bool {
        let retry = self.retry.as_ref();
        retry.is_some_and(|retry| retry.alarm.is_some())
    }

    pub(super) fn set_alarm(&mut self, alarm: Alarm<N>) {
        self.retry.get_or_insert_default().alarm = Some(alarm);
    }

    pub(super) fn take_alarm(&mut self) -> Option<Alarm<N>> {
        let alarm = self.retry.as_mut()?.alarm.take();
        self.tidy();
        alarm
    }

    /// Rate-limited adds since the key was last forgotten.
    pub(super) fn requeues(&self) -> u32 {
        self.retry.as_ref().map_or(0, |retry| retry.requeues)
    }

    /// Counts a rate-limited add, and returns how many there were before it.
    pub(super) fn count_requeue(&mut self) -> u32 {
        let retry = self.retry.get_or_insert_default();
        let earlier = retry.requeues;
        retry.requeues = earlier.saturating_add(1);
        earlier
    }

    /// Starts the count of requeues again at zero.
    pub(super) fn forget_requeues(&mut self) {
        if let Some(retry) = &mut self.retry {
            retry.requeues = 0;
            self.tidy();
        }
    }

    /// Keeps no retry that says nothing.
    fn tidy(&mut self) {
        let is_empty = |retry: &mut Box<Retry<N>>| retry.alarm.is_none() && retry.requeues == 0;
        self.retry.take_if(is_empty);
    }
}
