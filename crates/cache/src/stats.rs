//! What an informer holds and what it has done so far: counted as it goes, read when asked for.
//!
//! Counting costs a few additions for each event, so it is always on. [`crate::prometheus`] turns it into series.

use std::sync::atomic::{AtomicU64, Ordering};

/// An informer at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// The cluster that it is of, where there are several and somebody names them; empty otherwise.
    pub cluster: String,
    /// What it follows: for a [`ListWatch`](crate::ListWatch) the path of the resource and its selectors.
    pub name: String,
    /// Objects in the store.
    pub objects: usize,
    /// Bytes that they take on the heap, decoded values and indexes aside.
    pub bytes: usize,
    /// The version of the server's state that the store has reached; empty before the first.
    pub resource_version: String,
    /// Whether the store has had a first whole state.
    pub synced: bool,
    /// Lists asked for; each page is one.
    pub lists: u64,
    /// Watches asked for that begin with the whole state, in place of a list.
    pub streams: u64,
    /// Other watches asked for.
    pub watches: u64,
    /// Whole states that came after the first.
    pub relists: u64,
    /// Watch events that came, bookmarks included.
    pub events: u64,
    /// Failures that cost a delay.
    pub failures: u64,
    /// Deltas between the reflector and the store.
    pub queued: usize,
    /// Events that each handler has still to hear, in the order in which the handlers came.
    pub backlogs: Vec<usize>,
}

/// What the reflector counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) lists: Counter,
    pub(crate) streams: Counter,
    pub(crate) watches: Counter,
    /// Whole states.
    pub(crate) states: Counter,
    pub(crate) events: Counter,
    pub(crate) failures: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        // Nothing is concluded from one counter about another.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
