//! What an autoscaler scales: anything with a `scale`.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference;
use k8s_openapi::api::core::v1::ReplicationController;
use kube::core::ApiResource;
use kubewright_runtime::{Client, ClientError, Key};

use crate::kinds;
use crate::writes::said;

/// Why the scale of a target cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{}", said(.0))]
    Scale(ClientError),
    #[error(transparent)]
    Discovery(kube::Error),
    #[error("no matches for kind {kind:?} in group {group:?}")]
    UnknownKind { kind: String, group: String },
}

/// A target, and its scale as it was read.
#[derive(Debug)]
pub(super) struct Target {
    resource: ApiResource,
    key: Key,
    scale: Scale,
}

impl Target {
    /// Reads the scale of what an autoscaler refers to.
    ///
    /// # Errors
    /// When the kind is not served, or the server does not return the scale.
    pub(super) async fn find(
        client: &Client,
        namespace: &str,
        to: &CrossVersionObjectReference,
    ) -> Result<Self, TargetError> {
        let version = to.api_version.as_deref().unwrap_or_default();
        let group = version.rsplit_once('/').map_or("", |(group, _)| group);
        let resource = resource(client, group, &to.kind).await?;
        let key = Key::new(namespace, &to.name);
        let scale = client
            .dynamic(&resource)
            .get_subresource(&key, "scale")
            .await;
        let scale = scale.map_err(TargetError::Scale)?;
        Ok(Self {
            resource,
            key,
            scale,
        })
    }

    /// How many replicas there should be.
    pub(super) fn wanted(&self) -> i32 {
        let spec = self.scale.spec.as_ref();
        spec.and_then(|spec| spec.replicas).unwrap_or(0)
    }

    /// How many replicas there are.
    pub(super) fn there(&self) -> i32 {
        self.scale
            .status
            .as_ref()
            .map_or(0, |status| status.replicas)
    }

    /// Which pods it counts; empty if it does not say.
    pub(super) fn selector(&self) -> &str {
        let status = self.scale.status.as_ref();
        let selector = status.and_then(|status| status.selector.as_deref());
        selector.unwrap_or_default()
    }

    /// Asks for another number of replicas; refused if somebody else changed the target meanwhile.
    ///
    /// # Errors
    /// When the server does not take it.
    pub(super) async fn rescale(&self, client: &Client, replicas: i32) -> Result<(), TargetError> {
        let mut scale = self.scale.clone();
        scale.spec.get_or_insert_default().replicas = Some(replicas);
        let objects = client.dynamic(&self.resource);
        let written = objects.update_subresource(&self.key, "scale", &scale).await;
        written.map(drop).map_err(TargetError::Scale)
    }
}

/// Where objects of a kind are, at the version that the server likes best.
///
/// # Errors
/// When the server has no such kind, or does not answer.
pub(super) async fn resource(
    client: &Client,
    group: &str,
    kind: &str,
) -> Result<ApiResource, TargetError> {
    Ok(match (group, kind) {
        ("apps", "Deployment") => ApiResource::erase::<Deployment>(&()),
        ("apps", "ReplicaSet") => ApiResource::erase::<ReplicaSet>(&()),
        ("apps", "StatefulSet") => ApiResource::erase::<StatefulSet>(&()),
        ("", "ReplicationController") => ApiResource::erase::<ReplicationController>(&()),
        _ => {
            let kinds = kinds::discover(client.kube()).await;
            let kinds = kinds.map_err(TargetError::Discovery)?;
            let is_it =
                |known: &kinds::Kind| known.resource.group == group && known.resource.kind == kind;
            let found = kinds.into_iter().find(is_it);
            let unknown = || TargetError::UnknownKind {
                kind: kind.to_owned(),
                group: group.to_owned(),
            };
            found.ok_or_else(unknown)?.resource
        }
    })
}
