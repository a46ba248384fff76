//! The bounded past: events of one collection in order, and the queue that says which of all collections' events is
//! the oldest.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::event::Event;

/// How much of the past is kept. Whatever limit is met first ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryLimits {
    /// Events of all collections together.
    pub events: usize,
    /// Bytes of versions that only the history keeps alive.
    pub bytes: usize,
    /// Age of an event. What is older is forgotten by every collection, as by a periodic compaction.
    pub age: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self {
            events: 100_000,
            bytes: 64 << 20,
            age: Duration::from_secs(300),
        }
    }
}

impl HistoryLimits {
    /// Keeps at most so many events.
    #[must_use]
    pub fn events(mut self, events: usize) -> Self {
        self.events = events;
        self
    }

    /// Keeps at most so many bytes of superseded versions.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Keeps events for so long.
    #[must_use]
    pub fn age(mut self, age: Duration) -> Self {
        self.age = age;
        self
    }
}

/// The events of one collection that are still known.
///
/// Positions count all events there ever were, so a reader's position stays valid while the front is cut off.
#[derive(Debug, Clone, Default)]
pub(super) struct Log {
    /// Position of the first event in `events`.
    base: u64,
    /// Revision of the last event that was cut off, zero if none was.
    trimmed: u64,
    events: VecDeque<Arc<Event>>,
}

/// What to cut off next, over all collections. Holds one entry per event of every [`Log`], in order of revision.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// Sum of the entries' costs.
    bytes: usize,
}

/// The oldest event, which is the first in its table's log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) table: usize,
    pub(super) revision: u64,
    pub(super) at: Timestamp,
    pub(super) cost: usize,
}

/// Why the oldest event has to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    /// Room: only its own collection forgets.
    Size,
    /// Age or an explicit compaction: every collection forgets what came before.
    Age,
}

impl Log {
    /// Revision below which this log cannot tell what happened.
    pub(super) fn trimmed(&self) -> u64 {
        self.trimmed
    }

    /// Position after the last event.
    pub(super) fn end(&self) -> u64 {
        self.base + self.events.len() as u64
    }

    /// Position of the first event after a revision.
    pub(super) fn position_after(&self, revision: u64) -> u64 {
        let known = self.events.partition_point(|e| e.revision() <= revision);
        self.base + known as u64
    }

    /// The events at some positions; none if the first of them has been cut off.
    pub(super) fn slice(&self, positions: Range<u64>) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let start = usize::try_from(positions.start.checked_sub(self.base)?).ok()?;
        let end = usize::try_from(positions.end.checked_sub(self.base)?).ok()?;
        Some(self.events.range(start..end.min(self.events.len())))
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
    }

    /// Forgets everything up to a revision and leaves a gap, so that no position from before is valid any more.
    pub(super) fn forget(&mut self, revision: u64) {
        self.base = self.end() + 1;
        self.trimmed = revision;
        self.events.clear();
    }

    /// Cuts off the oldest event.
    pub(super) fn pop(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.base += 1;
        self.trimmed = event.revision();
        Some(event)
    }
}

impl Queue {
    pub(super) fn push(&mut self, entry: Entry) {
        self.bytes += entry.cost;
        self.entries.push_back(entry);
    }

    /// Takes the oldest entry if a limit or the floor says so. The newest event always stays, however large: those who
    /// wait for it must be able to read it.
    pub(super) fn pop_excess(
        &mut self,
        limits: &HistoryLimits,
        now: Timestamp,
        floor: u64,
    ) -> Option<(Entry, Excess)> {
        let oldest = *self.entries.front()?;
        let excess = if oldest.revision <= floor || is_older(oldest.at, now, limits.age) {
            Excess::Age
        } else if self.entries.len() > limits.events.max(1)
            || (self.bytes > limits.bytes && self.entries.len() > 1)
        {
            Excess::Size
        } else {
            return None;
        };
        self.entries.pop_front();
        self.bytes -= oldest.cost;
        Some((oldest, excess))
    }
}

fn is_older(at: Timestamp, now: Timestamp, age: Duration) -> bool {
    now.duration_since(at).unsigned_abs() > age && now > at
}
