//! The life of one process of the operator. When it is over, nothing gets out any more, and then the process is dropped: a
//! process that is killed runs no destructors.

use std::future::pending;
use std::sync::Arc;

use kubewright_cache::source::BoxFuture;
use kubewright_runtime::gate::{Gate, Point, Verdict};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::director::Director;
use crate::trace::Note;

/// One process of the operator, as its gates see it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Life {
    pub(crate) director: Arc<Director>,
    over: CancellationToken,
    /// The revision that the process's API server has reached; none if it is up to date.
    view: watch::Receiver<Option<u64>>,
}

impl Life {
    pub(crate) fn new(director: Arc<Director>, view: watch::Receiver<Option<u64>>) -> Self {
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
        *self.view.borrow()
    }

    /// Waits until this process's API server has reached a revision.
    pub(crate) async fn reached(&self, revision: u64) {
        let mut view = self.view.clone();
        let is_there = |held: &Option<u64>| held.is_none_or(|held| revision <= held);
        // Whoever held it is gone: it is up to date.
        let _ = view.wait_for(is_there).await;
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
