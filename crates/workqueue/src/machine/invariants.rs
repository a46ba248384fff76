//! What tests look at inside the machine.

use super::*;

impl<K: Eq + Clone + 'static, N: Note> Machine<K, N> {
    pub(super) fn alarm_entries(&self) -> usize {
        self.alarms.entries()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.all().len()
    }

    /// The invariants that the fields promise each other.
    pub(super) fn check_invariants(&self) {
        let count = |wanted: fn(&Phase) -> bool| {
            let slots = self.slots.all().iter();
            slots.filter(|slot| wanted(&slot.phase)).count()
        };
        let ready = count(|phase| matches!(phase, Phase::Ready { .. }));
        let idle = count(|phase| matches!(phase, Phase::Idle));
        assert_eq!(ready, self.ready);
        assert_eq!(ready + idle + self.running.len(), self.slot_count());
        for (at, run) in self.running.iter().enumerate() {
            match self.slots[run.slot].phase {
                Phase::Running { index } | Phase::RunningAgain { index } => {
                    assert_eq!(index as usize, at);
                }
                phase => panic!("{phase:?} is listed as running"),
            }
        }
        let entries = self.lanes.entries();
        let valid = entries.filter(|(priority, entry)| {
            let slot = &self.slots[entry.slot];
            let ticket = entry.ticket();
            let current = slot.phase == Phase::Ready { ticket };
            assert!(!current || slot.priority == *priority);
            current
        });
        assert_eq!(valid.count(), self.ready);
        for slot in self.slots.all().iter().filter(|slot| slot.key.is_none()) {
            assert!(slot.phase == Phase::Idle && !slot.has_alarm() && slot.requeues == 0);
        }
    }
}
