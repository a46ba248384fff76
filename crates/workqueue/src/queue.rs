//! The queue that tasks share: the state machine behind one lock, and the waking of those who wait.
//!
//! A worker that finds no key registers with `ready`, looks once more, and waits. Each key that becomes ready while
//! somebody waits wakes one worker; a worker that was woken and is cancelled passes that on, which is a guarantee of
//! [`Notify`].
//!
//! Delayed keys need somebody who watches the clock. That is whichever waiting worker holds `timer`, a fair mutex of
//! tokio's: when the holder leaves with a key, is cancelled or panics, the mutex goes to the next one that waits. So while
//! anybody waits, somebody sleeps until the next alarm, and there is no background task to start or to stop.

mod adding;

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

use crate::clock::Clock;
use crate::item::Item;
use crate::machine::{End, Finish, Life, Machine, Next, Run};
use crate::moment::Moment;
use crate::note::Note;
use crate::options::Options;
use crate::stats::Stats;

/// What can be queued: the key of an object, or any other description of work. Prefer one that is cheap to clone, such as
/// an `Arc<str>` or a small `Copy` type.
pub trait Request: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Request for K {}

/// A queue of keys to work on. Clones are handles to the same queue.
///
/// ```
/// # use kubewright_workqueue::{Options, Queue};
/// # tokio_test_block_on(async {
/// let queue = Queue::new(Options::new().name("pods"));
/// queue.add("default/web");
/// queue.add("default/web");
/// queue.shut_down();
/// while let Some(item) = queue.get().await {
///     println!("working on {}", item.key());
///     item.done();
/// }
/// # });
/// # fn tokio_test_block_on(work: impl Future) {
/// #     tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work);
/// # }
/// ```
pub struct Queue<K: Request, N: Note = ()> {
    shared: Arc<Shared<K, N>>,
}

struct Shared<K: Request, N: Note> {
    name: String,
    clock: Arc<dyn Clock>,
    /// The standard library's lock spins for about as long as an operation takes before it parks the thread.
    machine: Mutex<Machine<K, N>>,
    /// How many workers wait. Each is counted before its last look at the machine, so none is overlooked.
    waiting: AtomicUsize,
    /// Wakes one worker for each key that becomes ready.
    ready: Notify,
    /// Held by the one waiting worker that sleeps until the next alarm.
    timer: tokio::sync::Mutex<()>,
    /// Wakes that worker when the next alarm goes off at another time than before.
    rescheduled: Notify,
    /// Wakes those who wait for the drain.
    drained: Notify,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Drain {
    /// Every key that was ready has run.
    Finished,
    /// [`Queue::shut_down`] was called meanwhile.
    CutShort,
}

/// Counts a worker as waiting until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    /// The lock of the look that follows makes the count visible to everybody who adds after that look.
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<K: Request> Queue<K> {
    /// A queue with these options.
    pub fn new(options: Options<K>) -> Self {
        Self::with_notes(options)
    }
}

impl<K: Request, N: Note> Queue<K, N> {
    /// A queue that keeps a note with each key, from those who add it to the worker that runs it.
    pub fn with_notes(options: Options<K>) -> Self {
        let shared = Shared {
            name: options.name.clone(),
            clock: options.clock.clone(),
            machine: Mutex::new(Machine::new(options)),
            waiting: AtomicUsize::new(0),
            ready: Notify::new(),
            timer: tokio::sync::Mutex::new(()),
            rescheduled: Notify::new(),
            drained: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Starts the count of requeues of a key again at zero: it succeeded, or was given up.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add_rate_limited("a");
    /// assert_eq!(queue.requeues(&"a"), 1);
    /// queue.forget(&"a");
    /// assert_eq!(queue.requeues(&"a"), 0);
    /// ```
    pub fn forget(&self, key: &K) {
        self.step(None, |machine, _| machine.forget(key));
    }

    /// How many rate-limited adds the key had since it was last forgotten.
    pub fn requeues(&self, key: &K) -> u32 {
        self.shared.lock().requeues(key)
    }

    /// Waits for the key whose turn it is. Nothing comes after shutdown, once what was ready has been handed out.
    ///
    /// Cancel safe: a call that is dropped has not taken a key.
    pub async fn get(&self) -> Option<Item<K, N>> {
        // A worker that never waits for anything else must still let the other tasks of its thread run.
        consume_budget().await;
        match self.next() {
            Next::Run(run) => return Some(Item::new(self.clone(), run)),
            Next::ShutDown => return None,
            Next::Empty => {}
        }
        let _waiting = Waiting::new(&self.shared.waiting);
        loop {
            let mut ready = pin!(self.shared.ready.notified());
            ready.as_mut().enable();
            // What became ready before this look is seen, and what becomes ready after it wakes somebody.
            match self.next() {
                Next::Run(run) => return Some(Item::new(self.clone(), run)),
                Next::ShutDown => return None,
                Next::Empty => {}
            }
            // The order is of no consequence, as both lead to another look. It is fixed so that runs repeat.
            tokio::select! { biased;
                () = ready => {}
                () = self.alarm() => {}
            }
        }
    }

    /// Waits for its turn to watch the clock, then until a key is due.
    async fn alarm(&self) {
        let _turn = self.shared.timer.lock().await;
        loop {
            let rescheduled = self.shared.rescheduled.notified();
            let next_due = self.shared.lock().next_due();
            match next_due {
                None => rescheduled.await,
                Some(due) if due <= self.now() => return,
                Some(due) => tokio::select! { biased; // As in `get`.
                    () = rescheduled => {}
                    () = self.shared.clock.sleep_until(due.since_epoch()) => {}
                },
            }
        }
    }

    /// The key whose turn it is, if one is ready now.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// assert!(queue.try_get().is_none());
    /// queue.add("a");
    /// let item = queue.try_get().expect("a key is ready");
    /// assert_eq!(item.key(), &"a");
    /// item.done();
    /// ```
    pub fn try_get(&self) -> Option<Item<K, N>> {
        match self.next() {
            Next::Run(run) => Some(Item::new(self.clone(), run)),
            Next::Empty | Next::ShutDown => None,
        }
    }

    /// How many keys are ready to run. Running and delayed ones do not count.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// queue.add("a");
    /// queue.add("b");
    /// assert_eq!(queue.len(), 2, "a key waits once");
    /// ```
    pub fn len(&self) -> usize {
        self.step(None, |machine, now| {
            machine.advance(now);
            machine.len()
        })
    }

    /// Whether no key is ready to run.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name given in the options.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What the queue has done so far.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new().name("pods"));
    /// queue.add("a");
    /// let stats = queue.stats();
    /// assert_eq!((stats.depth, stats.adds), (1, 1));
    /// ```
    pub fn stats(&self) -> Stats {
        let now = Some(self.now());
        self.step(now, |machine, now| machine.stats(&self.shared.name, now))
    }

    /// Takes no more keys. What is ready is still handed out, what waits for a delay is dropped.
    ///
    /// Ends a [drain](Queue::shut_down_with_drain) that is under way.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # let _guard = runtime.enter();
    /// let queue = Queue::new(Options::new());
    /// queue.add("a");
    /// queue.shut_down();
    /// queue.add("b");
    /// assert!(queue.is_shutting_down());
    /// assert_eq!(queue.len(), 1, "what was ready is still handed out");
    /// ```
    pub fn shut_down(&self) {
        self.step(None, |machine, now| machine.shut_down(Life::ShutDown, now));
    }

    /// Takes no more keys, and waits until every key that was ready or running is done.
    ///
    /// A key that was added again while running runs once more before the end. Somebody must still be working: keys
    /// that nobody takes are waited for until [`shut_down`](Queue::shut_down) is called or this future is dropped.
    ///
    /// ```
    /// # use kubewright_workqueue::{Drain, Options, Queue};
    /// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    /// # runtime.block_on(async {
    /// let queue = Queue::<&str>::new(Options::new());
    /// assert_eq!(queue.shut_down_with_drain().await, Drain::Finished);
    /// # });
    /// ```
    pub async fn shut_down_with_drain(&self) -> Drain {
        self.step(None, |machine, now| machine.shut_down(Life::Draining, now));
        loop {
            let woken = self.shared.drained.notified();
            let (drained, life) = {
                let machine = self.shared.lock();
                (machine.is_drained(), machine.life())
            };
            if drained {
                return Drain::Finished;
            }
            if life == Life::ShutDown {
                return Drain::CutShort;
            }
            woken.await;
        }
    }

    /// Whether the queue was shut down, with or without drain.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.lock().life() != Life::Open
    }

    /// Hands a key back.
    pub(crate) fn done(&self, run: &Run<K, N>, end: End<N>, ended: Option<Moment>) {
        let now = ended.or_else(|| self.time_of(end.finish));
        self.step(now, |machine, now| machine.done(run, end, now));
    }

    /// Hands a key back and takes the one whose turn it is, under one lock.
    pub(crate) fn exchange(
        &self,
        run: &Run<K, N>,
        end: End<N>,
        ended: Option<Moment>,
    ) -> Option<Run<K, N>> {
        let now = ended.or_else(|| self.time_of(end.finish));
        let next = self.step(now, |machine, now| {
            machine.done(run, end, now);
            machine.get(now)
        });
        match next {
            Next::Run(run) => Some(run),
            Next::Empty | Next::ShutDown => None,
        }
    }

    fn next(&self) -> Next<K, N> {
        self.step(self.measured_now(), |machine, now| machine.get(now))
    }

    /// The time, if a run that ends like this depends on it.
    fn time_of(&self, finish: Finish) -> Option<Moment> {
        match finish {
            Finish::Ended | Finish::Succeeded => self.measured_now(),
            Finish::Failed | Finish::Again(_) => Some(self.now()),
        }
    }

    /// The time, if the queue has a name and therefore measures durations.
    pub(crate) fn measured_now(&self) -> Option<Moment> {
        (!self.shared.name.is_empty()).then(|| self.now())
    }

    fn now(&self) -> Moment {
        Moment::at(self.shared.clock.now())
    }

    /// Runs one operation under the lock, and wakes whom it concerns without the lock.
    ///
    /// A caller that depends on the time looks at the clock before it takes the lock. For the others it is read only
    /// if there are alarms.
    fn step<T>(
        &self,
        now: Option<Moment>,
        operation: impl FnOnce(&mut Machine<K, N>, Moment) -> T,
    ) -> T {
        let mut machine = self.shared.lock();
        let now = match (now, machine.next_due()) {
            (Some(now), _) => now,
            (None, Some(_)) => self.now(),
            (None, None) => machine.now(),
        };
        let outcome = operation(&mut machine, now);
        let wake = machine.take_wake();
        drop(machine);
        let shared = &*self.shared;
        if wake.workers > 0 {
            let waiting = shared.waiting.load(Ordering::Relaxed);
            (0..wake.workers.min(waiting)).for_each(|_| shared.ready.notify_one());
        }
        if wake.timer {
            shared.rescheduled.notify_one();
        }
        if wake.everybody {
            shared.ready.notify_waiters();
            shared.drained.notify_waiters();
        }
        outcome
    }
}

impl<K: Request, N: Note> Shared<K, N> {
    /// No user code runs under the lock except for a note's merge, and that leaves the machine in order if it panics.
    fn lock(&self) -> MutexGuard<'_, Machine<K, N>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Request, N: Note> Default for Queue<K, N> {
    fn default() -> Self {
        Self::with_notes(Options::new())
    }
}

impl<K: Request, N: Note> Clone for Queue<K, N> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Request, N: Note> fmt::Debug for Queue<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
