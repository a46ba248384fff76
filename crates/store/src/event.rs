//! One change in the history, and the watch frames that announce it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::record::Record;

/// One change, shared by all who watch.
#[derive(Debug)]
pub struct Event {
    change: Change,
    record: Arc<Record>,
    /// The frame for those who saw the object before and after; `record`'s body is a slice of it.
    frame: Bytes,
    /// The rarer frames, for selectors that the change made match or stop matching. Boxed, since most events never
    /// need them.
    entered: OnceLock<Box<Bytes>>,
    left: OnceLock<Box<Bytes>>,
}

/// What happened to the object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It came into being.
    Created,
    /// It got a new version.
    Updated {
        /// The version it had.
        previous: Arc<Record>,
    },
    /// It was removed. The event's record is its last state with the deletion's revision.
    Deleted {
        /// The version it had.
        previous: Arc<Record>,
    },
}

/// How a change looks to one watcher, given what its selector matched before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// `ADDED`: it is new, or new to this watcher.
    Added,
    /// `MODIFIED`: this watcher saw it before and still does.
    Modified,
    /// `DELETED`: it is gone.
    Deleted,
    /// `DELETED` with the content it had before the change and the change's revision: it exists, but this watcher's
    /// selector no longer matches it.
    Left,
}

impl Delivery {
    /// What follows the object in a frame.
    pub(super) const TAIL: &'static [u8] = b"}\n";

    /// What precedes the object in a frame.
    pub(super) fn head(self) -> &'static [u8] {
        match self {
            Self::Added => br#"{"type":"ADDED","object":"#,
            Self::Modified => br#"{"type":"MODIFIED","object":"#,
            Self::Deleted | Self::Left => br#"{"type":"DELETED","object":"#,
        }
    }

    /// The `type` of the watch event.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted | Self::Left => "DELETED",
        }
    }

    /// The object within a frame of this kind.
    pub(super) fn body_of(self, frame: &Bytes) -> Bytes {
        frame.slice(self.head().len()..frame.len() - Self::TAIL.len())
    }
}

impl Event {
    pub(super) fn new(change: Change, record: Arc<Record>, frame: Bytes) -> Self {
        Self {
            change,
            record,
            frame,
            entered: OnceLock::new(),
            left: OnceLock::new(),
        }
    }

    /// The revision of the change.
    pub fn revision(&self) -> u64 {
        self.record.revision
    }

    /// Returns what happened to the object.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The object after the change; for a deletion its last state at the deletion's revision.
    pub fn record(&self) -> &Arc<Record> {
        &self.record
    }

    /// The object before the change.
    pub fn previous(&self) -> Option<&Arc<Record>> {
        match &self.change {
            Change::Created => None,
            Change::Updated { previous } | Change::Deleted { previous } => Some(previous),
        }
    }

    /// How the change looks to a watcher that sees what `matches`; none when it does not look at all.
    pub fn delivery(&self, matches: impl Fn(&Record) -> bool) -> Option<Delivery> {
        match &self.change {
            Change::Created => matches(&self.record).then_some(Delivery::Added),
            Change::Deleted { previous } => matches(previous).then_some(Delivery::Deleted),
            Change::Updated { previous } => match (matches(previous), matches(&self.record)) {
                (true, true) => Some(Delivery::Modified),
                (false, true) => Some(Delivery::Added),
                (true, false) => Some(Delivery::Left),
                (false, false) => None,
            },
        }
    }

    /// The watch frame, a line of JSON. Rendered at most once per kind and shared by all watchers.
    pub fn frame(&self, delivery: Delivery) -> Bytes {
        if delivery == self.common() {
            return self.frame.clone();
        }
        let render = |record: &Record| Box::new(record.frame_at(delivery, self.revision()));
        match delivery {
            Delivery::Added => self.entered.get_or_init(|| render(&self.record)).as_ref(),
            Delivery::Left => {
                let seen = self.previous().unwrap_or(&self.record);
                self.left.get_or_init(|| render(seen)).as_ref()
            }
            // No watcher is notified; asked anyway, the answer is not worth keeping.
            Delivery::Modified | Delivery::Deleted => return *render(&self.record),
        }
        .clone()
    }

    /// The object within [`Event::frame`].
    pub fn body(&self, delivery: Delivery) -> Bytes {
        match delivery {
            Delivery::Left => delivery.body_of(&self.frame(delivery)),
            _ => self.record.body.clone(),
        }
    }

    /// How the change looks without a selector.
    fn common(&self) -> Delivery {
        match self.change {
            Change::Created => Delivery::Added,
            Change::Updated { .. } => Delivery::Modified,
            Change::Deleted { .. } => Delivery::Deleted,
        }
    }

    /// Bytes that only the history keeps alive: the version that this change superseded, and a deleted object's last
    /// state. Rarer frames come on top, at most once that much again.
    pub(super) fn cost(&self) -> usize {
        let previous = self.previous().map_or(0, |record| record.body.len());
        let last = match self.change {
            Change::Deleted { .. } => self.record.body.len(),
            _ => 0,
        };
        size_of::<Self>() + previous + last
    }
}
