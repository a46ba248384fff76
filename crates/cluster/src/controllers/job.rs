//! Jobs: pods that run to their end, as often as it takes.
//!
//! Every pod carries a finalizer until its end is in the job's status, so that none is counted twice or never. A pod
//! that ended goes into `uncountedTerminatedPods` first, then loses the finalizer, and is then added to the counts.

mod count;
mod finish;
mod indexes;
mod per_index;
mod plan;
mod policy;
mod template;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::owners::controller_of;
use kubewright_runtime::{
    ClientError, Context, Controller, Error, IgnoreNotFound, Key, Outcome, Predicate, Reconciler,
    finalizer,
};

use self::plan::Plan;
use super::{WORKERS, create_pod, delete_pod};
use crate::pods::adopt::{self, Selecting, claim_all};
use crate::pods::batch::slow_start;
use crate::pods::claim::{selector, selects};
use crate::writes::report;

/// Keeps a pod until its end is counted.
pub(crate) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// Who takes care of a job that names nobody.
const CONTROLLER: &str = "kubernetes.io/job-controller";

/// The controller of jobs.
pub(crate) fn controller() -> Controller {
    Controller::of::<Job>("job-controller")
        .owns::<Pod>()
        .watches(adopt::orphans::<Job, Pod>())
        .workers(WORKERS)
        .reconciler(Jobs)
}

impl Selecting for Job {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        self.spec.as_ref()?.selector.as_ref().map(Cow::Borrowed)
    }
}

/// Frees pods whose job is gone from its finalizer.
pub(crate) fn orphan_controller() -> Controller {
    Controller::of::<Pod>("job-tracking")
        .when(Predicate::value(|pod: &Pod| {
            finalizer::contains(pod, TRACKING)
        }))
        .reconciler(Orphans)
}

struct Jobs;

impl Reconciler<Job> for Jobs {
    async fn reconcile(&self, job: Arc<Job>, cx: &Context) -> Result<Outcome, Error> {
        let Some(spec) = job.spec.as_ref().filter(|spec| {
            let manager = spec.managed_by.as_deref();
            manager.is_none_or(|manager| manager == CONTROLLER)
        }) else {
            return Ok(Outcome::done());
        };
        let Some(selector) = spec.selector.as_ref().and_then(selector) else {
            return Ok(Outcome::done());
        };
        let matches = |pod: &Pod| selects(&selector, &pod.metadata);
        let pods = claim_all::<_, Pod>(cx.client(), &*job, matches).await?;
        let plan = plan::plan(&job, &pods, cx.now());
        let again = plan.again;
        carry_out(cx, &job, plan).await?;
        Ok(again.map_or_else(Outcome::done, Outcome::requeue_after))
    }
}

/// Does what the plan says. The status is written before finalizers are removed: what it does not know yet must stay.
async fn carry_out(cx: &Context, job: &Job, plan: Plan) -> Result<(), Error> {
    let mut status = plan.status;
    let made = slow_start(plan.create.len(), |at| {
        let index = plan.create[at];
        let failures = index.and_then(|index| plan.failures.get(&index));
        let pod = template::pod(job, index, failures.copied());
        async move { create_pod(cx, job, &pod).await }
    });
    let made = made.await;
    let removals = plan.delete.iter().map(|gone| remove(cx, job, gone));
    let removed: Vec<_> = join_all(removals).await;
    let before = status.active.unwrap_or_default();
    let after = before + saturate(made.done) - saturate(plan.delete.len());
    status.active = super::nonzero(after.max(0));
    report(cx.client(), job, |job| job.status = Some(status)).await?;
    for event in plan.events {
        cx.event(job, event.kind, event.reason, event.message);
    }
    for freed in join_all(plan.release.iter().map(|pod| free(cx, pod))).await {
        freed?;
    }
    for result in removed {
        result?;
    }
    made.failure.map_or(Ok(()), |error| Err(error.into()))
}

async fn remove(cx: &Context, job: &Job, gone: &plan::Removal) -> Result<(), ClientError> {
    if gone.uncounted {
        free(cx, &gone.pod).await?;
    }
    delete_pod(cx, job, &gone.pod).await
}

/// Takes the finalizer off a pod.
async fn free(cx: &Context, pod: &Pod) -> Result<(), ClientError> {
    if !finalizer::contains(pod, TRACKING) {
        return Ok(());
    }
    let take = |pod: &mut Pod| {
        finalizer::remove(pod, TRACKING);
    };
    let written = cx.client().modify(pod, take).await;
    written.ignore_not_found().map(drop)
}

fn saturate(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

struct Orphans;

impl Reconciler<Pod> for Orphans {
    async fn reconcile(&self, pod: Arc<Pod>, cx: &Context) -> Result<Outcome, Error> {
        if !finalizer::contains(&*pod, TRACKING) {
            return Ok(Outcome::done());
        }
        if let Some(owner) = controller_of(&*pod).filter(|owner| owner.kind == "Job") {
            let key = Key::new(cx.key().namespace().unwrap_or_default(), &owner.name);
            let is_it = |job: &Job| job.metadata.uid.as_ref() == Some(&owner.uid);
            let known = cx.client().get::<Job>(&key).await?;
            if known.is_some_and(|job| is_it(&job)) {
                return Ok(Outcome::done());
            }
            let job = cx.client().live().get::<Job>(&key).await?;
            if job.is_some_and(|job| is_it(&job)) {
                return Ok(Outcome::done());
            }
        }
        free(cx, &pod).await?;
        Ok(Outcome::done())
    }
}
