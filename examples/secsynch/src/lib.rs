//! Copies a Secret into other namespaces and keeps the copies as they should be.
//!
//! A copy carries an annotation with the SecSynch that made it. A Secret without it is somebody else's and is never
//! written or deleted.

mod demo;
mod resource;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kubewright::cache::Index;
use kubewright::prelude::*;

pub use demo::run;
pub use resource::{SecSynch, SecSynchSpec, SecSynchStatus};

/// Holds a SecSynch until its copies are deleted.
pub const FINALIZER: &str = "tutorial.study.dev/copies";
/// Says on a copy which SecSynch made it, as `namespace/name`.
pub const COPIED_BY: &str = "tutorial.study.dev/copied-by";

/// Keeps the copies of each SecSynch.
#[derive(Debug)]
pub struct SecSynchReconciler;

impl Reconciler<SecSynch> for SecSynchReconciler {
    async fn reconcile(&self, synch: Arc<SecSynch>, cx: &Context) -> Result<Outcome> {
        let apply = async |synch: Arc<SecSynch>| apply(&synch, cx).await;
        let clean_up = async |_| {
            delete_copies(&BTreeSet::new(), cx).await?;
            Ok::<_, ClientError>(Cleanup::Done)
        };
        match finalize(cx.client(), synch, FINALIZER, apply, clean_up).await? {
            Finalized::Applied(outcome) => Ok(outcome),
            _ => Ok(Outcome::done()),
        }
    }
}

async fn apply(synch: &SecSynch, cx: &Context) -> Result<Outcome, ClientError> {
    let source = cx.client().get::<Secret>(&synch.spec.source()).await?;
    let wanted = source.as_ref().map(|_| synch.spec.copies());
    let deleted = delete_copies(&wanted.unwrap_or_default(), cx).await?;
    let (made, outcome) = match &source {
        Some(source) => copy_all(source, synch, cx).await?,
        None => {
            let message = format!("there is no Secret {:?}", synch.spec.source().as_str());
            cx.event(synch, EventKind::Warning, "SourceMissing", message);
            (0, Outcome::done())
        }
    };
    if deleted + made > 0 {
        let last_sync_time = Some(Time(cx.now()));
        let told = cx.client().modify_status(synch, |synch| {
            synch.status = Some(SecSynchStatus { last_sync_time });
        });
        told.await?;
    }
    Ok(outcome)
}

/// Makes all copies as they should be, and says how many were not.
async fn copy_all(
    source: &Secret,
    synch: &SecSynch,
    cx: &Context,
) -> Result<(usize, Outcome), ClientError> {
    let (mut made, mut outcome) = (0, Outcome::done());
    for key in synch.spec.copies() {
        match copy(source, &key, synch, cx).await {
            Ok(Change::Unchanged) => {}
            Ok(_) => made += 1,
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => {
                let namespace = key.namespace().unwrap_or_default();
                let message = format!("no such namespace: {namespace}");
                cx.event(synch, EventKind::Warning, "NamespaceMissing", message);
                outcome = Outcome::requeue();
            }
            Err(error) => return Err(error),
        }
    }
    Ok((made, outcome))
}

/// Makes one copy as it should be.
async fn copy(
    source: &Secret,
    key: &Key,
    synch: &SecSynch,
    cx: &Context,
) -> Result<Change, ClientError> {
    let Some(present) = cx.client().get::<Secret>(key).await? else {
        return create(source, key, cx).await;
    };
    if present.annotations().get(COPIED_BY).map(String::as_str) != Some(cx.key().as_str()) {
        let key = key.as_str();
        let message = format!("Secret {key:?} already exists and is not managed by SecSynch");
        cx.event(synch, EventKind::Warning, "ErrResourceExists", message);
        return Ok(Change::Unchanged);
    }
    if present.type_ != source.type_ || present.immutable == Some(true) {
        // The server lets nobody change these. It has to be another Secret, made when this one is seen to be gone.
        delete(&present, cx).await?;
        return Ok(Change::Updated);
    }
    let wanted = Secret {
        data: source.data.clone(),
        ..(*present).clone()
    };
    if wanted == *present {
        return Ok(Change::Unchanged);
    }
    // With the version that was read: what became somebody else's meanwhile is a conflict, not a loss.
    cx.client().update(&wanted).await?;
    Ok(Change::Updated)
}

async fn create(source: &Secret, key: &Key, cx: &Context) -> Result<Change, ClientError> {
    let mut copy = Secret {
        type_: source.type_.clone(),
        data: source.data.clone(),
        ..Secret::default()
    };
    copy.metadata.name = Some(key.name().to_owned());
    copy.metadata.namespace = key.namespace().map(str::to_owned);
    let copied_by = (COPIED_BY.to_owned(), cx.key().as_str().to_owned());
    copy.metadata.annotations = Some([copied_by].into());
    cx.client().create(&copy).await?;
    Ok(Change::Created)
}

/// Deletes the copies that are not wanted, and says how many there were.
async fn delete_copies(wanted: &BTreeSet<Key>, cx: &Context) -> Result<usize, ClientError> {
    let copies = Query::all().index(COPIED_BY, cx.key().as_str());
    let mut copies = cx.client().list::<Secret>(copies).await?;
    copies.retain(|copy| !wanted.contains(&key_of(&**copy)));
    for copy in &copies {
        delete(copy, cx).await?;
    }
    Ok(copies.len())
}

async fn delete(copy: &Secret, cx: &Context) -> Result<Option<()>, ClientError> {
    let deleted = cx.client().delete(copy, Delete::background());
    deleted.await.ignore_not_found()
}

fn key_of(object: &impl kube::Resource) -> Key {
    let meta = object.meta();
    let name = meta.name.as_deref().unwrap_or_default();
    Key::new(meta.namespace.as_deref().unwrap_or_default(), name)
}

/// The SecSynchs that a Secret matters to: as source, as copy, or as something that is in the way of one.
fn of_secret(secret: &Secret, client: &Client) -> Vec<Key> {
    let key = key_of(secret);
    let maker = secret.annotations().get(COPIED_BY);
    let mut keys = all_with(client, |spec| {
        spec.source() == key || spec.copies().contains(&key)
    });
    keys.extend(maker.and_then(|maker| Key::parse(maker)));
    keys
}

/// The SecSynchs that copy into a namespace.
fn of_namespace(namespace: &Namespace, client: &Client) -> Vec<Key> {
    let name = namespace.name_any();
    all_with(client, |spec| spec.destination_namespaces.contains(&name))
}

fn all_with(client: &Client, holds: impl Fn(&SecSynchSpec) -> bool) -> Vec<Key> {
    let all = client.reader::<SecSynch>().list();
    let concerned = all.iter().filter(|synch| holds(&synch.spec));
    concerned.map(|synch| key_of(&**synch)).collect()
}

/// The controller of a manager with this client.
///
/// # Errors
/// When it is made twice for one client.
pub fn controller(client: &Client) -> Result<Controller> {
    let copied_by =
        Index::of_metadata(|secret| Vec::from_iter(secret.annotation(COPIED_BY).map(String::from)));
    client.add_index::<Secret>(COPIED_BY, copied_by)?;
    Ok(Controller::of::<SecSynch>("secsynch")
        // The status is not part of a generation: writing it does not lead to another run.
        .when(Predicate::generation_changed())
        .watches(Watch::of::<Secret>().map(of_secret))
        .watches(Watch::of::<Namespace>().map(of_namespace))
        .reconciler(SecSynchReconciler))
}
