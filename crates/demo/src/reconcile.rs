//! The reconciler.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::client::TypedObject;

use crate::api::{CloudManager, Phase, Workload};
use crate::desired;

/// Brings the parts of each CloudManager up in order.
pub struct CloudManagers;

/// The controller of CloudManagers.
#[kubewright::controller]
pub fn controller() -> Controller {
    Controller::of::<CloudManager>("cloudmanager")
        .owns::<Deployment>()
        .owns::<StatefulSet>()
        .owns::<Secret>()
        .reconciler(CloudManagers)
}

impl Reconciler<CloudManager> for CloudManagers {
    async fn reconcile(&self, manager: Arc<CloudManager>, cx: &Context) -> Result<Outcome> {
        if manager.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::done());
        }
        delete_renamed(&manager, cx).await?;
        let phase = bring_up(&manager, cx).await?;
        let before = manager.status.as_ref().and_then(|status| status.phase);
        if before != Some(phase) {
            cx.client()
                .modify_status(&manager, |m| {
                    m.status.get_or_insert_default().phase = Some(phase);
                })
                .await?;
            let message = format!("Update cm.status.phase: {}", phase.as_str());
            cx.event(&manager, EventKind::Normal, "Updated", message);
        }
        // What is waited for belongs to it: its next change leads here again.
        Ok(Outcome::done())
    }
}

/// Makes one part after the other. Gives the first that has no ready majority.
async fn bring_up(manager: &CloudManager, cx: &Context) -> Result<Phase> {
    let spec = &manager.spec;
    for (part, phase, workload) in [
        ("front", Phase::Front, &spec.front.deployment),
        ("identity", Phase::Identity, &spec.identity.deployment),
    ] {
        if !deploy(manager, part, workload, cx).await? {
            return Ok(phase);
        }
    }
    if keep_database(manager, cx).await? {
        Ok(Phase::Ready)
    } else {
        Ok(Phase::Db)
    }
}

/// Keeps a Deployment, and says whether it is up.
async fn deploy(
    manager: &CloudManager,
    part: &str,
    workload: &Workload,
    cx: &Context,
) -> Result<bool> {
    let key = cx.key().sibling(&workload.name);
    let owner = manager.name_any();
    let fill = |object: &mut Deployment| desired::deployment(part, &owner, workload, object);
    let object = cx.client().apply_owned(manager, &key, fill).await?;
    let status = object.status.clone().unwrap_or_default();
    let current = status.observed_generation == object.metadata.generation;
    Ok(current && has_majority(status.ready_replicas, object.spec.replicas))
}

/// Keeps the StatefulSet of the database and its Secret, and says whether it is up.
async fn keep_database(manager: &CloudManager, cx: &Context) -> Result<bool> {
    let db = &manager.spec.db;
    let key = cx.key().sibling(&desired::secret_name(db));
    let fill = |secret: &mut Secret| desired::secret(db, secret);
    cx.client().apply_owned(manager, &key, fill).await?;
    let owner = manager.name_any();
    let key = cx.key().sibling(&db.stateful_set.workload.name);
    // The claims of a StatefulSet cannot be changed, so what it should be depends on what it is: not something to apply.
    let written = cx.client().create_or_update(&key, |set: &mut StatefulSet| {
        set_controller_reference(manager, set)?;
        desired::stateful_set(&owner, db, set);
        Ok(())
    });
    let object = written.await?;
    let status = object.status.clone().unwrap_or_default();
    let current = status.observed_generation == object.metadata.generation;
    Ok(current && has_majority(status.ready_replicas, object.spec.replicas))
}

fn has_majority(ready: Option<i32>, wanted: Option<i32>) -> bool {
    let wanted = wanted.unwrap_or(1);
    wanted == 0 || ready.unwrap_or(0) > wanted / 2
}

/// Deletes what this CloudManager owns and does not name any more.
async fn delete_renamed(manager: &CloudManager, cx: &Context) -> Result {
    let spec = &manager.spec;
    let deployments = [&spec.front.deployment.name, &spec.identity.deployment.name];
    delete_others::<Deployment>(manager, &deployments, cx).await?;
    let sets = [&spec.db.stateful_set.workload.name];
    delete_others::<StatefulSet>(manager, &sets, cx).await?;
    delete_others::<Secret>(manager, &[&desired::secret_name(&spec.db)], cx).await
}

/// Deletes the objects of a kind that this CloudManager owns, but for those of these names.
async fn delete_others<K: TypedObject>(
    manager: &CloudManager,
    kept: &[&String],
    cx: &Context,
) -> Result {
    let here = Query::all().namespace(cx.key().namespace().unwrap_or_default());
    for old in cx.client().list::<K>(here).await? {
        let name = old.name_any();
        if is_controlled_by(manager, &old) && !kept.contains(&&name) {
            // The cache may be behind, and this a name that the CloudManager has now.
            cx.client().live().ensure_current(manager).await?;
            let deleted = cx.client().delete(&old, Delete::background()).await;
            deleted.ignore_not_found()?;
            let kind = K::kind(&()).to_lowercase();
            let message = format!("Deleted {kind} {name:?}");
            cx.event(manager, EventKind::Normal, "Deleted", message);
        }
    }
    Ok(())
}
