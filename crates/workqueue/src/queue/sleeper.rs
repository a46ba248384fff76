//! Workers that sleep until there is a key, and the one among them that minds the alarms.

use super::{Key, Post, Queue};
use crate::machine::Next;
use crate::note::Note;

/// A worker that is counted as asleep.
pub(super) struct Sleeper<'a, K: Key, N: Note> {
    queue: &'a Queue<K, N>,
    /// Taken if this is the sleeper that minds the alarms.
    post: Post,
}

impl<K: Key, N: Note> Sleeper<'_, K, N> {
    /// Whether this one minds the alarms.
    pub(super) fn is_timekeeper(&self) -> bool {
        self.post == Post::Taken
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
    /// Awake: with a key, or cancelled. Somebody else minds the alarms from now on.
    fn drop(&mut self) {
        let shared = &self.queue.shared;
        let mut state = shared.lock();
        state.sleepers -= 1;
        if self.post == Post::Vacant {
            return;
        }
        state.timekeeper = Post::Vacant;
        let successor_needed = state.sleepers > 0 && state.machine.next_due().is_some();
        drop(state);
        if successor_needed {
            shared.workers.notify_one();
        }
    }
}

impl<K: Key, N: Note> Queue<K, N> {
    /// Looks for a key. If there is none, the caller is counted as a sleeper before anybody can add one, and minds the
    /// alarms if there are some that nobody minds.
    pub(super) fn next_or_sleep<'a>(
        &'a self,
        sleeper: &mut Option<Sleeper<'a, K, N>>,
    ) -> Next<K, N> {
        let mut state = self.shared.lock();
        let next = state.machine.get(|| self.now());
        if matches!(next, Next::Empty) {
            let sleeper = sleeper.get_or_insert_with(|| {
                state.sleepers += 1;
                Sleeper {
                    queue: self,
                    post: Post::Vacant,
                }
            });
            if state.timekeeper == Post::Vacant && state.machine.next_due().is_some() {
                state.timekeeper = Post::Taken;
                sleeper.post = Post::Taken;
            }
        }
        self.unlock_and_wake(state);
        next
    }
}
