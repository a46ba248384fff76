//! Wakes everybody who waits for a change, once per wait.
//!
//! A slab of wakers instead of `tokio::sync::Notify`: a cursor is polled, not awaited, and a pinned `Notified` per
//! cursor would have to be rebuilt after each event. Whoever is woken registers again only when it has read
//! everything, so a burst of writes wakes each reader once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use tokio::runtime::Handle;

/// More than this many are a crowd.
const CROWD: usize = 256;
/// How many of a crowd are woken at once.
const BATCH: usize = 64;

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
    /// Those who are woken one batch after another.
    crowd: VecDeque<Waker>,
    /// Whether somebody is at it.
    is_paced: bool,
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
    /// Wakes all who have registered: a few at once, a crowd one [`BATCH`] after another. A write that made thousands of
    /// readers ready to run at once would have every request that comes next stand in line behind all of them.
    pub(super) fn wake_all(self: &Arc<Self>) {
        let mut waiting = self.waiting.lock();
        if waiting.slots.is_empty() {
            return;
        }
        waiting.round += 1;
        waiting.free.clear();
        let slots = std::mem::take(&mut waiting.slots);
        let is_crowd = waiting.is_paced || slots.len() > CROWD;
        let woken = slots.into_iter().flatten();
        let runtime = is_crowd.then(Handle::try_current);
        match runtime.and_then(Result::ok) {
            Some(runtime) => {
                waiting.crowd.extend(woken);
                if !std::mem::replace(&mut waiting.is_paced, true) {
                    let pace = Pace(Some(self.clone()));
                    drop(waiting);
                    runtime.spawn(pace.run());
                }
            }
            None => {
                drop(waiting);
                woken.for_each(Waker::wake);
            }
        }
    }

    /// The next of a crowd; none when that was all.
    fn next_batch(&self) -> Option<Vec<Waker>> {
        let mut waiting = self.waiting.lock();
        let size = waiting.crowd.len().min(BATCH);
        let batch: Vec<Waker> = waiting.crowd.drain(..size).collect();
        waiting.is_paced = !batch.is_empty();
        waiting.is_paced.then_some(batch)
    }
}

/// Wakes a crowd. Dropping it wakes whoever is left.
struct Pace(Option<Arc<Wakers>>);

impl Pace {
    async fn run(mut self) {
        while self.step().is_some() {
            tokio::task::yield_now().await;
        }
    }

    /// Wakes a batch; none when all have been woken, and then this has nothing to do with the crowds that come.
    fn step(&mut self) -> Option<()> {
        match self.0.as_ref()?.next_batch() {
            Some(batch) => batch.into_iter().for_each(Waker::wake),
            None => self.0 = None,
        }
        self.0.is_some().then_some(())
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        while self.step().is_some() {}
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

    fn crowd(wakers: &Arc<Wakers>, count: usize, waker: &Waker) -> Vec<Registration> {
        let register = |_| {
            let mut registration = Registration::new(wakers.clone());
            registration.register(waker);
            registration
        };
        (0..count).map(register).collect()
    }

    #[test]
    fn without_a_runtime_everybody_is_woken_at_once() {
        let (wakers, count) = (Arc::<Wakers>::default(), Arc::<Count>::default());
        let _crowd = crowd(&wakers, CROWD + 1, &Waker::from(count.clone()));
        wakers.wake_all();
        assert_eq!(count.0.load(Ordering::Relaxed), CROWD + 1);
    }

    #[tokio::test]
    async fn a_crowd_is_woken_in_batches_between_which_others_run() {
        let (wakers, count) = (Arc::<Wakers>::default(), Arc::<Count>::default());
        let _crowd = crowd(&wakers, CROWD + BATCH, &Waker::from(count.clone()));
        wakers.wake_all();
        let mut seen = Vec::new();
        for _ in 0..10 {
            tokio::task::yield_now().await;
            seen.push(count.0.load(Ordering::Relaxed));
        }
        seen.dedup();
        assert_eq!(seen, [1, 2, 3, 4, 5].map(|n| n * BATCH));
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
