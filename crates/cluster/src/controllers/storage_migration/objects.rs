//! The objects of a resource: read by pages, and written unchanged.

use std::time::Duration;

use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use kubewright_runtime::Client;
use serde_json::json;

use crate::kinds::{Kind, Reach};

/// Most objects that are read, and written, at once.
const PAGE: u32 = 500;
/// Under which name objects are written.
const MANAGER: &str = "storage-version-migrator-controller";

/// A page of objects.
#[derive(Debug)]
pub(super) enum Page {
    /// These, and where the next page begins if there is one.
    Of {
        found: Vec<PartialObjectMeta<DynamicObject>>,
        next: Option<String>,
    },
    /// The list that it would be of is too old.
    Expired,
}

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum RewriteError {
    /// The server cannot at the moment.
    #[error("an object cannot be written at the moment")]
    Later {
        /// When to try again, if the server says so.
        after: Option<Duration>,
        #[source]
        source: kube::Error,
    },
    /// The server does not take it as it is.
    #[error("{why}")]
    Refused { why: String },
}

/// The newest version of a resource's list.
pub(super) async fn newest_version(client: &Client, kind: &Kind) -> Result<String, kube::Error> {
    let one = ListParams::default().limit(1);
    let list = all(client, kind).list_metadata(&one).await?;
    Ok(list.metadata.resource_version.unwrap_or_default())
}

/// Reads a page of the objects of a resource.
pub(super) async fn page(
    client: &Client,
    kind: &Kind,
    from: Option<String>,
) -> Result<Page, kube::Error> {
    let mut params = ListParams::default().limit(PAGE);
    params.continue_token = from;
    match all(client, kind).list_metadata(&params).await {
        Ok(list) => Ok(Page::Of {
            next: list.metadata.continue_.filter(|next| !next.is_empty()),
            found: list.items,
        }),
        Err(kube::Error::Api(status)) if status.code == 410 => Ok(Page::Expired),
        Err(error) => Err(error),
    }
}

/// Writes an object as it is: by an apply of nothing but its identity, which changes no field and nobody's ownership. What
/// has a later version than `until`, was changed, deleted or made anew, has been written since and is left alone.
pub(super) async fn rewrite(
    client: &Client,
    kind: &Kind,
    object: &PartialObjectMeta<DynamicObject>,
    until: u64,
) -> Result<(), RewriteError> {
    let metadata = &object.metadata;
    let version = metadata.resource_version.as_deref().unwrap_or_default();
    let version: u64 = version.parse().map_err(|_| RewriteError::Refused {
        why: format!("failed to parse resource version {version:?}"),
    })?;
    if version > until {
        return Ok(());
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    // Without the uid an object that was deleted would be made again.
    let body = json!({
        "apiVersion": kind.resource.api_version, "kind": kind.resource.kind,
        "metadata": {
            "name": name, "namespace": metadata.namespace,
            "uid": metadata.uid, "resourceVersion": metadata.resource_version,
        },
    });
    let kube = client.kube().clone();
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let objects: Api<DynamicObject> = match kind.reach {
        Reach::Namespaced => Api::namespaced_with(kube, namespace, &kind.resource),
        Reach::Cluster => Api::all_with(kube, &kind.resource),
    };
    let (params, patch) = (PatchParams::apply(MANAGER), Patch::Apply(body));
    match objects.patch_metadata(name, &params, &patch).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(RewriteError::of(error)),
    }
}

impl RewriteError {
    /// Tells what passes from what does not (`storageversionmigrator.go: isRetriableError`).
    fn of(source: kube::Error) -> Self {
        let kube::Error::Api(status) = &source else {
            return Self::Later {
                after: None,
                source,
            };
        };
        if !matches!(status.code, 429 | 500 | 503 | 504) {
            return Self::Refused {
                why: status.message.clone(),
            };
        }
        let seconds = status.details.as_ref().map(|d| d.retry_after_seconds);
        let after = seconds.filter(|seconds| *seconds > 0);
        Self::Later {
            after: after.map(|seconds| Duration::from_secs(seconds.into())),
            source,
        }
    }
}

/// The objects of a resource in all namespaces.
fn all(client: &Client, kind: &Kind) -> Api<DynamicObject> {
    Api::all_with(client.kube().clone(), &kind.resource)
}
