//! The reconciler.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::owners::is_controlled_by;

use crate::api::{CloudManager, Phase, Workload};
use crate::desired;

/// Brings CloudManagers up.
pub struct CloudManagers;

/// The controller of CloudManagers.
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
                .modify_status(&*manager, |m| {
                    m.status.get_or_insert_default().phase = Some(phase);
                })
                .await?;
            let message = format!("Update cm.status.phase: {}", phase.as_str());
            cx.event(&*manager, EventKind::Normal, "Updated", message);
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
    match keep_database(manager, cx).await? {
        true => Ok(Phase::Ready),
        false => Ok(Phase::Db),
    }
}

async fn deploy(
    manager: &CloudManager,
    part: &str,
    workload: &Workload,
    cx: &Context,
) -> Result<bool> {
    let key = Key::new(cx.key().namespace().unwrap_or_default(), &workload.name);
    let owner = manager.name_any();
    let mut owned = Ok(());
    let (object, _) = cx
        .client()
        .create_or_update::<Deployment>(&key, |object| {
            owned = set_controller_reference(manager, object);
            if owned.is_ok() {
                desired::deployment(part, &owner, workload, object);
            }
        })
        .await?;
    owned?;
    let status = object.status.unwrap_or_default();
    let current = status.observed_generation == object.metadata.generation;
    Ok(current && has_majority(status.ready_replicas, object.spec.replicas))
}

async fn keep_database(manager: &CloudManager, cx: &Context) -> Result<bool> {
    let db = &manager.spec.db;
    let namespace = cx.key().namespace().unwrap_or_default();
    let mut owned = Ok(());
    cx.client()
        .create_or_update::<Secret>(&Key::new(namespace, &desired::secret_name(db)), |secret| {
            owned = set_controller_reference(manager, secret);
            if owned.is_ok() {
                desired::secret(db, secret);
            }
        })
        .await?;
    owned?;
    let owner = manager.name_any();
    let mut owned = Ok(());
    let (object, _) = cx
        .client()
        .create_or_update::<StatefulSet>(
            &Key::new(namespace, &db.stateful_set.workload.name),
            |set| {
                owned = set_controller_reference(manager, set);
                if owned.is_ok() {
                    desired::stateful_set(&owner, db, set);
                }
            },
        )
        .await?;
    owned?;
    let status = object.status.unwrap_or_default();
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
    let here = || Query::all().namespace(cx.key().namespace().unwrap_or_default());
    let kept = [&spec.front.deployment.name, &spec.identity.deployment.name];
    for old in cx.client().list::<Deployment>(here()).await? {
        if is_controlled_by(manager, &*old) && !kept.contains(&&old.name_any()) {
            cx.client()
                .delete(&*old, Delete::background())
                .await
                .ignore_not_found()?;
            let message = format!("Deleted deployment {:?}", old.name_any());
            cx.event(manager, EventKind::Normal, "Deleted", message);
        }
    }
    for old in cx.client().list::<StatefulSet>(here()).await? {
        if is_controlled_by(manager, &*old) && spec.db.stateful_set.workload.name != old.name_any()
        {
            cx.client()
                .delete(&*old, Delete::background())
                .await
                .ignore_not_found()?;
            let message = format!("Deleted statefulSet {:?}", old.name_any());
            cx.event(manager, EventKind::Normal, "Deleted", message);
        }
    }
    for old in cx.client().list::<Secret>(here()).await? {
        if is_controlled_by(manager, &*old) && desired::secret_name(&spec.db) != old.name_any() {
            cx.client()
                .delete(&*old, Delete::background())
                .await
                .ignore_not_found()?;
        }
    }
    Ok(())
}
