//! The built-in controllers that keep pods running. Each is a small reconciler around a pure plan.

pub(crate) mod daemonset;
pub(crate) mod deployment;
#[cfg(test)]
mod live;
pub(crate) mod replicaset;
pub(crate) mod revisions;
pub(crate) mod statefulset;

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{ClientError, Context, Delete, IgnoreNotFound};

use crate::writes::said;

/// How many objects of a kind are reconciled at once.
const WORKERS: usize = 5;

/// A count as statuses carry it: zero is left out.
pub(crate) fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// Creates a pod and tells the users of its owner. In a namespace that goes away nothing can be created, and nothing
/// needs to be.
async fn create_pod<K: TypedObject>(cx: &Context, owner: &K, pod: &Pod) -> Result<(), ClientError> {
    match cx.client().create(pod).await {
        Ok(pod) => {
            let name = pod.metadata.name.unwrap_or_default();
            cx.event(
                owner,
                EventKind::Normal,
                "SuccessfulCreate",
                format!("Created pod: {name}"),
            );
            Ok(())
        }
        Err(error) if error.is_namespace_terminating() => Ok(()),
        Err(error) => {
            let message = format!("Error creating: {}", said(&error));
            cx.event(owner, EventKind::Warning, "FailedCreate", message);
            Err(error)
        }
    }
}

/// Deletes a pod and tells the users of its owner; one that is gone is deleted.
async fn delete_pod<K: TypedObject>(cx: &Context, owner: &K, pod: &Pod) -> Result<(), ClientError> {
    match cx
        .client()
        .delete(pod, Delete::background())
        .await
        .ignore_not_found()
    {
        Ok(None) => Ok(()),
        Ok(Some(())) => {
            let name = pod.metadata.name.as_deref().unwrap_or_default();
            cx.event(
                owner,
                EventKind::Normal,
                "SuccessfulDelete",
                format!("Deleted pod: {name}"),
            );
            Ok(())
        }
        Err(error) => {
            let message = format!("Error deleting: {}", said(&error));
            cx.event(owner, EventKind::Warning, "FailedDelete", message);
            Err(error)
        }
    }
}
