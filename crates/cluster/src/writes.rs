//! How controllers write: not over the head of others, and with the server's own words when it refuses.

use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{Client, ClientError, IgnoreNotFound};

/// Sends what is different between two states; a conflict if the object is no longer in the first one.
pub(crate) async fn patch_unchanged<K: TypedObject>(
    client: &Client,
    before: &K,
    after: &K,
) -> Result<K, ClientError> {
    let patched = client.optimistic_lock().patch(before, after).await?;
    Ok(patched.into_object())
}

/// Puts another state of an object in place of this one: the verb `update`, where the role of a controller has no `patch`. A
/// conflict if the object is no longer in the first state, and nothing at all if both are the same.
pub(crate) async fn replace<K: TypedObject + PartialEq>(
    client: &Client,
    before: &K,
    after: K,
) -> Result<K, ClientError> {
    if *before == after {
        return Ok(after);
    }
    client.update(&after).await
}

/// The server's message, or what else went wrong.
pub(crate) fn said(error: &ClientError) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// Writes an object's status if it is different: the verb `update`, as roles of controllers have it. An object that is gone has nothing to report, and one that has changed since
/// it was read is a conflict: a controller that was shown the past must not write that over the present.
pub(crate) async fn report<K: TypedObject + PartialEq>(
    client: &Client,
    object: &K,
    change: impl FnOnce(&mut K),
) -> Result<(), ClientError> {
    let mut changed = object.clone();
    change(&mut changed);
    if changed == *object {
        return Ok(());
    }
    let written = client.update_status(&changed).await;
    written.ignore_not_found().map(drop)
}
