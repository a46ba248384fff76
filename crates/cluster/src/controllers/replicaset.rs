//! ReplicaSets: as many pods of one template as the user wants. ReplicationControllers are run by the same code
//! ([`super::replication`]), as in Kubernetes.
//!
//! Pods are counted in a cache that shows this controller's own writes, so there is no account of expected creations
//! and deletions.

pub(crate) mod plan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright_runtime::owners::{controller_of, is_controlled_by};
use kubewright_runtime::{ClientError, Context, Controller, Error, Outcome, Reconciler};

use self::plan::{Failure, Step};
use super::WORKERS;
use crate::pods::adopt::{self, Selecting, claim_all, controlled_by};
use crate::pods::batch::slow_start;
use crate::pods::claim::{controller_reference, selector, selects};
use crate::pods::{from_template, is_active, is_finished, is_terminating, next_availability};
use crate::writes::{report, said};

/// A kind that keeps a number of pods of one template.
pub(crate) trait Replicated: Selecting + PartialEq {
    /// What it asks for and reports, as a ReplicaSet.
    fn as_set(&self) -> Cow<'_, ReplicaSet>;

    /// Puts the status of a ReplicaSet in place of its own.
    fn set_status(&mut self, status: ReplicaSetStatus);
}

/// The controller of ReplicaSets.
pub(crate) fn controller() -> Controller {
    controller_of_kind::<ReplicaSet>("replicaset-controller")
}

/// The controller of a kind that keeps a number of pods.
pub(crate) fn controller_of_kind<K: Replicated>(name: &str) -> Controller {
    Controller::of::<K>(name)
        .owns::<Pod>()
        .watches(adopt::orphans::<K, Pod>())
        .workers(WORKERS)
        .reconciler(Replicas::<K>(PhantomData))
}

impl Selecting for ReplicaSet {
    fn label_selector(&self) -> Option<Cow<'_, LabelSelector>> {
        Some(Cow::Borrowed(&self.spec.selector))
    }
}

impl Replicated for ReplicaSet {
    fn as_set(&self) -> Cow<'_, ReplicaSet> {
        Cow::Borrowed(self)
    }

    fn set_status(&mut self, status: ReplicaSetStatus) {
        self.status = Some(status);
    }
}

struct Replicas<K>(PhantomData<fn() -> K>);

impl<K: Replicated> Reconciler<K> for Replicas<K> {
    async fn reconcile(&self, owner: Arc<K>, cx: &Context) -> Result<Outcome, Error> {
        let set = owner.as_set();
        let Some(selector) = selector(&set.spec.selector) else {
            return Ok(Outcome::done());
        };
        // What finished or goes away is not adopted any more.
        let mine = |pod: &Pod| is_active(pod) || is_controlled_by(&*owner, pod);
        let matches = |pod: &Pod| selects(&selector, &pod.metadata) && mine(pod);
        let pods = claim_all::<_, Pod>(cx.client(), &*owner, matches).await?;
        let (active, idle): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| is_active(pod));
        let terminating = idle
            .iter()
            .filter(|pod| is_terminating(pod) && !is_finished(pod));
        let failure = manage(cx, &*owner, &set, &active).await;
        let shown = failure.as_ref().err().map(|(failure, _)| failure);
        let status = plan::status(&set, &active, terminating.count(), shown, cx.now());
        report(cx.client(), &*owner, |owner| owner.set_status(status)).await?;
        failure.map_err(|(_, error)| Error::from(error))?;
        let seconds = set.spec.min_ready_seconds.unwrap_or_default();
        let pods = active.iter().map(AsRef::as_ref);
        Ok(match next_availability(pods, seconds, cx.now()) {
            Some(wait) => Outcome::requeue_after(wait),
            None => Outcome::done(),
        })
    }
}

/// Creates or deletes pods until there are as many as there should be.
async fn manage<K: Replicated>(
    cx: &Context,
    owner: &K,
    set: &ReplicaSet,
    active: &[Arc<Pod>],
) -> Result<(), (Failure, ClientError)> {
    let related = related(cx, set, active)
        .await
        .map_err(|error| failed("FailedDelete", error))?;
    match plan::step(set, active, &related, cx.now()) {
        Step::Keep => Ok(()),
        Step::Create(count) => {
            let batch = slow_start(count, |_| create_pod(cx, owner, set)).await;
            batch
                .failure
                .map_or(Ok(()), |error| Err(failed("FailedCreate", error)))
        }
        Step::Delete(pods) => {
            let deletions = pods.iter().map(|pod| super::delete_pod(cx, owner, pod));
            let results = join_all(deletions).await;
            let failure = results.into_iter().find_map(Result::err);
            failure.map_or(Ok(()), |error| Err(failed("FailedDelete", error)))
        }
    }
}

fn failed(reason: &'static str, error: ClientError) -> (Failure, ClientError) {
    let message = said(&error);
    (Failure { reason, message }, error)
}

/// The pods of all sets of the same owner, if some of this one's are to go.
async fn related(
    cx: &Context,
    set: &ReplicaSet,
    active: &[Arc<Pod>],
) -> Result<Vec<Arc<Pod>>, ClientError> {
    let Some(owner) = controller_of(set) else {
        return Ok(active.to_vec());
    };
    if active.len() <= usize::try_from(plan::desired(set)).unwrap_or_default() {
        return Ok(Vec::new());
    }
    let mut pods = Vec::new();
    for sibling in controlled_by::<ReplicaSet>(cx.client(), &owner.uid).await? {
        let uid = sibling.metadata.uid.as_deref().unwrap_or_default();
        pods.extend(controlled_by(cx.client(), uid).await?);
    }
    Ok(pods)
}

async fn create_pod<K: Replicated>(
    cx: &Context,
    owner: &K,
    set: &ReplicaSet,
) -> Result<(), ClientError> {
    let template = set.spec.template.clone().unwrap_or_default();
    let namespace = set.metadata.namespace.clone();
    let pod = from_template(&template, namespace, controller_reference(owner));
    super::create_pod(cx, owner, &pod).await
}
