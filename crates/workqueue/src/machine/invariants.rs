//! What tests look at inside the machine.

use super::*;

impl<K: Request, N: Note> Machine<K, N> {
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The invariants that the fields promise each other.
    pub(super) fn check_invariants(&self) {
        let count = |wanted: fn(&Slot<N>) -> bool| {
            let slots = self.slots.iter();
            slots.filter(|slot| wanted(slot)).count()
        };
        let ready = count(|slot| matches!(slot.phase, Phase::Ready { .. }));
        let idle = count(|slot| slot.phase == Phase::Idle);
        assert_eq!(ready, self.schedule.ready);
        assert_eq!(ready + idle + self.running, self.slots.len());
        let alarms = count(|slot| slot.has_alarm());
        assert_eq!(alarms, self.schedule.alarms.len());
        assert_eq!(count(Slot::is_forgettable), 0);
        let valid = self.schedule.lanes.entries().filter(|entry| {
            let (priority, ticket, place) = *entry;
            match self.slots.phase(*place) {
                Some(Phase::Ready {
                    ticket: current,
                    priority: wanted,
                    ..
                }) if current == ticket => {
                    assert_eq!(wanted, priority);
                    true
                }
                _ => false,
            }
        });
        assert_eq!(valid.count(), ready);
    }
}
