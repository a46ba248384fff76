//! Workers that sleep until there is a key, and the one among them that minds the alarms.
//!
//! Each sleeper is in a list, and whoever wakes it takes it out: one that is on its way is not woken again, and those who add
//! need not care for it any more.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::{Key, Post, Queue};
use crate::machine::Next;
use crate::note::Note;

/// Those who need to be woken, in the order in which they fell asleep.
#[derive(Default)]
pub(super) struct Sleepers {
    waiting: BTreeMap<u64, Option<Waker>>,
    next: u64,
}

impl Sleepers {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes out so many, to be woken without the lock.
    pub(super) fn take(&mut self, count: usize) -> Vec<Waker> {
        let taken = (0..count).map_while(|_| self.waiting.pop_first());
        // One that has not asked to be woken yet sees that it is no longer in the list.
        taken.filter_map(|(_, waker)| waker).collect()
    }

    pub(super) fn take_all(&mut self) -> Vec<Waker> {
        self.take(self.waiting.len())
    }

    fn enter(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, None);
        number
    }
}

/// A worker that sleeps, or is about to.
pub(super) struct Sleeper<'a, K: Key, N: Note> {
    queue: &'a Queue<K, N>,
    /// Its place in the list.
    number: u64,
    /// Taken if this is the sleeper that minds the alarms.
    post: Post,
}

impl<K: Key, N: Note> Sleeper<'_, K, N> {
    /// Whether this one minds the alarms.
    pub(super) fn is_timekeeper(&self) -> bool {
        self.post == Post::Taken
    }

    /// Waits until somebody has taken it out of the list.
    pub(super) async fn woken(&self) {
        let shared = &self.queue.shared;
        let woken = poll_fn(|context| {
            let mut state = shared.lock();
            let Some(waker) = state.sleepers.waiting.get_mut(&self.number) else {
                return Poll::Ready(());
            };
            match waker {
                Some(waker) => waker.clone_from(context.waker()),
                None => *waker = Some(context.waker().clone()),
            }
            Poll::Pending
        });
        woken.await
    }

    /// Waits until an alarm is due. If another worker took the last one meanwhile, this minds those to come.
    pub(super) async fn wait_for_alarm(&self) {
        let shared = &self.queue.shared;
        loop {
            // An earlier alarm may be set at any time; the notification of it is kept until somebody asks.
            let earlier = shared.timekeeper.notified();
            let next_due = shared.lock().machine.next_due();
            match next_due {
                Some(due) if due <= self.queue.now() => return,
                Some(due) => tokio::select! { biased;
                    () = earlier => {}
                    () = shared.clock.sleep_until(due.since_epoch()) => {}
                },
                None => earlier.await,
            }
        }
    }
}

impl<K: Key, N: Note> Drop for Sleeper<'_, K, N> {
    /// Awake: with a key, or cancelled. If it was woken for a key that is still there, another one is woken for it; and
    /// somebody else minds the alarms from now on.
    fn drop(&mut self) {
        let shared = &self.queue.shared;
        let mut state = shared.lock();
        let was_woken = state.sleepers.waiting.remove(&self.number).is_none();
        let passed_on = was_woken && state.machine.len() > 0;
        let vacated = self.post == Post::Taken;
        if vacated {
            state.timekeeper = Post::Vacant;
        }
        let successor_needed = vacated && state.machine.next_due().is_some();
        let heir = match passed_on || successor_needed {
            true => state.sleepers.take(1),
            false => Vec::new(),
        };
        drop(state);
        heir.iter().for_each(Waker::wake_by_ref);
    }
}

impl<K: Key, N: Note> Queue<K, N> {
    /// Looks for a key. If there is none, the caller is in the list of sleepers before anybody can add one, and minds the
    /// alarms if there are some that nobody minds.
    pub(super) fn next_or_sleep<'a>(
        &'a self,
        sleeper: &mut Option<Sleeper<'a, K, N>>,
    ) -> Next<K, N> {
        let now = self.clock_look();
        let mut state = self.shared.open();
        let next = state.machine.get(now);
        if matches!(next, Next::Empty) {
            let number = match sleeper {
                // It was not woken: an alarm went off, and somebody else was faster.
                Some(sleeper) if state.sleepers.waiting.contains_key(&sleeper.number) => {
                    sleeper.number
                }
                _ => state.sleepers.enter(),
            };
            // Made only where there is none: one that is dropped takes the lock.
            let sleeper = sleeper.get_or_insert_with(|| Sleeper {
                queue: self,
                number,
                post: Post::Vacant,
            });
            sleeper.number = number;
            if state.timekeeper == Post::Vacant && state.machine.next_due().is_some() {
                state.timekeeper = Post::Taken;
                sleeper.post = Post::Taken;
            }
        }
        self.unlock_and_wake(state);
        next
    }
}
