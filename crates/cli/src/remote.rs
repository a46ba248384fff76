//! A cluster somewhere else: connecting to it, applying objects, waiting for them, deleting them.

pub(crate) mod apply;
pub(crate) mod connect;
pub(crate) mod remove;
pub(crate) mod wait;

use std::future::Future;

use anyhow::Context as _;
use kube::Api;
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::{self, ApiCapabilities, ApiResource, Scope};
use serde_json::Value;

/// Who the fields of applied objects belong to.
pub(crate) const FIELD_MANAGER: &str = "kubewright";

/// Runs until a future is done.
///
/// # Errors
/// When the runtime cannot be started, or the future fails.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("the async runtime could not be started")?
        .block_on(future)
}

/// An object and where on the server it is.
pub(crate) struct Target {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) object: DynamicObject,
}

impl Target {
    /// Finds the place of an object; none if the server does not know its kind.
    ///
    /// # Errors
    /// When the value is not an object, or the server does not answer.
    pub(crate) async fn find(client: &kube::Client, value: &Value) -> anyhow::Result<Option<Self>> {
        let object: DynamicObject =
            serde_json::from_value(value.clone()).context("this is not a Kubernetes object")?;
        let types = object.types.clone().context("an object has no kind")?;
        let kind = GroupVersionKind::try_from(&types).context("an object has no usable kind")?;
        let found = match discovery::pinned_kind(client, &kind).await {
            Ok(found) => found,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            Err(kube::Error::Discovery(_)) => return Ok(None),
            Err(error) => return Err(error).context("the server cannot be asked for its kinds"),
        };
        let api = place(client, &object, &found);
        Ok(Some(Self { api, object }))
    }

    pub(crate) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// As people call it: `deployment web/front`.
    pub(crate) fn shown(&self) -> String {
        let kind = self
            .object
            .types
            .as_ref()
            .map(|types| types.kind.to_ascii_lowercase());
        let kind = kind.unwrap_or_default();
        match &self.object.metadata.namespace {
            Some(namespace) => format!("{kind} {namespace}/{}", self.name()),
            None => format!("{kind} {}", self.name()),
        }
    }
}

fn place(
    client: &kube::Client,
    object: &DynamicObject,
    (resource, capabilities): &(ApiResource, ApiCapabilities),
) -> Api<DynamicObject> {
    match (&capabilities.scope, &object.metadata.namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), resource),
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), resource),
    }
}
