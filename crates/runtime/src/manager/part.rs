//! The parts of a manager: what each is called, when it starts and stops, and how it ended.

use std::fmt;
use std::time::Duration;

use crate::Error;

/// How a part of a manager ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// The part was asked to stop, and did.
    Stopped,
    /// The part ended by itself, although nobody had asked it to.
    Early,
    /// The part ended with an error.
    Failed(Error),
    /// The part panicked, with this message.
    Panicked(String),
    /// The part was asked to stop and did not in time.
    Late,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::Early => f.write_str("ended although nobody asked it to stop"),
            Self::Failed(error) => write!(f, "failed: {}", error.report()),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Late => f.write_str("did not stop in time"),
        }
    }
}

/// What it means that a part ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnEnd {
    /// The manager fails: a part that is meant to run for as long as the manager does is missing.
    #[default]
    Fail,
    /// The manager goes on: the part had one thing to do, and has done it.
    Fine,
}

/// Stages, in the order of their start. They stop in the reverse order: what works first, what it works with later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Events,
    Election,
    Informers,
    Servers,
    Others,
    Leader,
}

/// One part.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) stage: Stage,
    pub(super) name: String,
    pub(super) on_end: OnEnd,
    /// How long it may take to end, if less than its stage may.
    pub(super) stop_within: Option<Duration>,
}

impl Part {
    /// A part that runs for as long as the manager does.
    pub(super) fn new(stage: Stage, name: impl Into<String>) -> Self {
        Self {
            stage,
            name: name.into(),
            on_end: OnEnd::Fail,
            stop_within: None,
        }
    }

    /// Whether this end of it is the end of the manager.
    pub(super) fn is_failure(&self, ended: &Ended) -> bool {
        match ended {
            Ended::Stopped => false,
            Ended::Early => self.on_end == OnEnd::Fail,
            Ended::Failed(_) | Ended::Panicked(_) | Ended::Late => true,
        }
    }
}
