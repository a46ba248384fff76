//! How controllers write: not over the head of others, and with the server's own words when it refuses.

use kube::Resource;
use kube::api::{Patch, PatchParams, PostParams, Request};
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{Client, ClientError, IgnoreNotFound};
use serde::Serialize;
use serde::de::IgnoredAny;

/// Sends what is different between two states; a conflict if the object is no longer in the first one.
pub(crate) async fn patch_unchanged<K: TypedObject>(
    client: &Client,
    before: &K,
    after: &K,
) -> Result<K, ClientError> {
    let patched = client.optimistic_lock().patch(before, after).await?;
    Ok(patched.into_object())
}

/// The server's message, or what else went wrong.
pub(crate) fn said(error: &ClientError) -> String {
    match error.status() {
        Some(status) => status.message.clone(),
        None => error.to_string(),
    }
}

/// Writes what is different in an object's status. An object that is gone has nothing to report, and one that has changed since
/// it was read is a conflict: a controller that was shown the past must not write that over the present.
pub(crate) async fn report<K: TypedObject>(
    client: &Client,
    object: &K,
    change: impl FnOnce(&mut K),
) -> Result<(), ClientError> {
    let written = client.optimistic_lock().modify_status(object, change).await;
    written.ignore_not_found().map(drop)
}

/// Patches the status of an object. What comes back is not read: nodes write far more often than they need to know what
/// became of it, and to decode a whole object takes longer than to say what is new.
///
/// # Errors
/// What the server says.
pub(crate) async fn patch_status<K: Resource<DynamicType = ()>>(
    client: &kube::Client,
    (namespace, name): (Option<&str>, &str),
    params: &PatchParams,
    patch: &Patch<impl Serialize>,
) -> Result<(), kube::Error> {
    let request = Request::new(K::url_path(&(), namespace));
    let request = request.patch_subresource("status", name, params, patch);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let _: IgnoredAny = client.request(request).await?;
    Ok(())
}

/// Creates an object. What comes back is not read.
///
/// # Errors
/// What the server says.
pub(crate) async fn create<K: Resource<DynamicType = ()> + Serialize>(
    client: &kube::Client,
    namespace: Option<&str>,
    params: &PostParams,
    object: &K,
) -> Result<(), kube::Error> {
    let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
    let request = Request::new(K::url_path(&(), namespace)).create(params, body);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let _: IgnoredAny = client.request(request).await?;
    Ok(())
}
