//! The words in which the machine is spoken to, and in which it answers.

use std::time::Duration;

use crate::lanes::Entry;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::slots::Hashed;

/// Whether the queue takes and gives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Takes and gives.
    Open,
    /// Gives what is ready; somebody waits for the end of it.
    Draining,
    /// Gives what is ready; nobody is to wait.
    ShutDown,
}

/// Whether it is measured how long keys wait and run. Three looks at the clock cost about as much as all the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durations {
    Measured,
    Unknown,
}

/// A key that is to run at once.
pub(crate) struct Added<K, N> {
    pub(crate) key: Hashed<K>,
    pub(crate) note: N,
    pub(crate) priority: Priority,
    /// When it was added, if durations are measured.
    pub(crate) at: Moment,
}

/// What the answer to a worker is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<K, N> {
    /// A key to run. Its slot must be handed back with [`Machine::done`].
    Run(Run<K, N>),
    /// Nothing is ready.
    Empty,
    /// Nothing is ready and nothing ever will be.
    ShutDown,
}

/// A key that a worker has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run<K, N> {
    /// The place in the line that it had.
    pub(crate) entry: Entry,
    pub(crate) key: K,
    /// What adds left for this run.
    pub(crate) note: N,
    pub(crate) priority: Priority,
    /// Retries before this run, since the key was last forgotten.
    pub(crate) requeues: u32,
    /// When it began, if durations are measured.
    pub(crate) started: Moment,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Nothing more is known; the count of requeues stays.
    Ended,
    /// The count of requeues starts afresh.
    Succeeded,
    /// Another run after the limiter's delay.
    Failed,
    /// It succeeded, and is to run again after this delay.
    Again(Duration),
}

/// Who must look again after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub(crate) struct Wake {
    /// So many workers: keys became ready.
    pub(crate) workers: usize,
    /// Whoever minds the alarms: the next one goes off earlier than it did.
    pub(crate) timekeeper: Needed,
    /// Everybody who waits, for a key or for the end: the queue was shut down, or has drained.
    pub(crate) everybody: Needed,
}

/// Whether something is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Needed {
    #[default]
    No,
    Yes,
}
