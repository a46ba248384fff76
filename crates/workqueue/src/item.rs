//! A key in the hands of a worker.

use std::fmt;
use std::time::Duration;

use crate::machine::{Finish, Run};
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::Priority;
use crate::queue::{Key, Queue};

/// A key that one worker has and no other can get.
///
/// Dropping it says that the run is over, whatever way it ended: a worker that panics or is cancelled does not keep
/// the key. To say how it ended, use [`done`](Item::done), [`retry`](Item::retry) or
/// [`run_again_after`](Item::run_again_after).
#[must_use = "dropping an item says that its run is over"]
pub struct Item<K: Key, N: Note = ()> {
    queue: Queue<K, N>,
    /// Gone when another item carries on with the queue.
    run: Option<Run<K, N>>,
    end: End<N>,
}

/// What is reported when the item is dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End<N> {
    pub(crate) finish: Finish,
    /// For the run that this one asks for.
    pub(crate) left: N,
    /// When it was, if somebody has looked.
    pub(crate) at: Option<Moment>,
}

impl<N: Note> Default for End<N> {
    fn default() -> Self {
        Self {
            finish: Finish::Ended,
            left: N::default(),
            at: None,
        }
    }
}

impl<K: Key, N: Note> Item<K, N> {
    pub(crate) fn new(queue: Queue<K, N>, run: Run<K, N>) -> Self {
        Self {
            queue,
            run: Some(run),
            end: End::default(),
        }
    }

    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.run().key
    }

    /// What those who added the key left for this run. Only the first call finds it.
    pub fn take_note(&mut self) -> N {
        let run = self.run.as_mut();
        run.map(|run| std::mem::take(&mut run.note))
            .unwrap_or_default()
    }

    /// How urgent this run is.
    pub fn priority(&self) -> Priority {
        self.run().priority
    }

    /// How many retries there were before this run, since the key was last forgotten.
    pub fn requeues(&self) -> u32 {
        self.run().requeues
    }

    /// How long the run has taken: from now on it counts as ended, and is to be handed back. Nothing if the queue has no
    /// name and does not measure.
    pub fn stop_watch(&mut self) -> Duration {
        let Some(now) = self.queue.measured_now() else {
            return Duration::ZERO;
        };
        self.end.at = Some(now);
        now.since(self.run().started)
    }

    /// Leaves a note for the run that [`retry`](Item::retry) or [`run_again_after`](Item::run_again_after) asks for.
    pub fn leave(&mut self, note: N) {
        self.end.left.merge(note);
    }

    /// It worked, or nothing more can be done: the count of requeues starts afresh.
    pub fn done(self) {
        self.finish(Finish::Succeeded);
    }

    /// It failed: run it again after the limiter's delay, as urgently as now.
    pub fn retry(self) {
        self.finish(Finish::Failed);
    }

    /// It worked, and is to run again after a while: the count of requeues starts afresh.
    pub fn run_again_after(self, delay: Duration) {
        self.finish(Finish::Again(delay));
    }

    /// The run is over, in this way.
    pub fn finish(mut self, how: Finish) {
        self.end.finish = how;
    }

    /// The run is over, in this way; gives the key whose turn it is, if one is ready. A busy worker needs half the locks
    /// with this.
    pub fn finish_then_next(mut self, how: Finish) -> Option<Self> {
        let mut end = std::mem::take(&mut self.end);
        end.finish = how;
        let run = self.run.take()?;
        self.run = self.queue.exchange(&run, end);
        self.run.is_some().then_some(self)
    }

    fn run(&self) -> &Run<K, N> {
        self.run
            .as_ref()
            .expect("an item that can be used has its run")
    }
}

impl<K: Key, N: Note> Drop for Item<K, N> {
    fn drop(&mut self) {
        if let Some(run) = &self.run {
            self.queue.done(run, std::mem::take(&mut self.end));
        }
    }
}

impl<K: Key + fmt::Debug, N: Note> fmt::Debug for Item<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", self.key())
            .field("priority", &self.priority())
            .finish_non_exhaustive()
    }
}
