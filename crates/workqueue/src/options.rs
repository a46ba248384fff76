//! What can be chosen: when a queue is made, and with each add.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, TokioClock};
use crate::limiter::{RateLimiter, controller_default};
use crate::priority::{Priority, PriorityPolicy};

/// How a queue is made. Every setting has a default that suits a controller.
#[must_use]
pub struct Options<K> {
    pub(crate) name: String,
    pub(crate) limiter: Box<dyn RateLimiter<K>>,
    pub(crate) priorities: PriorityPolicy,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) capacity: usize,
}

impl<K> Options<K> {
    /// No name, the [`controller_default`] limiter, [`PriorityPolicy::FAIR`], tokio's clock.
    pub fn new() -> Self {
        Self {
            name: String::new(),
            limiter: Box::new(controller_default()),
            priorities: PriorityPolicy::default(),
            clock: Arc::new(TokioClock::new()),
            capacity: 0,
        }
    }

    /// The name under which [`Stats`](crate::Stats) are reported.
    ///
    /// As in client-go, a queue without a name does not measure durations, which makes it faster by a third.
    ///
    /// ```
    /// # use kubewright_workqueue::{Options, Queue};
    /// let queue = Queue::<&str>::new(Options::new().name("pods"));
    /// assert_eq!(queue.name(), "pods");
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What rate-limited adds wait for.
    pub fn limiter(mut self, limiter: impl RateLimiter<K>) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// What priorities do to the order.
    pub fn priorities(mut self, policy: PriorityPolicy) -> Self {
        self.priorities = policy;
        self
    }

    /// Where the time comes from.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Room for this many keys from the start, which saves the pauses in which a growing queue moves its keys.
    pub fn capacity(mut self, keys: usize) -> Self {
        self.capacity = keys;
        self
    }
}

impl<K> Default for Options<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for Options<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("priorities", &self.priorities)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// When a key is to run, and how urgently.
///
/// ```
/// # use kubewright_workqueue::{Add, Priority};
/// # use std::time::Duration;
/// let on_resync = Add::now().priority(Priority::LOW);
/// let later = Add::after(Duration::from_secs(30));
/// let failed = Add::rate_limited();
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Add {
    pub(crate) when: When,
    pub(crate) priority: Priority,
}

/// When a key is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    After(Duration),
    RateLimited,
}

impl Add {
    /// As soon as it is its turn.
    pub fn now() -> Self {
        Self::at(When::Now)
    }

    /// Once this much time has passed.
    pub fn after(delay: Duration) -> Self {
        Self::at(When::After(delay))
    }

    /// When the queue's limiter says so.
    pub fn rate_limited() -> Self {
        Self::at(When::RateLimited)
    }

    /// Sets the priority, which is [`Priority::NORMAL`] by default.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    fn at(when: When) -> Self {
        Self {
            when,
            priority: Priority::NORMAL,
        }
    }
}
