//! The life of one process of the operator. When it is over, nothing gets out any more, and then the process is dropped: a
//! process that is killed runs no destructors.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::source::BoxFuture;
use kubewright_runtime::gate::{Gate, Point, Verdict};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::director::Director;
use crate::trace::Note;

/// One process of the operator, as its gates see it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) director: Arc<Director>,
    /// The number of the process.
    pub(crate) number: u32,
    /// Until when nothing gets through.
    cut_off: Arc<Mutex<Option<Instant>>>,
    over: CancellationToken,
    pub(crate) front_end: Arc<FrontEnd>,
}

/// The process's API server: one of any number over the same store. It may be behind for a while: lists from its cache are
/// old then, watches deliver nothing newer, and versions that it has not reached are refused as too large.
#[derive(Default)]
pub(crate) struct FrontEnd {
    /// The revision that it has reached, and when it catches up; none if it is up to date.
    held: Mutex<Option<(u64, Instant)>>,
}

impl FrontEnd {
    /// Keeps it at a revision for a while.
    fn hold(&self, revision: u64, time: Duration) {
        *self.held.lock() = Some((revision, Instant::now() + time));
    }

    /// The revision that it is held at, and until when.
    pub(crate) fn held(&self) -> Option<(u64, Instant)> {
        self.held
            .lock()
            .filter(|(_, until)| Instant::now() < *until)
    }

    /// Waits until it has reached a revision.
    pub(crate) async fn reached(&self, revision: u64) {
        while let Some((_, until)) = self.held().filter(|(held, _)| revision > *held) {
            sleep_until(until).await;
        }
    }
}

impl Life {
    pub(crate) fn new(director: Arc<Director>, number: u32) -> Self {
        Self {
            director,
            number,
            cut_off: Arc::default(),
            over: CancellationToken::new(),
            front_end: Arc::default(),
        }
    }

    /// Closes all gates of the process.
    pub(crate) fn end(&self) {
        self.over.cancel();
    }

    /// Ends the process from within: whoever calls this never goes on.
    pub(crate) async fn crash(&self) -> ! {
        self.end();
        pending().await
    }

    /// Completes when the process is to be dropped.
    pub(crate) async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// Keeps the process's API server at a revision until it catches up.
    pub(crate) fn hold_front_end(&self, revision: u64) {
        self.front_end.hold(revision, self.director.pace.stale_for);
    }

    /// Cuts the process off for a while.
    pub(crate) fn cut_off_for(&self, time: Duration) {
        *self.cut_off.lock() = Some(Instant::now() + time);
    }

    /// Goes on if the process lives, when it is not cut off, and never if it does not live.
    pub(crate) async fn check(&self) {
        let cut_off = *self.cut_off.lock();
        if let Some(until) = cut_off {
            sleep_until(until).await;
        }
        if self.over.is_cancelled() {
            pending().await
        }
    }

    async fn note(&self, point: Point<'_>) -> Verdict {
        // What stays inside the process needs no network.
        if self.over.is_cancelled() {
            pending().await
        }
        let note = match point {
            Point::Reconcile => Note::Reconcile,
            Point::Reconciled { ended } => Note::Reconciled(ended.to_owned()),
            Point::Found {
                resource,
                key,
                version,
                cache,
            } => Note::Read {
                resource: resource.to_owned(),
                key: key.as_str().to_owned(),
                version: version.map(str::to_owned),
                cache: cache.to_owned(),
            },
            Point::Listed {
                resource,
                query,
                count,
                cache,
            } => Note::Listed {
                resource: resource.to_owned(),
                query: query.to_owned(),
                count,
                cache: cache.to_owned(),
            },
            _ => return Verdict::Go,
        };
        self.director.note(note);
        Verdict::Go
    }
}

impl Gate for Life {
    fn pass<'a>(&'a self, point: Point<'a>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.note(point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn front_end_is_behind_until_it_catches_up() {
        let front_end = FrontEnd::default();
        front_end.reached(9).await;
        let behind_for = Duration::from_secs(20);
        front_end.hold(5, behind_for);
        let began = Instant::now();
        front_end.reached(5).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        front_end.reached(6).await;
        assert_eq!(began.elapsed(), behind_for);
        assert_eq!(front_end.held(), None);
    }
}
