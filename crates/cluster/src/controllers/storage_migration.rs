//! StorageVersionMigrations: every object of a resource is written once, unchanged, so that it is stored at the version that is
//! the stored one now. Mirrors pkg/controller/storageversionmigrator.
//!
//! One migration of a resource runs at a time. A page of its objects is one reconcile, so that no number of objects is too
//! many for the time limit of one; where the next page begins is remembered, and lost with the controller. Then it begins
//! again: what was stored anew has a later version than the one at which the migration began, and is passed over.

mod definition;
mod objects;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::storagemigration::v1::StorageVersionMigration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupResource;
use kube::core::ObjectMeta;
use kubewright_runtime::{
    Client, Context, Controller, Error, Key, Outcome, Query, Reconciler, Watch,
};
use parking_lot::Mutex;

use self::definition::Ending;
use self::objects::{Page, RewriteError};
use self::rules::{Step, resource, step};
use crate::kinds::{self, Kind};
use crate::writes::report;

/// How long a resource may take to be served after its migration was asked for.
const APPEARS: SignedDuration = SignedDuration::from_mins(1);
/// How soon it is looked for again.
const LOOK: Duration = Duration::from_secs(5);
/// What a resource has to support.
const VERBS: [&str; 3] = ["list", "patch", "update"];

/// Writes the objects of resources anew.
pub(crate) fn controller() -> Controller {
    Controller::of::<StorageVersionMigration>("storage-version-migrator")
        .watches(Watch::of::<StorageVersionMigration>().map(rivals))
        .reconciler(Migrator::default())
}

/// The other migrations of the same resource: one of them may have its turn now.
fn rivals(migration: &StorageVersionMigration, client: &Client) -> Vec<Key> {
    let all = client.reader::<StorageVersionMigration>().list();
    let others = all.iter().filter(|other| {
        resource(other) == resource(migration) && other.metadata.name != migration.metadata.name
    });
    let names = others.filter_map(|other| other.metadata.name.as_deref());
    names.map(Key::cluster).collect()
}

#[derive(Default)]
struct Migrator {
    progress: Mutex<BTreeMap<Key, Progress>>,
}

/// How far a migration is.
#[derive(Clone)]
struct Progress {
    kind: Kind,
    /// Where the next page begins; none for the first one.
    next: Option<String>,
}

impl Reconciler<StorageVersionMigration> for Migrator {
    async fn reconcile(
        &self,
        migration: Arc<StorageVersionMigration>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let Some(resource) = resource(&migration) else {
            return Ok(Outcome::done());
        };
        let all = cx.client().list::<StorageVersionMigration>(Query::all());
        match step(&migration, &all.await?) {
            Step::Rest => Ok(Outcome::done()),
            Step::Begin => begin(&migration, resource, cx).await,
            Step::Go => self.go_on(&migration, resource, cx).await,
            Step::Close(ending) => {
                self.progress.lock().remove(cx.key());
                definition::close(cx, resource, ending).await?;
                let closed = |new: &mut _| rules::close(new, cx.now());
                report(cx.client(), &*migration, closed).await?;
                Ok(Outcome::done())
            }
        }
    }

    async fn gone(&self, key: &Key, _cx: &Context) -> Result<Outcome, Error> {
        self.progress.lock().remove(key);
        Ok(Outcome::done())
    }
}

/// Marks a migration as the one of its resource that runs, and notes the version at which it begins.
async fn begin(
    migration: &StorageVersionMigration,
    resource: &GroupResource,
    cx: &Context,
) -> Result<Outcome, Error> {
    let Some(kind) = find(resource, cx).await? else {
        if is_new(&migration.metadata, cx) {
            return Ok(Outcome::requeue_after(LOOK));
        }
        return fail(migration, "resource does not exist in discovery", cx).await;
    };
    if !kind.can(&VERBS) {
        let why = "resource cannot be migrated: it does not support list, patch and update";
        return fail(migration, why, cx).await;
    }
    let name = migration.metadata.name.as_deref().unwrap_or_default();
    definition::mark(cx, resource, name).await?;
    // After the definition was marked: whatever is stored from then on is stored as the definition says now.
    let version = objects::newest_version(cx.client(), &kind).await?;
    let began = |new: &mut _| rules::begin(new, version, cx.now());
    report(cx.client(), migration, began).await?;
    Ok(Outcome::done())
}

impl Migrator {
    /// Writes a page of objects.
    async fn go_on(
        &self,
        migration: &StorageVersionMigration,
        resource: &GroupResource,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let known = self.progress.lock().get(cx.key()).cloned();
        let progress = match known {
            Some(progress) => progress,
            None => match find(resource, cx).await? {
                Some(kind) => Progress { kind, next: None },
                None => return fail(migration, "unable to obtain GVR from discovery", cx).await,
            },
        };
        let Some(until) = rules::began_at(migration) else {
            let why = "the resource version at which it began is not a number";
            return fail(migration, why, cx).await;
        };
        let page = objects::page(cx.client(), &progress.kind, progress.next).await?;
        let Page::Of { found, next } = page else {
            // Its objects are looked at again from the first; most of them have a later version by now.
            self.progress.lock().remove(cx.key());
            return Ok(Outcome::requeue());
        };
        for object in &found {
            let written = objects::rewrite(cx.client(), &progress.kind, object, until).await;
            if let Err(error) = written {
                return give_up(migration, error, cx).await;
            }
        }
        if next.is_none() {
            self.progress.lock().remove(cx.key());
            let succeeded = |new: &mut _| rules::succeed(new, cx.now());
            report(cx.client(), migration, succeeded).await?;
            return Ok(Outcome::done());
        }
        let kind = progress.kind;
        let progress = Progress { kind, next };
        self.progress.lock().insert(cx.key().clone(), progress);
        Ok(Outcome::requeue_after(Duration::ZERO))
    }
}

/// What becomes of a migration of which an object was not written: it ends, or the page is tried again.
async fn give_up(
    migration: &StorageVersionMigration,
    error: RewriteError,
    cx: &Context,
) -> Result<Outcome, Error> {
    match error {
        RewriteError::Refused { why } => fail(migration, &why, cx).await,
        RewriteError::Later {
            after: Some(after), ..
        } => Ok(Outcome::requeue_after(after)),
        error @ RewriteError::Later { after: None, .. } => Err(error.into()),
    }
}

/// How a resource is served at this moment, if it is.
async fn find(resource: &GroupResource, cx: &Context) -> Result<Option<Kind>, Error> {
    let kinds = kinds::discover(cx.client().kube()).await?;
    let mut kinds = kinds.into_iter();
    Ok(kinds.find(|kind| kind.is(&resource.group, &resource.resource)))
}

/// Whether a migration was asked for so recently that its resource may still appear.
fn is_new(metadata: &ObjectMeta, cx: &Context) -> bool {
    let created = metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| cx.now().duration_since(created.0) < APPEARS)
}

async fn fail(
    migration: &StorageVersionMigration,
    why: &str,
    cx: &Context,
) -> Result<Outcome, Error> {
    let failed = |new: &mut _| rules::fail(new, why, cx.now());
    report(cx.client(), migration, failed).await?;
    Ok(Outcome::done())
}
