//! The words in which the machine is spoken to, and in which it answers.

use std::time::Duration;

use super::slots::Place;
use crate::moment::Moment;
use crate::priority::Priority;

/// Whether the queue takes and gives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Takes new keys and gives what is ready.
    Open,
    /// Gives what is ready; somebody waits for the end of it.
    Draining,
    /// Gives what is ready; nobody is to wait.
    ShutDown,
}

/// What the answer to a worker is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<K, N> {
    /// A key to run, to be handed back with [`Machine::done`](super::Machine::done).
    Run(Run<K, N>),
    /// Nothing is ready at the moment.
    Empty,
    /// Nothing is ready and nothing ever will be.
    ShutDown,
}

/// A key that a worker has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run<K, N> {
    pub(crate) key: K,
    /// Where the machine keeps it.
    pub(super) place: Place,
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
#[non_exhaustive]
pub enum Finish {
    /// Nothing more is known; the count of requeues stays.
    Ended,
    /// The count of requeues starts again at zero.
    Succeeded,
    /// Another run after the limiter's delay.
    Failed,
    /// It succeeded, and is to run again after this delay.
    Again(Duration),
}

/// What a worker reports when it hands a key back.
#[derive(Debug)]
pub(crate) struct End<N> {
    pub(crate) finish: Finish,
    /// For the run that this one asks for.
    pub(crate) left: N,
    /// How urgent that run is, if not as urgent as this one.
    pub(crate) priority: Option<Priority>,
}

impl<N: Default> From<Finish> for End<N> {
    fn from(finish: Finish) -> Self {
        Self {
            finish,
            left: N::default(),
            priority: None,
        }
    }
}

/// Who must look again after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub(crate) struct Wake {
    /// So many workers: keys became ready.
    pub(crate) workers: usize,
    /// Whoever waits for the next alarm: it goes off at another time than it did.
    pub(crate) timer: bool,
    /// Everybody who waits, for a key or for the end: the queue was shut down, or has drained.
    pub(crate) everybody: bool,
}
