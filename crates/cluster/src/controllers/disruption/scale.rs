//! How many pods there should be: the sum over the controllers of pods, each asked once.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{Resource, ResourceExt};
use kubewright_runtime::{Client, Error, Key};
use serde_json::Value;

use crate::kinds;

/// The number of pods that the controllers of these want, and the names of pods without one.
///
/// # Errors
/// When a controller cannot be found or does not say.
pub(super) async fn expected(
    client: &Client,
    pods: &[Arc<Pod>],
) -> Result<(i32, Vec<String>), Error> {
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    let mut seen = BTreeMap::new();
    let mut unmanaged = Vec::new();
    for pod in pods {
        let Some(owner) = controller_of(&**pod) else {
            unmanaged.push(pod.name_any());
            continue;
        };
        if seen.insert(owner.uid.clone(), ()).is_some() {
            continue;
        }
        let namespace = pod.namespace().unwrap_or_default();
        let found = scale_of(client, &namespace, owner).await?;
        let missing = || Error::msg(format!("found no controllers for pod {:?}", pod.name_any()));
        let (uid, scale) = found.ok_or_else(missing)?;
        scales.insert(uid, scale);
    }
    let total = scales
        .values()
        .fold(0i32, |sum, scale| sum.saturating_add(*scale));
    Ok((total, unmanaged))
}

fn controller_of<K: Resource>(object: &K) -> Option<&OwnerReference> {
    let owners = object.meta().owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// The controller at the top and how many pods it wants. A replica set of a deployment is not at the top.
async fn scale_of(
    client: &Client,
    namespace: &str,
    owner: &OwnerReference,
) -> Result<Option<(String, i32)>, Error> {
    let key = Key::new(namespace, &owner.name);
    let (group, _) = owner.api_version.rsplit_once('/').unwrap_or(("", ""));
    match (group, &*owner.kind) {
        ("apps", "ReplicaSet") => {
            let Some(set) = client
                .get::<ReplicaSet>(&key)
                .await?
                .filter(|s| is(&**s, owner))
            else {
                return Ok(None);
            };
            let above = controller_of(&*set).filter(|above| above.kind == "Deployment");
            if let Some(above) = above {
                let key = Key::new(namespace, &above.name);
                let deployment = client
                    .get::<Deployment>(&key)
                    .await?
                    .filter(|d| is(&**d, above));
                let wanted = deployment.map(|d| d.spec.replicas);
                return Ok(wanted.map(|wanted| (above.uid.clone(), wanted.unwrap_or(1))));
            }
            Ok(Some((owner.uid.clone(), set.spec.replicas.unwrap_or(1))))
        }
        ("apps", "StatefulSet") => {
            let set = client
                .get::<StatefulSet>(&key)
                .await?
                .filter(|s| is(&**s, owner));
            let wanted = set.map(|s| s.spec.replicas);
            Ok(wanted.map(|wanted| (owner.uid.clone(), wanted.unwrap_or(1))))
        }
        ("", "ReplicationController") => {
            let set = client
                .get::<ReplicationController>(&key)
                .await?
                .filter(|s| is(&**s, owner));
            let wanted = set.map(|s| s.spec.as_ref().and_then(|s| s.replicas));
            Ok(wanted.map(|wanted| (owner.uid.clone(), wanted.unwrap_or(1))))
        }
        _ => scale_subresource(client, &key, group, owner).await,
    }
}

fn is<K: Resource>(object: &K, owner: &OwnerReference) -> bool {
    object.meta().uid.as_deref() == Some(&owner.uid)
}

/// Any other kind says by its scale.
async fn scale_subresource(
    client: &Client,
    key: &Key,
    group: &str,
    owner: &OwnerReference,
) -> Result<Option<(String, i32)>, Error> {
    let kinds = kinds::discover(client.kube()).await?;
    let is_it =
        |kind: &&kinds::Kind| kind.resource.group == group && kind.resource.kind == owner.kind;
    let Some(kind) = kinds.iter().find(is_it) else {
        return Ok(None);
    };
    let objects = client.dynamic(&kind.resource);
    let scale: Result<Value, _> = objects.get_subresource(key, "scale").await;
    match scale {
        Ok(scale) if scale["metadata"]["uid"] == *owner.uid => {
            let wanted = scale["spec"]["replicas"].as_i64().unwrap_or(0);
            Ok(Some((
                owner.uid.clone(),
                i32::try_from(wanted).unwrap_or(i32::MAX),
            )))
        }
        Ok(_) => Ok(None),
        Err(error) if error.is_not_found() && kind.can(&["get"]) => Err(Error::msg(format!(
            "{} does not implement the scale subresource",
            kind.resource.plural
        ))),
        Err(error) => Err(error.into()),
    }
}
