//! How controllers write: not over the head of others, and with the server's own words when it refuses.

use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{Client, ClientError, IgnoreNotFound};

/// Sends what is different between two states; a conflict if the object is no longer in the first one.
pub(crate) async fn patch_unchanged<K: TypedObject>(
    client: &Client,
    before: &K,
    after: &K,
) -> Result<K, ClientError> {
    // A version that is only in the second state becomes a part of the patch, where the server checks it.
    let mut base = before.clone();
    base.meta_mut().resource_version = None;
    let mut wanted = after.clone();
    wanted.meta_mut().resource_version = before.meta().resource_version.clone();
    client.patch(&base, &wanted).await
}

/// What the server said, or what else went wrong.
pub(crate) fn said(error: &ClientError) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// Writes what is different in an object's status. An object that is gone has nothing to report.
pub(crate) async fn report<K: TypedObject>(
    client: &Client,
    object: &K,
    change: impl FnOnce(&mut K),
) -> Result<(), ClientError> {
    let written = client.modify_status(object, change).await;
    written.ignore_not_found().map(drop)
}
