//! Delays: which slot is due when, earliest first, ties in the order of setting.
//!
//! A slot has at most one alarm. Replacing it leaves the old heap entry behind, to be skipped when its time
//! comes; the heap is swept once such entries outnumber the living ones, so it stays proportional to them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::moment::Moment;
use crate::slots::Slots;

/// Dead entries are tolerated up to this many, however few alarms live.
const SLACK: usize = 64;

/// One alarm. Ordered by time, then by the order of setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Alarm {
    pub(crate) due: Moment,
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
}

/// All alarms of one queue.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    heap: BinaryHeap<Reverse<Alarm>>,
    /// Alarms that some slot still holds.
    living: usize,
    next_sequence: u64,
}

/// What became of an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// It is the next one to go off.
    First,
    /// Others go off before it.
    Later,
    /// The slot already had an earlier one, which stays.
    KeptEarlier,
}

impl Alarms {
    /// How many slots wait for their time.
    pub(crate) fn len(&self) -> usize {
        self.living
    }

    /// Sets the alarm of a slot unless it already has an earlier one.
    pub(crate) fn set<K, N>(&mut self, slots: &mut Slots<K, N>, slot: u32, due: Moment) -> Set {
        let held = &mut slots[slot];
        if held.has_alarm() && held.alarm_due <= due {
            return Set::KeptEarlier;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.living += usize::from(!held.has_alarm());
        let alarm = Alarm {
            due,
            sequence,
            slot,
        };
        held.set_alarm(&alarm);
        self.heap.push(Reverse(alarm));
        self.sweep(slots);
        if self.heap.peek() == Some(&Reverse(alarm)) {
            Set::First
        } else {
            Set::Later
        }
    }

    /// When the next alarm goes off.
    pub(crate) fn next_due<K, N>(&mut self, slots: &Slots<K, N>) -> Option<Moment> {
        while let Some(Reverse(alarm)) = self.heap.peek() {
            if slots[alarm.slot].holds(alarm) {
                return Some(alarm.due);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the first alarm that is due, and clears it from its slot.
    pub(crate) fn ring<K, N>(&mut self, slots: &mut Slots<K, N>, now: Moment) -> Option<u32> {
        if self.next_due(slots)? > now {
            return None;
        }
        let Reverse(alarm) = self.heap.pop()?;
        slots[alarm.slot].clear_alarm();
        self.living -= 1;
        Some(alarm.slot)
    }

    /// Forgets every alarm and returns the slots that had one.
    pub(crate) fn clear<K, N>(&mut self, slots: &mut Slots<K, N>) -> Vec<u32> {
        let mut cleared = Vec::with_capacity(self.living);
        for Reverse(alarm) in std::mem::take(&mut self.heap) {
            if slots[alarm.slot].holds(&alarm) {
                slots[alarm.slot].clear_alarm();
                cleared.push(alarm.slot);
            }
        }
        self.living = 0;
        cleared
    }

    /// How many entries there are, dead ones too.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.heap.len()
    }

    /// Drops entries and their memory. Only for when no slot has an alarm.
    pub(crate) fn reset(&mut self) {
        self.heap = BinaryHeap::new();
    }

    fn sweep<K, N>(&mut self, slots: &Slots<K, N>) {
        if self.heap.len() > 2 * self.living + SLACK {
            self.heap
                .retain(|Reverse(alarm)| slots[alarm.slot].holds(alarm));
        }
    }
}
