//! When a watch sends bookmarks.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long after a change that does not concern a watch a bookmark is sent, so that it can go on from there.
const BOOKMARK_AFTER: Duration = Duration::from_secs(60);
/// How often a bookmark is sent while no change passes a watch by. Each event has its version, and a watch that ends gets a last
/// bookmark, which for most clients is after some minutes; a cluster at rest has a hundred watches
/// that stay open for longer. One that breaks off after a long silence may have to list again. Kubernetes sends a
/// bookmark a minute to each.
const IDLE_BOOKMARK_EVERY: Duration = Duration::from_secs(3_600);

/// When the next bookmark is due.
pub(super) struct Bookmarks(Pin<Box<Sleep>>);

impl Bookmarks {
    pub(super) fn new(now: Instant) -> Self {
        Self(Box::pin(sleep_until(now + IDLE_BOOKMARK_EVERY)))
    }

    /// A change does not concern the watcher: its next bookmark comes soon.
    pub(super) fn hasten(&mut self) {
        let due = Instant::now() + BOOKMARK_AFTER;
        if self.0.deadline() > due {
            self.0.as_mut().reset(due);
        }
    }

    /// Waits until one is due.
    pub(super) async fn due(&mut self) {
        self.0.as_mut().await;
        let next = Instant::now() + IDLE_BOOKMARK_EVERY;
        self.0.as_mut().reset(next);
    }
}
