//! Gates: the points of a run at which a simulation can hold, fail or end it.
//!
//! Calls of the API pass the `tower` service of the `kube::Client`, which can be replaced: there a call can be refused before
//! the server sees it, and its answer can be lost after the server has done it. What never leaves the process passes here:
//! cached reads with what they found, and the beginning and end of reconciles. Both know which reconcile they belong to:
//! [`reconcile`] names it anywhere below a reconcile in the same task.
//!
//! A gate that is held is a future that does not complete yet; one that ends the process never completes, and the manager is
//! dropped meanwhile. Without a gate each point costs one look at an empty cell.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kube::core::Status;
use kubewright_cache::Key;
use kubewright_cache::source::BoxFuture;

tokio::task_local! {
    static RECONCILE: ReconcileId;
}

/// One reconcile of one controller.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ReconcileId {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The key that is reconciled.
    pub key: Key,
    /// The number of the reconcile, counted from the start of the controller.
    pub number: u64,
    /// How often the key has failed in a row before.
    pub attempt: u32,
}

/// The reconcile that the current task runs. It is known where a [`Gate`] is set, and unknown in tasks that a reconcile spawns.
pub fn reconcile() -> Option<ReconcileId> {
    RECONCILE.try_with(Clone::clone).ok()
}

/// A point that a run passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point<'a> {
    /// A worker is about to reconcile a key.
    Reconcile,
    /// A reconcile has ended, as the text says: `done`, `requeue`, or its error.
    Reconciled {
        /// How it ended.
        ended: &'a str,
    },
    /// A read from the cache is about to look.
    CachedRead {
        /// The resource, as `deployments.apps`.
        resource: &'a str,
        /// The object; none for a list.
        key: Option<&'a Key>,
    },
    /// A read of one object from the cache has looked.
    Found {
        /// The resource, as `deployments.apps`.
        resource: &'a str,
        /// The object.
        key: &'a Key,
        /// Its version; none if it is absent.
        version: Option<&'a str>,
        /// The version that the cache had reached.
        cache: &'a str,
    },
    /// A list from the cache has been made.
    Listed {
        /// The resource, as `deployments.apps`.
        resource: &'a str,
        /// What was asked for: namespace, labels, index and limit, as `in default with app=web`; empty for everything.
        query: &'a str,
        /// The number of objects in it.
        count: usize,
        /// The version that the cache had reached.
        cache: &'a str,
    },
}

/// What a gate says to a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// The run goes on.
    Go,
    /// What was about to be done fails as if a server had answered this. Points after the fact go on all the same.
    Fail(Box<Status>),
}

/// Holds, fails or observes runs.
pub trait Gate: Send + Sync + 'static {
    /// The run goes on when the future completes, as the verdict says.
    fn pass<'a>(&'a self, point: Point<'a>) -> BoxFuture<'a, Verdict>;
}

/// Whether gates are compiled in. Building with `--cfg kubewright_without_gates` leaves them out, to measure what they cost.
#[expect(unexpected_cfgs, reason = "it is for measurements alone")]
const COMPILED_IN: bool = !cfg!(kubewright_without_gates);

/// A gate that is set once, or never.
#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<OnceLock<Arc<dyn Gate>>>);

impl Gates {
    /// Sets the gate, unless there is one.
    pub(crate) fn set(&self, gate: Arc<dyn Gate>) {
        let _ = self.0.set(gate);
    }

    /// Whether there is a gate.
    pub(crate) fn is_set(&self) -> bool {
        self.get().is_some()
    }

    fn get(&self) -> Option<&Arc<dyn Gate>> {
        if COMPILED_IN { self.0.get() } else { None }
    }

    /// Passes the gate, if there is one.
    pub(crate) async fn pass(&self, point: Point<'_>) -> Result<(), kube::Error> {
        let Some(gate) = self.get() else {
            return Ok(());
        };
        match gate.pass(point).await {
            Verdict::Go => Ok(()),
            Verdict::Fail(status) => Err(kube::Error::Api(status)),
        }
    }

    /// Passes a point after the fact, which cannot fail any more.
    pub(crate) async fn observe(&self, point: Point<'_>) {
        let _ = self.pass(point).await;
    }
}

/// Polls within a reconcile, so that [`reconcile`] names it.
pub(crate) fn within<R>(id: Option<&ReconcileId>, work: impl FnOnce() -> R) -> R {
    match id {
        Some(id) => RECONCILE.sync_scope(id.clone(), work),
        None => work(),
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "gate" } else { "none" })
    }
}
