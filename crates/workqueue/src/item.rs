//! A key in the hands of a worker.

use std::fmt;
use std::time::Duration;

use crate::machine::{End, Finish, Run};
use crate::moment::Moment;
use crate::note::Note;
use crate::priority::Priority;
use crate::queue::{Queue, Request};

/// A key that one worker has and no other can get.
///
/// Dropping it says that the run is over, whatever way it ended: a worker that panics or is cancelled does not keep
/// the key. To say how it ended, use [`done`](Item::done), [`retry`](Item::retry) or
/// [`run_again_after`](Item::run_again_after).
#[must_use = "dropping an item says that its run is over"]
pub struct Item<K: Request, N: Note = ()> {
    queue: Queue<K, N>,
    /// None once the key has been handed back.
    run: Option<Run<K, N>>,
    end: End<N>,
    /// When the run ended, if [`stop_watch`](Item::stop_watch) was called.
    ended: Option<Moment>,
}

impl<K: Request, N: Note> Item<K, N> {
    pub(crate) fn new(queue: Queue<K, N>, run: Run<K, N>) -> Self {
        Self {
            queue,
            run: Some(run),
            end: Finish::Ended.into(),
            ended: None,
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

    /// How long the run has taken: from now on it counts as ended, and is to be handed back. Zero if the queue has no
    /// name and therefore does not measure.
    pub fn stop_watch(&mut self) -> Duration {
        let Some(now) = self.queue.measured_now() else {
            return Duration::ZERO;
        };
        self.ended = Some(now);
        now.since(self.run().started)
    }

    /// Leaves a note for the run that [`retry`](Item::retry) or [`run_again_after`](Item::run_again_after) asks for.
    pub fn leave(&mut self, note: N) {
        self.end.left.merge(note);
    }

    /// Sets the priority of the run that [`retry`](Item::retry) or [`run_again_after`](Item::run_again_after) asks
    /// for. By default it is as urgent as this one.
    pub fn requeue_with(&mut self, priority: Priority) {
        self.end.priority = Some(priority);
    }

    /// It worked, or nothing more can be done: the count of requeues starts again at zero.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// queue.try_get().expect("a key is ready").done();
    /// assert_eq!(queue.stats().running, 0);
    /// ```
    pub fn done(self) {
        self.finish(Finish::Succeeded);
    }

    /// It failed: run it again after the limiter's delay.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// queue.try_get().expect("a key is ready").retry();
    /// assert_eq!(queue.requeues(&"a"), 1, "it waits for the limiter's delay");
    /// ```
    pub fn retry(self) {
        self.finish(Finish::Failed);
    }

    /// It worked, and is to run again after a while: the count of requeues starts again at zero.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// queue.try_get().expect("a key is ready").run_again_after(Duration::from_secs(60));
    /// assert_eq!((queue.stats().waiting, queue.requeues(&"a")), (1, 0));
    /// ```
    pub fn run_again_after(self, delay: Duration) {
        self.finish(Finish::Again(delay));
    }

    /// The run is over, in this way.
    pub fn finish(mut self, how: Finish) {
        self.end.finish = how;
    }

    /// The run is over, in this way; returns the key whose turn it is, if one is ready. A busy worker needs half the
    /// locks with this.
    pub fn finish_then_next(mut self, how: Finish) -> Option<Self> {
        let mut end = std::mem::replace(&mut self.end, Finish::Ended.into());
        end.finish = how;
        let run = self.run.take()?;
        self.run = self.queue.exchange(&run, end, self.ended.take());
        self.run.is_some().then_some(self)
    }

    fn run(&self) -> &Run<K, N> {
        self.run
            .as_ref()
            .expect("an item that can be used has its run")
    }
}

impl<K: Request, N: Note> Drop for Item<K, N> {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            let end = std::mem::replace(&mut self.end, Finish::Ended.into());
            self.queue.done(&run, end, self.ended);
        }
    }
}

impl<K: Request + fmt::Debug, N: Note> fmt::Debug for Item<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", self.key())
            .field("priority", &self.priority())
            .finish_non_exhaustive()
    }
}
