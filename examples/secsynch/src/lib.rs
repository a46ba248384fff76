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
use kubewright::prelude::*;

pub use demo::run;
pub use resource::{SecSynch, SecSynchSpec, SecSynchStatus};

/// Holds a SecSynch until its copies are deleted.
pub const FINALIZER: &str = "tutorial.study.dev/copies";
/// Says on a copy which SecSynch made it, as `namespace/name`. Also the index of copies by their SecSynch.
pub const COPIED_BY: &str = "tutorial.study.dev/copied-by";
/// The index of SecSynchs by the Secrets that matter to them.
const BY_SECRET: &str = "secret";
/// The index of SecSynchs by the namespaces that they copy into.
const BY_NAMESPACE: &str = "destination";

/// The controller: runs when a SecSynch, a Secret or a namespace changes that has to do with it.
#[kubewright::controller]
pub fn controller() -> Controller {
    let secrets = Watch::of::<Secret>();
    let namespaces = Watch::of::<Namespace>();
    Controller::of::<SecSynch>("secsynch")
        // The status is not part of a generation: writing it does not lead to another run.
        .when(Predicate::generation_changed())
        .finalizer(FINALIZER)
        .index(COPIED_BY, Index::<Secret>::by_annotation(COPIED_BY))
        .index(BY_SECRET, Index::of(|it: &SecSynch| it.spec.secrets()))
        .index(
            BY_NAMESPACE,
            Index::of(|it: &SecSynch| it.spec.destination_namespaces.clone()),
        )
        .watches(secrets.map_by_index::<SecSynch>(BY_SECRET, |it| vec![Key::of(it).to_string()]))
        .watches(Watch::of::<Secret>().map(|it, _| Vec::from_iter(maker(it))))
        .watches(namespaces.map_by_index::<SecSynch>(BY_NAMESPACE, |it| vec![it.name_any()]))
        .reconciler(SecSynchReconciler)
}

/// Keeps the copies of each SecSynch.
#[derive(Debug)]
pub struct SecSynchReconciler;

#[kubewright::rbac(groups = "", resources = "secrets", verbs = "create;update;delete")]
#[kubewright::rbac(groups = "tutorial.study.dev", resources = "secsynches", verbs = "get")]
impl Reconciler<SecSynch> for SecSynchReconciler {
    async fn reconcile(&self, synch: Arc<SecSynch>, cx: &Context) -> Result<Outcome> {
        let source = cx.client().get::<Secret>(&synch.spec.source()).await?;
        let wanted = source.as_ref().map(|_| synch.spec.copies());
        let deleted = delete_copies(&wanted.unwrap_or_default(), cx).await?;
        let (made, outcome) = match &source {
            Some(source) => copy_all(source, &synch, cx).await?,
            None => {
                let message = format!("there is no Secret {:?}", synch.spec.source().as_str());
                cx.event(&synch, EventKind::Warning, "SourceMissing", message);
                (0, Outcome::done())
            }
        };
        // The run that made the copies may have ended before it could say so.
        let unreported = synch.status.is_none() && has_copies(cx).await?;
        if deleted + made > 0 || unreported {
            let last_sync_time = Some(Time(cx.now()));
            let status = |it: &mut SecSynch| it.status = Some(SecSynchStatus { last_sync_time });
            cx.client().modify_status(&synch, status).await?;
        }
        Ok(outcome)
    }

    async fn cleanup(&self, _synch: Arc<SecSynch>, cx: &Context) -> Result<Cleanup<Outcome>> {
        delete_copies(&BTreeSet::new(), cx).await?;
        Ok(Cleanup::Done)
    }

    /// A process that was shown the past makes copies for a SecSynch that is gone, and nobody else would delete them. The cache
    /// of SecSynchs may be behind that of Secrets, so the server is asked first.
    async fn gone(&self, key: &Key, cx: &Context) -> Result<Outcome> {
        if has_copies(cx).await? && cx.client().live().get::<SecSynch>(key).await?.is_none() {
            delete_copies(&BTreeSet::new(), cx).await?;
        }
        Ok(Outcome::done())
    }
}

/// The SecSynch that made a copy; none for other Secrets.
fn maker(secret: &Secret) -> Option<Key> {
    Key::parse(secret.annotations().get(COPIED_BY)?)
}

/// Makes all copies as they should be, and says how many were not.
async fn copy_all(source: &Secret, synch: &SecSynch, cx: &Context) -> Result<(usize, Outcome)> {
    let (mut made, mut outcome) = (0, Outcome::done());
    let warn = |reason, message| cx.event(synch, EventKind::Warning, reason, message);
    for key in synch.spec.copies() {
        match copy(source, &key, cx).await {
            Ok(Change::Unchanged) => {}
            Ok(_) => made += 1,
            Err(error) if error.refusal().is_some() => {
                let message =
                    format!("Secret {key:?} already exists and is not managed by SecSynch");
                warn("ErrResourceExists", message);
            }
            Err(error) if error.is_not_found() || error.is_namespace_terminating() => {
                let namespace = key.namespace().unwrap_or_default();
                warn(
                    "NamespaceMissing",
                    format!("no such namespace: {namespace}"),
                );
                outcome = Outcome::requeue();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((made, outcome))
}

/// Makes one copy as it should be, unless there is a Secret of that name that this SecSynch has not made.
async fn copy(source: &Secret, key: &Key, cx: &Context) -> Result<Change, ClientError> {
    let maker = cx.key().as_str();
    let fill = |copy: &mut Secret| {
        let exists = copy.uid().is_some();
        if exists && copy.annotations().get(COPIED_BY).map(String::as_str) != Some(maker) {
            return Err(Error::msg("it is not a copy"));
        }
        copy.annotations_mut()
            .insert(COPIED_BY.to_owned(), maker.to_owned());
        copy.type_ = source.type_.clone();
        copy.data = source.data.clone();
        Ok(())
    };
    match cx.client().create_or_update(key, fill).await {
        // Of another type, or made immutable: it has to be another Secret, made when this one is seen to be gone.
        Err(error) if error.is_invalid() => match cx.client().get::<Secret>(key).await? {
            Some(copy) => delete(&copy, cx).await.map(|_| Change::Updated),
            None => Err(error),
        },
        copied => Ok(copied?.change),
    }
}

async fn has_copies(cx: &Context) -> Result<bool, ClientError> {
    let copies = Query::all().index(COPIED_BY, cx.key().as_str());
    Ok(!cx.client().list::<Secret>(copies).await?.is_empty())
}

/// Deletes the copies that are not wanted, and says how many there were.
async fn delete_copies(wanted: &BTreeSet<Key>, cx: &Context) -> Result<usize, ClientError> {
    let query = Query::all().index(COPIED_BY, cx.key().as_str());
    let copies = cx.client().list::<Secret>(query).await?;
    let mut deleted = 0;
    for copy in copies
        .iter()
        .filter(|copy| !wanted.contains(&Key::of(*copy)))
    {
        delete(copy, cx).await?;
        deleted += 1;
    }
    Ok(deleted)
}

async fn delete(copy: &Secret, cx: &Context) -> Result<Option<()>, ClientError> {
    let deleted = cx.client().delete(copy, Delete::background()).await;
    deleted.ignore_not_found()
}
