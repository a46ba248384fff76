//! Wakes everybody who waits for a change, once per wait.
//!
//! A slab of wakers instead of `tokio::sync::Notify`: a cursor is polled, not awaited, and a pinned `Notified` per
//! cursor would have to be rebuilt after each event. Whoever is woken registers again only when it has read
//! everything, so a burst of writes wakes each reader once.

use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;

/// Those who wait for one thing.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Counts the wake-ups. Slots of earlier rounds mean nothing.
    round: u64,
    slots: Vec<Option<Waker>>,
    /// The empty ones among `slots`.
    free: Vec<usize>,
}

/// One place among those who wait, given up when dropped.
#[derive(Debug)]
pub(super) struct Registration {
    wakers: Arc<Wakers>,
    slot: Option<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    round: u64,
    index: usize,
}

impl Wakers {
    /// Wakes all who have registered.
    pub(super) fn wake_all(&self) {
        let slots = {
            let mut waiting = self.waiting.lock();
            if waiting.slots.is_empty() {
                return;
            }
            waiting.round += 1;
            waiting.free.clear();
            std::mem::take(&mut waiting.slots)
        };
        slots.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Registration {
    pub(super) fn new(wakers: Arc<Wakers>) -> Self {
        Self { wakers, slot: None }
    }

    /// Asks to be woken at the next change. To miss none, call it while the change cannot happen.
    pub(super) fn register(&mut self, waker: &Waker) {
        let mut waiting = self.wakers.waiting.lock();
        let index = match self.slot {
            Some(slot) if slot.round == waiting.round => slot.index,
            _ => waiting.free.pop().unwrap_or_else(|| {
                waiting.slots.push(None);
                waiting.slots.len() - 1
            }),
        };
        let round = waiting.round;
        self.slot = Some(Slot { round, index });
        let slot = &mut waiting.slots[index];
        if slot.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        let old = slot.replace(waker.clone());
        // A waker is somebody else's code, even when it is dropped: not under the lock.
        drop(waiting);
        drop(old);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(slot) = self.slot else { return };
        let mut waiting = self.wakers.waiting.lock();
        if slot.round == waiting.round {
            waiting.free.push(slot.index);
            let waker = waiting.slots[slot.index].take();
            drop(waiting);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_registration_is_woken_once_and_a_dropped_one_never() {
        let wakers = Arc::<Wakers>::default();
        let count = Arc::<Count>::default();
        let waker = Waker::from(count.clone());
        let mut stays = Registration::new(wakers.clone());
        stays.register(&waker);
        stays.register(&waker);
        let mut goes = Registration::new(wakers.clone());
        goes.register(&waker);
        drop(goes);
        wakers.wake_all();
        wakers.wake_all();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn places_of_those_who_left_are_used_again() {
        let wakers = Arc::<Wakers>::default();
        for _ in 0..100 {
            Registration::new(wakers.clone()).register(Waker::noop());
        }
        assert_eq!(wakers.waiting.lock().slots.len(), 1);
    }
}
