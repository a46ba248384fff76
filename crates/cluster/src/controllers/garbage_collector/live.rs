//! What the collector asks of the server and does there. Every change names the uid and the version that was looked at.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewright_runtime::{Client, Environment, Error};
use serde_json::{Value, json};

use super::graph::{Blocking, Identity, Node, Phase, Propagation, Reference, Uid};
use crate::identity::Acting;
use crate::kinds::{Kind, Reach};

/// Held by owners that wait for their dependents to go.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// Held by owners that wait for their dependents to forget them.
pub(super) const ORPHAN: &str = "orphan";

/// The kinds by group and name. Versions do not matter: an object is the same in all of them.
#[derive(Debug, Default)]
pub(super) struct Kinds(BTreeMap<(String, String), Kind>);

/// An object as the server has it.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) node: Node,
    meta: ObjectMeta,
    kind: Kind,
}

impl Kinds {
    pub(super) fn new(kinds: &[Kind]) -> Self {
        let key = |kind: &Kind| (kind.resource.group.clone(), kind.resource.kind.clone());
        Self(kinds.iter().map(|kind| (key(kind), kind.clone())).collect())
    }

    pub(super) fn get(&self, group: &str, kind: &str) -> Option<&Kind> {
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }
}

/// An object as the collector sees it; nothing when it has no uid.
pub(super) fn node(resource: &ApiResource, meta: &ObjectMeta) -> Option<Node> {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    let has = |name: &str| finalizers.iter().any(|f| f == name);
    let on_delete = match () {
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    let phase = match (&meta.deletion_timestamp, on_delete) {
        (None, _) => Phase::Alive,
        (Some(_), Propagation::Orphan) => Phase::Orphaning,
        (Some(_), Propagation::Foreground) => Phase::WaitingForDependents,
        (Some(_), Propagation::Background) => Phase::Going,
    };
    let owners = meta.owner_references.iter().flatten();
    Some(Node {
        identity: Identity {
            api_version: resource.api_version.as_str().into(),
            kind: resource.kind.as_str().into(),
            namespace: meta.namespace.as_deref().unwrap_or_default().into(),
            name: meta.name.as_deref()?.into(),
            uid: meta.uid.as_deref()?.into(),
        },
        owners: owners
            .map(|owner| Reference {
                api_version: owner.api_version.clone(),
                kind: owner.kind.clone(),
                name: owner.name.clone(),
                uid: owner.uid.as_str().into(),
                blocking: match owner.block_owner_deletion {
                    Some(true) => Blocking::Yes,
                    _ => Blocking::No,
                },
            })
            .collect(),
        phase,
        on_delete,
    })
}

fn api(client: &Client, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
    let kube = client.kube().clone();
    match kind.reach {
        Reach::Namespaced => Api::namespaced_with(kube, namespace, &kind.resource),
        Reach::Cluster => Api::all_with(kube, &kind.resource),
    }
}

/// The object of this name, as the server has it now.
pub(super) async fn get(
    client: &Client,
    kind: &Kind,
    namespace: &str,
    name: &str,
) -> Result<Option<Found>, Error> {
    let found = api(client, kind, namespace).get_metadata_opt(name).await?;
    Ok(found.and_then(|object| Found::new(kind, object)))
}

impl Found {
    fn new(kind: &Kind, object: PartialObjectMeta<DynamicObject>) -> Option<Self> {
        Some(Self {
            node: node(&kind.resource, &object.metadata)?,
            meta: object.metadata,
            kind: kind.clone(),
        })
    }

    fn name(&self) -> &str {
        &self.node.identity.name
    }

    async fn patch(&self, client: &Client, mut metadata: Value) -> Result<Option<Self>, Error> {
        metadata["uid"] = json!(self.meta.uid);
        metadata["resourceVersion"] = json!(self.meta.resource_version);
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        let api = api(client, &self.kind, &self.node.identity.namespace);
        let params = PatchParams::default();
        match api.patch_metadata(self.name(), &params, &patch).await {
            Ok(object) => Ok(Self::new(&self.kind, object)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Takes owners out of the references of an object.
pub(super) async fn forget_owners(
    client: &Client,
    found: &Found,
    lost: &[Uid],
) -> Result<(), Error> {
    let owners = found.meta.owner_references.iter().flatten();
    let kept: Vec<_> = owners
        .filter(|r| !lost.iter().any(|uid| **uid == *r.uid))
        .collect();
    let owners = json!({ "ownerReferences": kept });
    found.patch(client, owners).await.map(drop)
}

/// Lets the references of an object hold up nobody.
pub(super) async fn unblock(client: &Client, found: &Found) -> Result<Option<Found>, Error> {
    let mut owners = found.meta.owner_references.clone().unwrap_or_default();
    for owner in &mut owners {
        owner.block_owner_deletion = Some(false);
    }
    found
        .patch(client, json!({ "ownerReferences": owners }))
        .await
}

/// Takes a finalizer off an object.
pub(super) async fn remove_finalizer(
    client: &Client,
    found: &Found,
    finalizer: &str,
) -> Result<(), Error> {
    let finalizers = found.meta.finalizers.iter().flatten();
    let kept: Vec<_> = finalizers.filter(|f| *f != finalizer).collect();
    if Some(kept.len()) == found.meta.finalizers.as_ref().map(Vec::len) {
        return Ok(());
    }
    let finalizers = json!({ "finalizers": kept });
    found.patch(client, finalizers).await.map(drop)
}

/// Deletes the very object that was looked at, in the state it was in.
pub(super) async fn delete(client: &Client, found: &Found, how: Propagation) -> Result<(), Error> {
    let policy = match how {
        Propagation::Background => PropagationPolicy::Background,
        Propagation::Foreground => PropagationPolicy::Foreground,
        Propagation::Orphan => PropagationPolicy::Orphan,
    };
    let params = DeleteParams {
        propagation_policy: Some(policy),
        preconditions: Some(Preconditions {
            uid: found.meta.uid.clone(),
            resource_version: found.meta.resource_version.clone(),
        }),
        ..DeleteParams::default()
    };
    let api = api(client, &found.kind, &found.node.identity.namespace);
    tracing::debug!(object = ?found.node.identity, "its owners are gone");
    match api.delete(found.name(), &params).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Tells of a dependent whose owner is in another namespace.
pub(super) async fn report(
    client: &Client,
    environment: &Environment,
    dependent: &Identity,
    owner: &Reference,
) -> Result<(), Error> {
    let now = environment.now();
    // Events about objects of the cluster are in the default namespace.
    let namespace = match &*dependent.namespace {
        "" => "default",
        namespace => namespace,
    };
    let mut event = Event {
        involved_object: ObjectReference {
            api_version: Some(dependent.api_version.to_string()),
            kind: Some(dependent.kind.to_string()),
            namespace: Some(dependent.namespace.to_string()).filter(|n| !n.is_empty()),
            name: Some(dependent.name.to_string()),
            uid: Some(dependent.uid.to_string()),
            ..ObjectReference::default()
        },
        type_: Some("Warning".to_owned()),
        reason: Some("OwnerRefInvalidNamespace".to_owned()),
        message: Some(complaint(dependent, owner)),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource {
            component: Some("garbage-collector-controller".to_owned()),
            host: None,
        }),
        ..Event::default()
    };
    event.metadata.name = Some(format!("{}.{:x}", dependent.name, now.as_nanosecond()));
    event.metadata.namespace = Some(namespace.to_owned());
    let (acting, params) = (Acting::of(client.kube()), PostParams::default());
    let posted = acting.post::<Event>(Some(namespace), &params, &event);
    match posted.await {
        // The namespace is terminating, or the event was written already.
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 409) => Ok(()),
        other => other.map_err(Error::from),
    }
}

fn complaint(dependent: &Identity, owner: &Reference) -> String {
    let namespace = &dependent.namespace;
    format!(
        "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {}] does not exist in namespace {namespace:?}",
        owner.api_version, owner.kind, owner.name, owner.uid
    )
}
