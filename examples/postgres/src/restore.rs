//! Starts a cluster with the backup of another one: the volume of its first member is filled before that member starts.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kubewright::prelude::*;
use kubewright::runtime::conditions::{Condition, Status};

use crate::api::{PostgresCluster, Restore};
use crate::desired;

/// The annotation of a claim with the uid of the cluster that it was made for.
const FOR: &str = "postgres.kubewright.dev/restored-for";
/// The annotation of a claim that has the whole database.
const DONE: &str = "postgres.kubewright.dev/restored";

/// How long after an attempt began the next one begins.
const RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Whether the volume of the first member has what it should begin with; fills it if not.
///
/// # Errors
/// When there is a volume of that name already: what is on it is not overwritten.
pub(crate) async fn is_done(
    cluster: &PostgresCluster,
    restore: &Restore,
    cx: &Context,
) -> Result<bool> {
    let name = cluster.name_any();
    let claim = ensure_claim(cluster, &name, cx).await?;
    let key = cx.key().sibling(&format!("{name}-restore"));
    let pod = cx.client().get::<Pod>(&key).await?;
    if claim.annotations().contains_key(DONE) {
        if let Some(pod) = pod {
            let deleted = cx.client().delete(&*pod, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        return Ok(true);
    }
    report(cluster, restore, cx).await?;
    let Some(pod) = pod else {
        let mut pod = desired::restore_pod(&name, &cluster.spec, restore);
        pod.metadata.name = Some(key.name().to_owned());
        pod.metadata.namespace = cluster.namespace();
        set_controller_reference(cluster, &mut pod)?;
        cx.client().create(&pod).await?;
        return Ok(false);
    };
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    match phase {
        Some("Succeeded") => {
            let note = |claim: &mut PersistentVolumeClaim| {
                let annotations = claim.annotations_mut();
                annotations.insert(DONE.to_owned(), restore.claim_name.clone());
                // From now on it is the volume of a member, which outlives the cluster as the others do.
                claim.metadata.owner_references = None;
            };
            cx.client().modify(&claim, note).await?;
            let message = format!("restored from {}", restore.claim_name);
            cx.event(cluster, EventKind::Normal, "Restored", message);
        }
        // The next attempt begins anew, whatever this one left, but not at once.
        Some("Failed") if is_older(&pod, RETRY, cx) => {
            let message = format!("cannot restore from {}", restore.claim_name);
            cx.event(cluster, EventKind::Warning, "RestoreFailed", message);
            let deleted = cx.client().delete(&*pod, Delete::background()).await;
            deleted.ignore_not_found()?;
        }
        _ => {}
    }
    Ok(false)
}

fn is_older(pod: &Pod, age: SignedDuration, cx: &Context) -> bool {
    let made = pod.metadata.creation_timestamp.as_ref();
    made.is_none_or(|made| cx.now().duration_since(made.0) >= age)
}

async fn ensure_claim(
    cluster: &PostgresCluster,
    name: &str,
    cx: &Context,
) -> Result<PersistentVolumeClaim> {
    let key = cx.key().sibling(&desired::first_claim(name));
    let uid = cluster.uid().unwrap_or_default();
    if let Some(claim) = cx.client().get::<PersistentVolumeClaim>(&key).await? {
        if claim.annotations().get(FOR) != Some(&uid) {
            let problem = format!("the claim {} is there already", key.name());
            return Err(Error::msg(problem));
        }
        return Ok((*claim).clone());
    }
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = Some(key.name().to_owned());
    claim.metadata.namespace = cluster.namespace();
    claim.annotations_mut().insert(FOR.to_owned(), uid);
    claim.spec = Some(desired::claim_spec(&cluster.spec.storage));
    // Half of a database goes with the cluster.
    set_controller_reference(cluster, &mut claim)?;
    Ok(cx.client().create(&claim).await?)
}

/// Says in the status what is being done.
async fn report(cluster: &PostgresCluster, restore: &Restore, cx: &Context) -> Result {
    let (now, generation) = (cx.now(), cluster.metadata.generation);
    let change = |cluster: &mut PostgresCluster| {
        let status = cluster.status.get_or_insert_default();
        status.observed_generation = generation;
        let message = format!("restoring from {}", restore.claim_name);
        let condition = Condition::new("Ready", Status::False, "Restoring").message(message);
        conditions::set(
            &mut status.conditions,
            now,
            condition.generation(generation),
        );
    };
    cx.client().modify_status(cluster, change).await?;
    Ok(())
}
