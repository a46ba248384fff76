//! What the queue remembers of one key.

use crate::alarms::Due;
use crate::lanes::Ticket;
use crate::moment::Moment;
use crate::priority::Priority;

/// What the queue remembers of one key.
#[derive(Debug, Default)]
pub(super) struct Slot<N> {
    pub(super) phase: Phase,
    /// The note for the next run.
    pub(super) note: N,
    /// How urgent the next run is, or the present one if no other was asked for.
    pub(super) priority: Priority,
    /// When the next run was asked for.
    pub(super) added: Moment,
    /// When a run falls due, whatever the phase is.
    pub(super) alarm: Option<Due>,
    /// How urgent that run is.
    pub(super) alarm_priority: Priority,
    /// The note for that run; empty without an alarm.
    pub(super) alarm_note: N,
    /// Rate-limited adds since the key was last forgotten.
    pub(super) requeues: u32,
}

/// Where a key is on its way through the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// No run is asked for.
    #[default]
    Idle,
    /// It waits for a worker; the entry with this ticket is its place in a lane.
    Ready { ticket: Ticket },
    /// A worker has it.
    Running { started: Moment },
    /// A worker has it, and another run is asked for.
    RunningAgain { started: Moment },
}

impl<N> Slot<N> {
    /// Whether nothing would be lost without this slot.
    pub(super) fn is_forgettable(&self) -> bool {
        self.phase == Phase::Idle && self.alarm.is_none() && self.requeues == 0
    }

    /// Counts a rate-limited add, and returns how many there were before it.
    pub(super) fn count_requeue(&mut self) -> u32 {
        let earlier = self.requeues;
        self.requeues = earlier.saturating_add(1);
        earlier
    }
}
