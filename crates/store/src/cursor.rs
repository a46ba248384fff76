//! A reader's place in a collection's history.
//!
//! A cursor is a number, not a queue: it reads the shared log when it is polled. One that is never polled costs
//! nothing, and when the history has moved past it, it gets [`Expired`](crate::Expired).

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::collection::Collection;
use super::event::Event;
use super::wakers::Registration;

/// Follows the changes of one collection: each exactly once, in order.
#[derive(Debug)]
pub struct Cursor {
    collection: Collection,
    /// Position in the log of the next event to read.
    next: u64,
    /// Everything up to this revision has been read, or was never asked for.
    seen: u64,
    registration: Registration,
}

/// The history does not reach back that far; list again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the history begins at revision {oldest}")]
pub struct Expired {
    /// The oldest revision that can be read or watched from.
    pub oldest: u64,
}

impl Cursor {
    pub(super) fn open(collection: Collection, from: u64) -> Result<Self, Expired> {
        let next = {
            let state = collection.inner.state.read();
            state.check_known(collection.table, from)?;
            state.tables[collection.table].log.position_after(from)
        };
        Ok(Self {
            next,
            seen: from,
            registration: Registration::new(collection.wakers.clone()),
            collection,
        })
    }

    /// Appends the next events to `out`, at most `max` of them. Ready means that there is at least one.
    ///
    /// # Errors
    /// [`Expired`] when the history has moved past this cursor: events were lost to it, and it is of no more use.
    pub fn poll_next_batch(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Poll<Result<(), Expired>> {
        let state = self.collection.inner.state.read();
        let log = &state.tables[self.collection.table].log;
        let end = log.end().min(self.next.saturating_add(max.max(1) as u64));
        let Some(events) = log.slice(self.next..end) else {
            let oldest = state.floor(self.collection.table);
            return Poll::Ready(Err(Expired { oldest }));
        };
        let before = out.len();
        // Only a cursor opened in the future has anything to skip.
        out.extend(events.filter(|e| e.revision() > self.seen).cloned());
        self.next = end;
        if let Some(last) = out[before..].last() {
            self.seen = last.revision();
            return Poll::Ready(Ok(()));
        }
        // Still under the lock: no event can slip in between looking and registering.
        self.registration.register(cx.waker());
        Poll::Pending
    }

    /// Waits for the next events and appends them to `out`, at most `max` of them. Safe to cancel.
    ///
    /// # Errors
    /// [`Expired`] when the history has moved past this cursor.
    pub async fn next_batch(
        &mut self,
        out: &mut Vec<Arc<Event>>,
        max: usize,
    ) -> Result<(), Expired> {
        poll_fn(|cx| self.poll_next_batch(cx, out, max)).await
    }

    /// The revision up to which this cursor has read all there is of its collection: what a bookmark may say. It is
    /// the store's present revision when nothing is pending.
    pub fn progress(&self) -> u64 {
        let state = self.collection.inner.state.read();
        let pending = state.tables[self.collection.table].log.end() > self.next;
        if pending {
            self.seen
        } else {
            self.seen.max(state.revision)
        }
    }
}
