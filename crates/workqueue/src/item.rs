//! A key in the hands of a worker.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use crate::hand::Hand;
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
    hand: Hand<K, N>,
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
            hand: Hand::empty(run.started),
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

    /// Does this work on the key. If it has to wait, other keys that this worker has go back to the queue.
    pub async fn during<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        let polled = poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending() {
                self.let_go();
            }
            polled
        });
        polled.await
    }

    /// The run is over, in this way; gives the key whose turn it is, if one is ready. A busy worker needs half the locks
    /// with this.
    ///
    /// A worker that measures with [`stop_watch`](Item::stop_watch) needs fewer still: while its runs take next to no time
    /// and many keys are ready, it takes several of them under one lock, and reports them under another. It has them for 50
    /// microseconds at most, if it does what may wait [`during`](Item::during) a run. A key that is added between being taken
    /// and being worked on runs twice.
    pub fn finish_then_next(mut self, how: Finish) -> Option<Self> {
        let mut end = std::mem::take(&mut self.end);
        end.finish = how;
        self.hand.lay_down(self.run.take()?, end);
        let drawn = self.hand.draw();
        self.run = drawn.or_else(|| self.queue.exchange(&mut self.hand));
        self.run.is_some().then_some(self)
    }

    /// Whether the next key is at hand already, without asking the queue.
    pub fn has_next(&self) -> bool {
        self.hand.has_ahead()
    }

    /// Tells the queue of all runs that are over, and puts back the keys that others can work on.
    fn let_go(&mut self) {
        self.hand.slow_down();
        if !self.hand.is_empty() {
            self.queue.settle(&mut self.hand);
        }
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
        if !self.hand.is_empty() {
            self.queue.settle(&mut self.hand);
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
