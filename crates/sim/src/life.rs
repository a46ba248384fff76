//! The life of one process of the operator. When it is over, nothing gets out any more, and then the process is dropped: a
//! process that is killed runs no destructors.

use std::future::pending;
use std::sync::Arc;

use kubewright_cache::source::BoxFuture;
use kubewright_runtime::gate::{Gate, Point, Verdict};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::director::Director;
use crate::trace::Note;

/// One process of the operator, as its gates see it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) director: Arc<Director>,
    over: CancellationToken,
    view: Arc<View>,
}

/// What the process's API server shows. Not tokio's `watch`, which wakes those who wait in a random order.
#[derive(Default)]
pub(crate) struct View {
    /// The revision that it has reached; none if it is up to date.
    held: Mutex<Option<u64>>,
    released: Notify,
}

impl View {
    /// A view of a revision, or of what is there.
    pub(crate) fn of(revision: Option<u64>) -> Self {
        Self {
            held: Mutex::new(revision),
            released: Notify::new(),
        }
    }

    /// Shows everything that is there from now on.
    pub(crate) fn release(&self) {
        *self.held.lock() = None;
        self.released.notify_waiters();
    }
}

impl Life {
    pub(crate) fn new(director: Arc<Director>, view: Arc<View>) -> Self {
        Self {
            director,
            over: CancellationToken::new(),
            view,
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

    /// Goes on if the process lives, and never if it does not.
    pub(crate) async fn check(&self) {
        if self.over.is_cancelled() {
            pending().await
        }
    }

    /// The revision that this process's API server is held at.
    pub(crate) fn held_at(&self) -> Option<u64> {
        *self.view.held.lock()
    }

    /// Waits until this process's API server has reached a revision.
    pub(crate) async fn reached(&self, revision: u64) {
        loop {
            let released = self.view.released.notified();
            if self.held_at().is_none_or(|held| revision <= held) {
                return;
            }
            released.await;
        }
    }

    async fn note(&self, point: Point<'_>) -> Verdict {
        self.check().await;
        let note = match point {
            Point::Reconcile => Note::Reconcile,
            Point::Reconciled { ended } => Note::Reconciled(ended.to_owned()),
            Point::Found {
                resource,
                key,
                version,
            } => Note::Read {
                resource: resource.to_owned(),
                key: key.as_str().to_owned(),
                version: version.map(str::to_owned),
            },
            Point::Listed { resource, count } => Note::Listed {
                resource: resource.to_owned(),
                count,
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
