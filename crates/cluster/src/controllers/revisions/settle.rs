//! Makes the owner's template the latest of its revisions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kubewright_runtime::client::TypedObject;
use kubewright_runtime::{ClientError, Context, Delete, Error, IgnoreNotFound};

use super::{Latest, data, latest, make, sort};
use crate::pods::adopt::{Selecting, claim_all, key};
use crate::pods::claim::{selector, selects};

/// How many templates may have the same hash before something else must be wrong.
const COLLISIONS: usize = 16;

/// The revisions of an owner, once its template is the latest.
#[derive(Debug)]
pub(crate) struct Settled {
    /// From the first to the last.
    pub(crate) all: Vec<Arc<ControllerRevision>>,
    /// The one of the owner's template.
    pub(crate) latest: Arc<ControllerRevision>,
    /// How often names collided so far.
    pub(crate) collisions: Option<i32>,
}

/// Claims the owner's revisions and makes that of `template` the latest.
pub(crate) async fn settle<K: Selecting>(
    cx: &Context,
    owner: &K,
    template: &PodTemplateSpec,
    label: &str,
    mut collisions: Option<i32>,
) -> Result<Settled, Error> {
    let selector = owner.label_selector().and_then(|labels| selector(&labels));
    let matches = |revision: &ControllerRevision| {
        selector
            .as_ref()
            .is_some_and(|selector| selects(selector, &revision.metadata))
    };
    let mut all = claim_all(cx.client(), owner, matches).await?;
    sort(&mut all);
    let latest = match latest(&all, &data(template)) {
        Latest::Is(revision) => revision,
        Latest::Renumber(revision, number) => {
            all.retain(|other| !Arc::ptr_eq(other, &revision));
            let renumbered = cx
                .client()
                .modify(&*revision, |revision| revision.revision = Some(number));
            let renumbered = Arc::new(renumbered.await?.into_object());
            all.push(renumbered.clone());
            renumbered
        }
        Latest::Create(number) => {
            let made = |collisions| make(owner, template, number, label, collisions);
            let created = Arc::new(create(cx, made, &mut collisions).await?);
            all.push(created.clone());
            created
        }
    };
    Ok(Settled {
        all,
        latest,
        collisions,
    })
}

/// Creates a revision. One that is there already with the same content was created by an earlier pass; one with other
/// content has the same hash, and the next name is tried.
async fn create(
    cx: &Context,
    made: impl Fn(Option<i32>) -> ControllerRevision,
    collisions: &mut Option<i32>,
) -> Result<ControllerRevision, Error> {
    for _ in 0..COLLISIONS {
        let revision = made(*collisions);
        match cx.client().create(&revision).await {
            Err(error) if error.is_already_exists() => {
                let known = cx
                    .client()
                    .live()
                    .get::<ControllerRevision>(&key(&revision.metadata))
                    .await?;
                let Some(known) = known else {
                    // It went in the meantime, with an owner of the same name that was deleted: the name is free again.
                    continue;
                };
                if known.data == revision.data {
                    return Ok(known);
                }
                *collisions = Some(collisions.unwrap_or_default().saturating_add(1));
            }
            created => return Ok(created?),
        }
    }
    Err(Error::msg("too many revisions have the same hash"))
}

/// Deletes revisions that nobody will go back to.
pub(crate) async fn forget(
    cx: &Context,
    revisions: &[Arc<ControllerRevision>],
) -> Result<(), ClientError> {
    for revision in revisions {
        cx.client()
            .delete(&**revision, Delete::background())
            .await
            .ignore_not_found()?;
    }
    Ok(())
}

/// The name of an object, or nothing.
pub(crate) fn name<K: TypedObject>(object: &K) -> &str {
    object.meta().name.as_deref().unwrap_or_default()
}
