//! Deployments: one ReplicaSet for each template, pods move from the old ones to the new one.
//!
//! Absent: the annotation by which clients of ten years ago asked for a rollback; `kubectl rollout undo` writes the old
//! template, and that is all it takes.

pub(crate) mod annotations;
pub(crate) mod bounds;
pub(crate) mod conditions;
mod courses;
pub(crate) mod plan;
pub(crate) mod proportion;
pub(crate) mod rolling;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod sets;
#[cfg(test)]
mod simulation;
pub(crate) mod status;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::events::EventKind;
use kubewright_runtime::owners::is_controlled_by;
use kubewright_runtime::{
    ClientError, Context, Controller, Delete, Error, IgnoreNotFound, Outcome, Reconciler,
};

use self::bounds::Strategy;
use self::conditions::{PROGRESSING, condition, reason};
use self::plan::{Observed, Plan, Update};
use super::WORKERS;
use crate::pods::adopt::{self, Selecting, claim_all, controlled_by};
use crate::pods::claim::{selector, selects};
use crate::pods::is_finished;
use crate::writes::{patch_unchanged, report, said};

/// The controller of Deployments.
pub(crate) fn controller() -> Controller {
    Controller::of::<Deployment>("deployment-controller")
        .owns::<ReplicaSet>()
        .watches(adopt::orphans::<Deployment, ReplicaSet>())
        .workers(WORKERS)
        .reconciler(Deployments)
}

impl Selecting for Deployment {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        Some(Cow::Borrowed(&self.spec.selector))
    }
}

struct Deployments;

impl Reconciler<Deployment> for Deployments {
    async fn reconcile(&self, deployment: Arc<Deployment>, cx: &Context) -> Result<Outcome, Error> {
        let Some(selector) = selector(&deployment.spec.selector) else {
            return select_nothing(cx, &deployment).await;
        };
        let matches = |set: &ReplicaSet| selects(&selector, &set.metadata);
        let sets = claim_all::<_, ReplicaSet>(cx.client(), &*deployment, matches).await?;
        let pod_owners = pod_owners(cx, &deployment, &sets).await?;
        let plan = plan::plan(&Observed {
            deployment: &deployment,
            sets: &sets,
            pod_owners: &pod_owners,
            now: cx.now(),
        });
        carry_out(cx, &deployment, plan).await
    }
}

/// Says that a selector that selects everything is taken to select nothing.
async fn select_nothing(cx: &Context, deployment: &Deployment) -> Result<Outcome, Error> {
    let message = "This deployment is selecting all pods. A non-empty selector is required.";
    cx.event(deployment, EventKind::Warning, "SelectingAll", message);
    let seen = |deployment: &mut Deployment| {
        let generation = deployment.metadata.generation;
        deployment
            .status
            .get_or_insert_default()
            .observed_generation = generation;
    };
    report(cx.client(), deployment, seen).await?;
    Ok(Outcome::done())
}

/// Which sets have pods that may still run. Only who replaces all pods at once has to know.
async fn pod_owners(
    cx: &Context,
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
) -> Result<Vec<String>, ClientError> {
    let mut owners = Vec::new();
    if bounds::strategy(deployment) == Strategy::Rolling {
        return Ok(owners);
    }
    for uid in sets.iter().filter_map(|set| set.metadata.uid.as_ref()) {
        let pods = controlled_by::<Pod>(cx.client(), uid).await?;
        if pods.iter().any(|pod| !is_finished(pod)) {
            owners.push(uid.clone());
        }
    }
    Ok(owners)
}

async fn carry_out(cx: &Context, deployment: &Deployment, plan: Plan) -> Result<Outcome, Error> {
    if let Some(set) = &plan.create {
        match create(cx, deployment, set).await? {
            Created::Yes => {}
            Created::Later(outcome) => return Ok(outcome),
        }
    }
    for update in &plan.update {
        scale(cx, deployment, update).await?;
    }
    for set in &plan.delete {
        cx.client()
            .delete(&**set, Delete::background())
            .await
            .ignore_not_found()?;
    }
    let Plan {
        revision, status, ..
    } = plan;
    let change = |deployment: &mut Deployment| {
        deployment.status = Some(status);
        if let Some(revision) = revision {
            // With the status it does not count as a new wish; in a write of its own it would make that of the status a conflict.
            let annotations = deployment.metadata.annotations.get_or_insert_default();
            annotations.insert(annotations::REVISION.to_owned(), revision.to_string());
        }
    };
    report(cx.client(), deployment, change).await?;
    Ok(match plan.check_after {
        Some(wait) => Outcome::requeue_after(wait),
        None => Outcome::done(),
    })
}

enum Created {
    Yes,
    Later(Outcome),
}

/// Creates the set for the template. Its name is made from the template, so one that is there already is either the
/// very same, which an earlier pass created, or another one whose hash is the same.
async fn create(cx: &Context, deployment: &Deployment, set: &ReplicaSet) -> Result<Created, Error> {
    match cx.client().create(set).await {
        Ok(created) => {
            tell_size(cx, deployment, &created, 0);
            Ok(Created::Yes)
        }
        Err(error) if error.is_already_exists() => {
            let known: Option<ReplicaSet> =
                cx.client().live().get(&adopt::key(&set.metadata)).await?;
            if known.is_some_and(|known| is_ours(deployment, &known)) {
                Ok(Created::Later(Outcome::requeue()))
            } else {
                note_collision(cx, deployment).await
            }
        }
        Err(error) if error.is_namespace_terminating() => Ok(Created::Later(Outcome::done())),
        Err(error) => {
            note_failure(cx, deployment, set, &error).await;
            Err(error.into())
        }
    }
}

fn is_ours(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let template = set.spec.template.as_ref();
    is_controlled_by(deployment, set)
        && template.is_some_and(|template| sets::same_template(template, &deployment.spec.template))
}

/// Another template has the same hash: the next attempt takes another name.
async fn note_collision(cx: &Context, deployment: &Deployment) -> Result<Created, Error> {
    let count = |deployment: &mut Deployment| {
        let status = deployment.status.get_or_insert_default();
        let count = status.collision_count.unwrap_or_default();
        status.collision_count = Some(count.saturating_add(1));
    };
    report(cx.client(), deployment, count).await?;
    Ok(Created::Later(Outcome::requeue()))
}

async fn note_failure(
    cx: &Context,
    deployment: &Deployment,
    set: &ReplicaSet,
    error: &ClientError,
) {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let message = format!("Failed to create new replica set {name:?}: {}", said(error));
    cx.event(
        deployment,
        EventKind::Warning,
        reason::CREATE_FAILED,
        &message,
    );
    if status::deadline(deployment).is_none() {
        return;
    }
    let failure = condition(
        PROGRESSING,
        "False",
        reason::CREATE_FAILED,
        message,
        cx.now(),
    );
    let show = |deployment: &mut Deployment| {
        let status = deployment.status.get_or_insert_default();
        conditions::set(status.conditions.get_or_insert_default(), failure);
    };
    // The failure to create is what is reported; whether this write worked as well matters less.
    let _ = report(cx.client(), deployment, show).await;
}

async fn scale(cx: &Context, deployment: &Deployment, update: &Update) -> Result<(), ClientError> {
    let after = patch_unchanged(cx.client(), &*update.before, &update.after).await?;
    tell_size(
        cx,
        deployment,
        &after,
        super::replicaset::plan::desired(&update.before),
    );
    Ok(())
}

fn tell_size(cx: &Context, deployment: &Deployment, set: &ReplicaSet, before: i32) {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    let after = super::replicaset::plan::desired(set);
    let way = match after.cmp(&before) {
        std::cmp::Ordering::Equal => return,
        std::cmp::Ordering::Greater => "up",
        std::cmp::Ordering::Less => "down",
    };
    let message = format!("Scaled {way} replica set {name} from {before} to {after}");
    cx.event(deployment, EventKind::Normal, "ScalingReplicaSet", message);
}
