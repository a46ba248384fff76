//! How many pods a ReplicaSet creates or deletes, and what its status says. Pure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::controllers::nonzero;
use crate::pods::{self, ranking};

/// The most pods that one pass creates or deletes.
const BURST: usize = 500;

const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What to do about the number of pods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// The number is right.
    Keep,
    /// Create this many pods.
    Create(usize),
    /// Delete exactly these pods.
    Delete(Vec<Arc<Pod>>),
}

/// Why pods could not be created or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// `FailedCreate` or `FailedDelete`.
    pub(crate) reason: &'static str,
    /// The message of the server.
    pub(crate) message: String,
}

/// How many pods the set shall have.
pub(crate) fn desired(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1).max(0)
}

/// What to do about the number of pods. `related` are the pods of all sets of the same owner.
pub(crate) fn step(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    related: &[Arc<Pod>],
    now: Timestamp,
) -> Step {
    if set.metadata.deletion_timestamp.is_some() {
        return Step::Keep;
    }
    let desired = usize::try_from(desired(set)).unwrap_or_default();
    if active.len() < desired {
        Step::Create((desired - active.len()).min(BURST))
    } else if active.len() > desired {
        let count = (active.len() - desired).min(BURST);
        Step::Delete(ranking::first_to_go(active, related, count, now))
    } else {
        Step::Keep
    }
}

/// What the status says about these pods.
pub(crate) fn status(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    terminating: usize,
    failure: Option<&Failure>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let min_ready = set.spec.min_ready_seconds.unwrap_or_default();
    let count =
        |test: &dyn Fn(&Pod) -> bool| saturate(active.iter().filter(|pod| test(pod)).count());
    let available = |pod: &Pod| pods::is_available(pod, min_ready, now);
    ReplicaSetStatus {
        replicas: saturate(active.len()),
        fully_labeled_replicas: nonzero(count(&|pod| is_fully_labelled(set, pod))),
        ready_replicas: nonzero(count(&pods::is_ready)),
        available_replicas: nonzero(count(&available)),
        terminating_replicas: Some(saturate(terminating)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, failure, now),
    }
}

/// Whether a pod has all labels of the template.
fn is_fully_labelled(set: &ReplicaSet, pod: &Pod) -> bool {
    let template = set.spec.template.as_ref();
    let labels = template.and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let mut wanted = labels.into_iter().flatten();
    wanted.all(|(key, value)| pods::label(&pod.metadata, key) == Some(value))
}

/// The conditions of before, with the failure of now. A failure that lasts keeps its first message.
fn conditions(
    set: &ReplicaSet,
    failure: Option<&Failure>,
    now: Timestamp,
) -> Option<Vec<ReplicaSetCondition>> {
    let before = set
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions: Vec<_> = before.into_iter().flatten().cloned().collect();
    let is_failure =
        |condition: &ReplicaSetCondition| condition.type_.as_deref() == Some(REPLICA_FAILURE);
    match failure {
        None => conditions.retain(|condition| !is_failure(condition)),
        Some(_) if conditions.iter().any(is_failure) => {}
        Some(failure) => conditions.push(ReplicaSetCondition {
            type_: Some(REPLICA_FAILURE.to_owned()),
            status: Some("True".to_owned()),
            reason: Some(failure.reason.to_owned()),
            message: Some(failure.message.clone()),
            last_transition_time: Some(Time(now)),
        }),
    }
    (!conditions.is_empty()).then_some(conditions)
}

fn saturate(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
