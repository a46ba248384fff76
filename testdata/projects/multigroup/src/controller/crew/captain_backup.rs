//! Makes the world as each Captain says.

use std::sync::Arc;

use kubewright::prelude::*;
use kubewright::runtime::conditions::{Condition, Status};

use crate::api::crew::v1::captain::Captain;

/// Holds a Captain until [`clean_up`] is done.
pub const FINALIZER: &str = "crew.testproject.org/captain-backup-finalizer";

/// Runs when a Captain changes. For what it makes, add `.owns::<Deployment>()` and the like: what it may do
/// follows from that. For anything else, put `#[kubewright::rbac(..)]` above the reconciler.
#[kubewright::controller]
fn captain_backup() -> Controller {
    Controller::of::<Captain>("captain-backup")
        // The status is not part of a generation: writing it does not lead to another run.
        .when(Predicate::generation_changed())
        .reconciler(CaptainBackupReconciler)
}

/// Reconciles each Captain.
#[derive(Debug)]
struct CaptainBackupReconciler;

impl Reconciler<Captain> for CaptainBackupReconciler {
    async fn reconcile(&self, object: Arc<Captain>, cx: &Context) -> Result<Outcome> {
        let apply = async |object: Arc<Captain>| apply(&object, cx).await;
        let clean_up = async |object: Arc<Captain>| clean_up(&object, cx).await;
        match finalize(cx.client(), object, FINALIZER, apply, clean_up).await? {
            Finalized::Applied(outcome) | Finalized::NotYet(outcome) => Ok(outcome),
            _ => Ok(Outcome::done()),
        }
    }
}

/// Makes what the spec asks for, and says in the status what became of it.
async fn apply(object: &Captain, cx: &Context) -> Result<Outcome> {
    // Your code: create and update what belongs to this object, with `cx.client()`.
    report_ready(object, "all is as the spec says", cx).await?;
    Ok(Outcome::done())
}

/// Undoes what lives outside of the cluster, before the object goes. What it owns in the cluster goes by itself.
async fn clean_up(_object: &Captain, _cx: &Context) -> Result<Cleanup<Outcome>> {
    // Your code. `Cleanup::NotYet(Outcome::requeue())` looks again later.
    Ok(Cleanup::Done)
}

/// Writes into the status that it is ready, and tells of it in an event, if that is new.
async fn report_ready(object: &Captain, message: &str, cx: &Context) -> Result<()> {
    let reason = "Reconciled";
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    status.observed_generation = object.metadata.generation;
    let ready = Condition::new("Ready", Status::True, reason)
        .message(message)
        .generation(object.metadata.generation);
    conditions::set(&mut status.conditions, cx.now(), ready);
    if status == before {
        return Ok(());
    }
    let change = |object: &mut Captain| object.status = Some(status);
    cx.client().modify_status(object, change).await?;
    cx.event(object, EventKind::Normal, reason, message);
    Ok(())
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
