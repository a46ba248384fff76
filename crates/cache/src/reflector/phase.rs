//! The inputs and outputs of the reflector's machine, and the phases between.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Page;
use crate::Key;
use crate::delta::Delta;
use crate::intake::WatchEvent;
use crate::object::Object;
use crate::source::{Failure, ListRequest, WatchRequest};

/// What came in.
#[derive(Debug)]
pub(super) enum Input {
    Start,
    Page(Page),
    ListFailed(Failure),
    Opened,
    /// The watch could not be opened.
    Refused(Failure),
    Event(WatchEvent),
    /// The watch ended: well, or by a failure.
    Ended(Option<Failure>),
    /// The time that was waited for has come.
    Elapsed,
    /// Other objects are to be kept than before: the whole state is needed again.
    Reselected,
}

/// What to do.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) delta: Option<Delta>,
    pub(super) report: Option<Failure>,
    pub(super) next: Next,
}

#[derive(Debug, PartialEq)]
pub(super) enum Next {
    List(ListRequest),
    Watch(WatchRequest),
    /// Read on in the open watch, at most until then.
    Read {
        until: Duration,
    },
    Sleep {
        until: Duration,
    },
}

#[derive(Debug)]
pub(super) enum Phase {
    Listing(Listing),
    Streaming { objects: BTreeMap<Key, Arc<Object>> },
    Opening { timeout: Duration },
    Watching(Watching),
    Waiting(Then),
}

#[derive(Debug)]
pub(super) struct Listing {
    /// What the first page asked for.
    pub(super) asked: String,
    /// The version of the first page, which is that of the whole.
    pub(super) version: Option<String>,
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) attempt: Attempt,
}

/// How often a list has been begun anew because its version or its pages expired.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Attempt {
    First,
    WithoutPages,
    Newest,
}

#[derive(Debug)]
pub(super) struct Watching {
    pub(super) from: String,
    pub(super) opened: Duration,
    pub(super) until: Duration,
    pub(super) progress: Progress,
}

/// Whether a watch has delivered anything new.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Progress {
    None,
    /// Only objects that were there before it began, in no order of versions.
    InitialOnly,
    Made,
}

/// What is done after a wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Then {
    Restart,
    Stream,
    Watch,
}

impl From<Next> for Step {
    fn from(next: Next) -> Self {
        Self {
            delta: None,
            report: None,
            next,
        }
    }
}
