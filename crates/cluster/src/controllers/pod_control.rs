//! Pods that controllers make and delete, with a word to the users of their owner.

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::{ClientError, Context, Delete, IgnoreNotFound};

use crate::writes::said;

/// Creates a pod and tells the users of its owner. In a namespace that goes away nothing can be created, and nothing
/// needs to be.
pub(super) async fn create_pod<K: TypedObject>(
    cx: &Context,
    owner: &K,
    pod: &Pod,
) -> Result<(), ClientError> {
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
pub(super) async fn delete_pod<K: TypedObject>(
    cx: &Context,
    owner: &K,
    pod: &Pod,
) -> Result<(), ClientError> {
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
