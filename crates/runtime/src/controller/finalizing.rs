//! Reconciles and clean-ups under a finalizer, compiled for a kind when a controller of it asks for a finalizer and not before.

use std::sync::Arc;

use kubewright_cache::source::BoxFuture;

use crate::client::{Object, Objects};
use crate::finalizer::{Cleanup, FinalizeError, FinalizeFailure, Finalized};
use crate::reconciler::Reconciler;
use crate::{Context, Error, Outcome};

/// What a reconciler does with an object that lives, and with one that is being deleted.
pub(super) trait Steps<K>: Send + Sync {
    fn reconcile<'a>(
        &'a self,
        object: Arc<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;

    fn cleanup<'a>(
        &'a self,
        object: Arc<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Cleanup<Outcome>, Error>>;
}

impl<K: Object, T: Reconciler<K>> Steps<K> for T {
    fn reconcile<'a>(
        &'a self,
        object: Arc<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(Reconciler::reconcile(self, object, cx))
    }

    fn cleanup<'a>(
        &'a self,
        object: Arc<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Cleanup<Outcome>, Error>> {
        Box::pin(Reconciler::cleanup(self, object, cx))
    }
}

/// Decides which step an object needs, and writes the finalizer before the first and after the last.
pub(super) trait Finalizing<K>: Send + Sync {
    fn run<'a>(
        &'a self,
        objects: Objects<K>,
        object: Arc<K>,
        steps: &'a dyn Steps<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>>;
}

/// The finalizer of this name. Every object has it until the reconciler has cleaned up.
pub(super) struct Named(pub(super) Box<str>);

impl<K: Object> Finalizing<K> for Named {
    fn run<'a>(
        &'a self,
        objects: Objects<K>,
        object: Arc<K>,
        steps: &'a dyn Steps<K>,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(async move {
            let reconcile = async |object| steps.reconcile(object, cx).await;
            let cleanup = async |object| steps.cleanup(object, cx).await;
            let finalized = objects.finalize(object, &self.0, reconcile, cleanup).await;
            outcome(finalized)
        })
    }
}

fn outcome(finalized: Result<Finalized<Outcome>, FinalizeError<Error>>) -> Result<Outcome, Error> {
    match finalized {
        Ok(Finalized::Applied(outcome) | Finalized::NotYet(outcome)) => Ok(outcome),
        Ok(Finalized::Removed | Finalized::Absent) => Ok(Outcome::done()),
        // A reconcile fails in its own words, with a finalizer or without.
        Err(FinalizeError {
            failure: FinalizeFailure::Apply(error),
            ..
        }) => Err(error),
        Err(error) => Err(error.into()),
    }
}
