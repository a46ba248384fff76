//! Carries out what a StatefulSet planned, and tells its users.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{ClientError, Context, Delete, IgnoreNotFound};

use super::plan::Change;
use crate::controllers::revisions::settle::name;
use crate::writes::{patch_unchanged, said};

/// What comes after the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Wait for something to happen.
    Wait,
    /// Try again though nothing happens.
    Retry,
}

/// Carries out changes in their order; the first failure ends them.
pub(super) async fn changes(
    cx: &Context,
    set: &StatefulSet,
    changes: &[Change],
) -> Result<Next, ClientError> {
    let mut next = Next::Wait;
    for change in changes {
        match change {
            Change::CreateClaim(pod, claim) => create_claim(cx, set, pod, claim).await?,
            Change::CreatePod(pod) => match cx.client().create(pod).await {
                // Another pod has the name; it goes away or is adopted before anything else happens.
                Err(error) if error.is_already_exists() => next = Next::Retry,
                Err(error) if error.is_namespace_terminating() => return Ok(Next::Wait),
                result => tell_pod(cx, set, "Create", name(pod), result.map(drop))?,
            },
            Change::AwaitClaim(pod, claim) => {
                let message = format!(
                    "Create Pod {pod} in StatefulSet {} failed error: pvc {claim} is being deleted",
                    name(set)
                );
                cx.event(set, EventKind::Warning, "FailedCreate", message);
                next = Next::Retry;
            }
            Change::DeletePod(pod) => {
                let result = cx.client().delete(&**pod, Delete::background()).await;
                tell_pod(
                    cx,
                    set,
                    "Delete",
                    name(&**pod),
                    result.ignore_not_found().map(drop),
                )?;
            }
            Change::UpdatePod(before, after) => {
                let result = patch_unchanged(cx.client(), &**before, after).await;
                tell_pod(cx, set, "Update", name(&**before), result.map(drop))?;
            }
            Change::UpdateClaim(before, after) => {
                patch_unchanged(cx.client(), &**before, after)
                    .await
                    .map(drop)?;
            }
        }
    }
    Ok(next)
}

async fn create_claim(
    cx: &Context,
    set: &StatefulSet,
    pod: &str,
    claim: &PersistentVolumeClaim,
) -> Result<(), ClientError> {
    let (claim_name, set_name) = (name(claim), name(set));
    match cx.client().create(claim).await {
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => {
            let why = said(&error);
            let message = format!(
                "Create Claim {claim_name} for Pod {pod} in StatefulSet {set_name} failed error: {why}"
            );
            cx.event(set, EventKind::Warning, "FailedCreate", message);
            Err(error)
        }
        Ok(_) => {
            let message =
                format!("Create Claim {claim_name} Pod {pod} in StatefulSet {set_name} success");
            cx.event(set, EventKind::Normal, "SuccessfulCreate", message);
            Ok(())
        }
    }
}

fn tell_pod(
    cx: &Context,
    set: &StatefulSet,
    verb: &str,
    pod: &str,
    result: Result<(), ClientError>,
) -> Result<(), ClientError> {
    let set_name = name(set);
    match &result {
        Ok(()) => {
            let message = format!("{verb} Pod {pod} in StatefulSet {set_name} successful");
            cx.event(
                set,
                EventKind::Normal,
                &format!("Successful{verb}"),
                message,
            );
        }
        Err(error) => {
            let why = said(error);
            let message = format!("{verb} Pod {pod} in StatefulSet {set_name} failed error: {why}");
            cx.event(set, EventKind::Warning, &format!("Failed{verb}"), message);
        }
    }
    result
}
