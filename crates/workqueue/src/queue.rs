//! The queue that tasks share: the state machine behind a lock, and the waking of those who wait.
//!
//! There is no background task. Of the workers that sleep until there is a key, one at a time also minds the alarms:
//! the timekeeper. When it leaves with a key, or is cancelled, the next one takes over. A key that is due already never
//! goes through a timer, whose steps are a millisecond wide.
//!
//! No wake-up is lost: a worker is in the list of sleepers under the lock of its last look; each key that becomes ready
//! while somebody sleeps wakes one worker; and a worker that is cancelled passes its wake-up on.
//!
//! The lock is the standard library's, which spins for about as long as an operation takes before it parks the
//! thread; with workers on two processors that made three times the throughput of one that parks sooner.

mod adding;
mod inbox;
mod sleeper;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use foldhash::fast::RandomState;
use tokio::sync::Notify;
use tokio::task::coop::consume_budget;

use crate::clock::Clock;
use crate::hand::Hand;
use crate::item::{End, Item};
use crate::machine::{Added, Durations, Life, Machine, Needed, Next, Run};
use crate::moment::Moment;
use crate::note::Note;
use crate::options::Options;
use crate::slots::Hashed;
use crate::stats::Stats;
use inbox::{Door, Inbox};
use sleeper::{Sleeper, Sleepers};

/// What can be a key. Prefer one that is cheap to clone, such as an `Arc<str>` or a small `Copy` type.
pub trait Key: Hash + Eq + Clone + Send + 'static {}

impl<K: Hash + Eq + Clone + Send + 'static> Key for K {}

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
pub struct Queue<K: Key, N: Note = ()> {
    shared: Arc<Shared<K, N>>,
}

struct Shared<K: Key, N: Note> {
    name: String,
    durations: Durations,
    hasher: RandomState,
    clock: Arc<dyn Clock>,
    inbox: Inbox<K, N>,
    state: Mutex<State<K, N>>,
    /// Wakes the timekeeper when the next alarm is earlier than the one it sleeps for.
    timekeeper: Notify,
    /// Wakes those who wait for the drain.
    drained: Notify,
}

struct State<K: Key, N: Note> {
    machine: Machine<K, N>,
    sleepers: Sleepers,
    /// Whether one of them minds the alarms.
    timekeeper: Post,
    /// As the inbox has it.
    door: Door,
    /// What was in the inbox; empty between operations.
    adds: Vec<Added<K, N>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Post {
    Vacant,
    Taken,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Drain {
    /// Every key that was ready has run.
    Finished,
    /// [`Queue::shut_down`] was called meanwhile.
    CutShort,
}

impl<K: Key> Queue<K> {
    /// A queue with these options.
    pub fn new(options: Options<K>) -> Self {
        Self::with_notes(options)
    }
}

impl<K: Key, N: Note> Queue<K, N> {
    /// A queue that keeps a note with each key, from those who add it to the worker that runs it.
    pub fn with_notes(options: Options<K>) -> Self {
        let durations = match options.name.is_empty() {
            true => Durations::Unknown,
            false => Durations::Measured,
        };
        let Options {
            priorities,
            limiter,
            capacity,
            ..
        } = options;
        let machine = Machine::new(priorities, limiter, durations, capacity);
        let state = State {
            machine,
            sleepers: Sleepers::default(),
            timekeeper: Post::Vacant,
            door: Door::Open,
            adds: Vec::new(),
        };
        let shared = Shared {
            name: options.name,
            durations,
            hasher: RandomState::default(),
            clock: options.clock,
            inbox: Inbox::new(),
            state: Mutex::new(state),
            timekeeper: Notify::new(),
            drained: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Starts the count of requeues of a key afresh: it succeeded, or was given up.
    pub fn forget(&self, key: &K) {
        let hash = self.hash(key);
        let forgotten = self.locked(|machine| machine.forget(key, hash));
        drop(forgotten);
    }

    /// How many rate-limited adds the key had since it was last forgotten.
    pub fn requeues(&self, key: &K) -> u32 {
        let hash = self.hash(key);
        self.locked(|machine| machine.requeues(key, hash))
    }

    /// Waits for the key whose turn it is. Nothing comes after shutdown, once what was ready has been handed out.
    ///
    /// Cancel safe: a call that is dropped has not taken a key.
    pub async fn get(&self) -> Option<Item<K, N>> {
        // A worker that never waits for anything else must still let the other tasks of its thread run.
        consume_budget().await;
        let mut sleeper: Option<Sleeper<'_, K, N>> = None;
        loop {
            // Whatever becomes ready after this look wakes a sleeper; what came before it is seen.
            match self.next_or_sleep(&mut sleeper) {
                Next::Run(run) => return Some(Item::new(self.clone(), run)),
                Next::ShutDown => return None,
                Next::Empty => {}
            }
            match &sleeper {
                // The order is of no consequence: whoever wakes looks at the queue. It is fixed so that runs repeat.
                Some(timekeeper) if timekeeper.is_timekeeper() => tokio::select! { biased;
                    () = timekeeper.woken() => {}
                    () = timekeeper.wait_for_alarm() => {}
                },
                Some(sleeper) => sleeper.woken().await,
                None => {}
            }
        }
    }

    /// The key whose turn it is, if one is ready now.
    pub fn try_get(&self) -> Option<Item<K, N>> {
        match self.next() {
            Next::Run(run) => Some(Item::new(self.clone(), run)),
            Next::Empty | Next::ShutDown => None,
        }
    }

    /// How many keys are ready to run. Running and delayed ones do not count.
    pub fn len(&self) -> usize {
        let now = self.now();
        self.locked(|machine| {
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
    pub fn stats(&self) -> Stats {
        let now = self.now();
        self.locked(|machine| machine.stats(&self.shared.name, now))
    }

    /// Takes no more keys. What is ready is still handed out, what waits for a delay is dropped.
    ///
    /// Ends a [drain](Queue::shut_down_with_drain) that is under way.
    pub fn shut_down(&self) {
        let now = self.now();
        self.locked(|machine| machine.shut_down(Life::ShutDown, now));
    }

    /// Takes no more keys, and waits until every key that was ready or running is done.
    ///
    /// A key that was added again while running runs once more before the end. Somebody must still be working: keys
    /// that nobody takes are waited for until [`shut_down`](Queue::shut_down) is called or this future is dropped.
    pub async fn shut_down_with_drain(&self) -> Drain {
        let now = self.now();
        self.locked(|machine| machine.shut_down(Life::Draining, now));
        loop {
            let mut woken = pin!(self.shared.drained.notified());
            woken.as_mut().enable();
            let (drained, life) = self.locked(|machine| (machine.is_drained(), machine.life()));
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
        self.locked(|machine| machine.life() != Life::Open)
    }

    pub(crate) fn done(&self, run: &Run<K, N>, end: End<N>) {
        let now = self.now_or(end.at);
        let done = |machine: &mut Machine<K, N>| machine.done(run, end.finish, end.left, now);
        let forgotten = self.locked(done);
        drop(forgotten);
    }

    /// Settles what is in a worker's hand, and gives the run whose turn it is, under one lock.
    pub(crate) fn exchange(&self, hand: &mut Hand<K, N>) -> Option<Run<K, N>> {
        let now = self.now_or(hand.last_end());
        let (forgotten, next) = self.locked(|machine| {
            let forgotten = hand.settle(machine, &now);
            let next = machine.get(&now);
            if matches!(next, Next::Run(_)) {
                hand.take_along(machine);
            }
            (forgotten, next)
        });
        hand.clear();
        drop(forgotten);
        match next {
            Next::Run(run) => Some(run),
            Next::Empty | Next::ShutDown => None,
        }
    }

    /// Settles what is in a worker's hand.
    pub(crate) fn settle(&self, hand: &mut Hand<K, N>) {
        let now = self.now_or(hand.last_end());
        let forgotten = self.locked(|machine| hand.settle(machine, &now));
        hand.clear();
        drop(forgotten);
    }

    fn next(&self) -> Next<K, N> {
        let now = self.clock_look();
        self.locked(|machine| machine.get(now))
    }

    /// Tells the time when asked. If it will be asked in any case, it looks at the clock now: better before the lock is
    /// taken than under it.
    fn clock_look(&self) -> impl Fn() -> Moment {
        self.now_or(None)
    }

    /// The same for a caller that may have looked already.
    fn now_or(&self, known: Option<Moment>) -> impl Fn() -> Moment {
        let early = known.or_else(|| self.measured_now());
        move || early.unwrap_or_else(|| self.now())
    }

    /// The time, if durations are measured.
    pub(crate) fn measured_now(&self) -> Option<Moment> {
        let measured = self.shared.durations == Durations::Measured;
        measured.then(|| self.now())
    }

    fn now(&self) -> Moment {
        Moment::at(self.shared.clock.now())
    }

    fn hashed(&self, key: K) -> Hashed<K> {
        let hash = self.hash(&key);
        Hashed { key, hash }
    }

    fn hash(&self, key: &K) -> u32 {
        let hash = self.shared.hasher.hash_one(key);
        (hash ^ (hash >> 32)) as u32
    }

    /// Runs one operation under the lock, and wakes whom it concerns without the lock.
    fn locked<R>(&self, operation: impl FnOnce(&mut Machine<K, N>) -> R) -> R {
        let mut state = self.shared.open();
        let outcome = operation(&mut state.machine);
        self.unlock_and_wake(state);
        outcome
    }

    fn unlock_and_wake(&self, mut state: MutexGuard<'_, State<K, N>>) {
        self.shared.mind_the_door(&mut state);
        let wake = state.machine.take_wake();
        let post = state.timekeeper;
        let woken = match (wake.everybody, wake.timekeeper, post) {
            (Needed::Yes, ..) => state.sleepers.take_all(),
            // Another sleeper finds the post vacant and takes it.
            (Needed::No, Needed::Yes, Post::Vacant) => state.sleepers.take(wake.workers + 1),
            (Needed::No, ..) => state.sleepers.take(wake.workers),
        };
        drop(state);
        woken.iter().for_each(Waker::wake_by_ref);
        if (wake.timekeeper, post) == (Needed::Yes, Post::Taken) {
            self.shared.timekeeper.notify_one();
        }
        if wake.everybody == Needed::Yes {
            self.shared.drained.notify_waiters();
        }
    }
}

impl<K: Key, N: Note> Shared<K, N> {
    /// A limiter that panicked may have poisoned the lock; the machine calls it with its own state in order.
    fn lock(&self) -> MutexGuard<'_, State<K, N>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with all that was added.
    fn open(&self) -> MutexGuard<'_, State<K, N>> {
        let mut state = self.lock();
        let State { machine, adds, .. } = &mut *state;
        self.inbox.take(adds);
        machine.take_in(adds);
        state
    }

    /// Adds may gather while nobody sleeps, so that nobody has to be woken, and none can come too late.
    fn mind_the_door(&self, state: &mut State<K, N>) {
        let door = match !state.sleepers.is_empty() || state.machine.is_particular() {
            true => Door::Closed,
            false => Door::Open,
        };
        if door == state.door {
            return;
        }
        state.door = door;
        self.inbox.set(door, &mut state.adds);
        state.machine.take_in(&mut state.adds);
    }
}

impl<K: Key, N: Note> Clone for Queue<K, N> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Key, N: Note> Default for Queue<K, N> {
    fn default() -> Self {
        Self::with_notes(Options::new())
    }
}

impl<K: Key, N: Note> fmt::Debug for Queue<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod hands;
#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;
