//! Pods that controllers make and delete, with a word to the users of their owner.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::owners::is_controlled_by;
use kubewright_runtime::{ClientError, Context, Delete, IgnoreNotFound, Query, Selector};

use crate::pods::adopt::key;
use crate::writes::said;

/// How often the cache is looked at until it has caught up, and how long that may take: ten seconds.
const LOOK_EVERY: Duration = Duration::from_millis(200);
const LOOKS: usize = 50;

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
            if error.status().is_none() {
                catch_up(cx, owner, pod).await;
            }
            Err(error)
        }
    }
}

/// Waits until the cache has all pods of an owner that the server has. When an answer was lost, the pod may be there
/// although nobody knows its name; whoever counts before it is seen makes another one in its place.
async fn catch_up<K: TypedObject>(cx: &Context, owner: &K, pod: &Pod) {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let labels: Selector = pod.metadata.labels.clone().into_iter().flatten().collect();
    let query = || Query::all().namespace(&namespace).labels(labels.clone());
    for _ in 0..LOOKS {
        if let Ok(live) = cx.client().live().list::<Pod>(query()).await {
            let cached = cx.client().reader::<Pod>();
            let mut owned = live.iter().filter(|pod| is_controlled_by(owner, *pod));
            if owned.all(|pod| cached.contains(&key(&pod.metadata))) {
                return;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
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
