//! Finds what a controller owns, adopts matching orphans and releases what matches no more.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::owners::controller_of;
use kubewright_runtime::{Client, ClientError, Event, Index, Key, Predicate, Query, Watch};

use super::claim::{
    Claim, Match, adopted, claim, controller_reference, released, selector, selects,
};
use crate::writes::patch_unchanged;

/// The index of objects by the uid of their controller, or by their namespace where they have none.
const BY_CONTROLLER: &str = "controller";

/// An object with a selector for what it owns.
pub(crate) trait Selecting: TypedObject {
    /// What it selects; nothing if it has no selector.
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>>;
}

/// Why something could not be claimed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    /// The cache or the server refused.
    #[error("claiming failed")]
    Client(#[source] ClientError),
    /// The cache shows an owner that is no more.
    #[error("{0} is gone or going; it adopts nothing")]
    OwnerGone(String),
}

/// What `owner` owns after claiming all that `matches`, in the order of names. Before the first adoption the owner is
/// read from the server: an owner that was deleted and made anew must not take anything with its old uid.
pub(crate) async fn claim_all<K, T>(
    client: &Client,
    owner: &K,
    matches: impl Fn(&T) -> bool,
) -> Result<Vec<Arc<T>>, ClaimError>
where
    K: TypedObject,
    T: TypedObject,
{
    let mut checked = false;
    let mut ours = Vec::new();
    for object in candidates::<T>(client, owner.meta()).await? {
        match claim(owner, &*object, Match::from(matches(&object))) {
            Claim::Ours => ours.push(object),
            Claim::NotOurs => {}
            Claim::Release => {
                let owners = released(object.meta(), &controller_reference(owner).uid);
                hand_over(client, &*object, owners).await?;
            }
            Claim::Adopt => {
                if !std::mem::replace(&mut checked, true) {
                    check_owner(client, owner).await?;
                }
                let owners = adopted(object.meta(), controller_reference(owner));
                ours.extend(hand_over(client, &*object, owners).await?.map(Arc::new));
            }
        }
    }
    ours.sort_by(|one, other| one.meta().name.cmp(&other.meta().name));
    Ok(ours)
}

/// What a controller of this uid owns, as the cache has it.
pub(crate) async fn controlled_by<T: TypedObject>(
    client: &Client,
    uid: &str,
) -> Result<Vec<Arc<T>>, ClientError> {
    add_index::<T>(client);
    client.list(Query::all().index(BY_CONTROLLER, uid)).await
}

/// What an owner may claim: its own, and the orphans of its namespace.
async fn candidates<T: TypedObject>(
    client: &Client,
    owner: &ObjectMeta,
) -> Result<Vec<Arc<T>>, ClaimError> {
    let uid = owner.uid.as_deref().unwrap_or_default();
    let mut found = controlled_by(client, uid)
        .await
        .map_err(ClaimError::Client)?;
    let namespace = owner.namespace.as_deref().unwrap_or_default();
    let orphans = controlled_by(client, &orphans_of(namespace)).await;
    found.extend(orphans.map_err(ClaimError::Client)?);
    Ok(found)
}

/// The value under which orphans are found. No uid looks like it.
fn orphans_of(namespace: &str) -> String {
    format!("orphans/{namespace}")
}

/// Adds the index. The first of many controllers does it; for the others it is there already.
fn add_index<T: TypedObject>(client: &Client) {
    let index = Index::of_metadata(|object| {
        let owners = object.owners();
        let controller = owners.into_iter().find(|owner| owner.controller);
        let namespace = object.key().namespace().unwrap_or_default();
        vec![controller.map_or_else(|| orphans_of(namespace), |owner| owner.uid)]
    });
    let _ = client.add_index::<T>(BY_CONTROLLER, index);
}

/// Gives an object other owners; none if it is gone.
async fn hand_over<T: TypedObject>(
    client: &Client,
    object: &T,
    owners: Vec<OwnerReference>,
) -> Result<Option<T>, ClaimError> {
    let mut after = object.clone();
    after.meta_mut().owner_references = Some(owners);
    match patch_unchanged(client, object, &after).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(ClaimError::Client(error)),
    }
}

async fn check_owner<K: TypedObject>(client: &Client, owner: &K) -> Result<(), ClaimError> {
    let live: Option<K> = client
        .live()
        .get(&key(owner.meta()))
        .await
        .map_err(ClaimError::Client)?;
    let same = live.filter(|live| {
        live.meta().uid == owner.meta().uid && live.meta().deletion_timestamp.is_none()
    });
    let gone = || ClaimError::OwnerGone(owner.meta().name.clone().unwrap_or_default());
    same.map(drop).ok_or_else(gone)
}

/// The key of an object in a namespace.
pub(crate) fn key(metadata: &ObjectMeta) -> Key {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => Key::new(namespace, name),
        None => Key::cluster(name),
    }
}

/// A watch of objects without a controller: each leads to all that might adopt it.
pub(crate) fn orphans<K: Selecting, T: TypedObject>() -> Watch<T> {
    let is_orphan = |event: &Event<T>| {
        let owners = event.object().owners();
        !owners.iter().any(|owner| owner.controller)
    };
    Watch::of::<T>()
        .when(Predicate::new(is_orphan))
        .map(|object: &T, client| {
            // A change from orphan to owned asks about the state before as well; its owner hears of it anyway.
            match controller_of(object) {
                Some(_) => Vec::new(),
                None => adopters::<K>(client, object.meta()),
            }
        })
}

fn adopters<K: Selecting>(client: &Client, orphan: &ObjectMeta) -> Vec<Key> {
    let owners = client.reader::<K>().snapshot();
    let namespace = orphan.namespace.as_deref();
    let near = owners
        .iter()
        .filter(|owner| owner.key().namespace() == namespace);
    let selecting = near.filter(|owner| {
        let selector = owner
            .value()
            .and_then(|owner| selector(&*owner.label_selector()?));
        selector.is_some_and(|selector| selects(&selector, orphan))
    });
    selecting.map(|owner| owner.key().clone()).collect()
}
