//! Places where a run can be held, delayed or stopped from outside: for simulation and tests.
//!
//! Calls of the API pass the `tower` service of the `kube::Client`, and states on their way into the cache pass a
//! [`Source`](kubewright_cache::source::Source); both can be replaced. What is left passes here: cached reads, writes before and
//! after their answer, and the steps of workers. Unused, each costs one look at an empty option.

use std::fmt;
use std::sync::Arc;

use kubewright_cache::Key;
use kubewright_cache::source::BoxFuture;

/// A point that a run passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Point<'a> {
    /// A read from the cache is about to look.
    CachedRead {
        /// The resource, as `deployments.apps`.
        resource: &'a str,
        /// The object; none for a list.
        key: Option<&'a Key>,
    },
    /// A write is about to be sent.
    Write {
        /// What is asked for.
        verb: &'static str,
        /// The resource.
        resource: &'a str,
        /// Namespace and name.
        name: &'a str,
    },
    /// The answer of a write has come, and nobody knows of it yet.
    Wrote {
        /// What was asked for.
        verb: &'static str,
        /// The resource.
        resource: &'a str,
        /// Namespace and name.
        name: &'a str,
    },
    /// A worker is about to reconcile a key.
    Step {
        /// The controller.
        controller: &'a str,
        /// The key.
        key: &'a Key,
    },
}

/// Whoever holds, delays or observes runs.
pub trait Seam: Send + Sync + 'static {
    /// The run goes on when the future completes.
    fn pass<'a>(&'a self, point: Point<'a>) -> BoxFuture<'a, ()>;
}

/// A seam, or none.
#[derive(Clone, Default)]
pub(crate) struct Seams(pub(crate) Option<Arc<dyn Seam>>);

impl Seams {
    pub(crate) async fn pass(&self, point: Point<'_>) {
        if let Some(seam) = &self.0 {
            seam.pass(point).await;
        }
    }
}

impl fmt::Debug for Seams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "seam" } else { "none" })
    }
}
