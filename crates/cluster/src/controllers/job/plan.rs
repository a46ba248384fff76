//! What is to be done about a job: pods to create, to delete, to let go, and what its status says. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubewright_runtime::events::EventKind;

use super::count::{self, Count, count, is_indexed, replaces_ended_only};
use super::finish::{self, COMPLETE, End, FAILED, Good, SUSPENDED};
use super::per_index::{self, Failures, is_limited};
use super::saturate;
use super::template::index_of;
use crate::pods::ranking;

/// The most pods that one pass creates or deletes.
const BURST: usize = 500;

/// What is to be done about a job.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The status, as it is before pods are created and deleted.
    pub(crate) status: JobStatus,
    /// A pod for each, with its index.
    pub(crate) create: Vec<Option<i32>>,
    /// How often the indexes of new pods have failed, where that is limited.
    pub(crate) failures: BTreeMap<i32, Failures>,
    pub(crate) delete: Vec<Removal>,
    /// Pods to be freed of the finalizer, once the status is written.
    pub(crate) release: Vec<Arc<Pod>>,
    pub(crate) events: Vec<PlannedEvent>,
    /// When to look again without a change.
    pub(crate) again: Option<Duration>,
}

/// A pod that has to go.
#[derive(Debug, PartialEq)]
pub(crate) struct Removal {
    pub(crate) pod: Arc<Pod>,
    /// Whether it goes without being counted as failed.
    pub(crate) uncounted: bool,
}

/// An event about the job.
#[derive(Debug, PartialEq)]
pub(crate) struct PlannedEvent {
    pub(crate) kind: EventKind,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What is to be done about a job with these pods.
pub(crate) fn plan(job: &Job, pods: &[Arc<Pod>], now: Timestamp) -> Plan {
    let status = job.status.clone().unwrap_or_default();
    let Some(spec) = job.spec.as_ref() else {
        return Plan {
            status,
            ..Plan::default()
        };
    };
    if finish::holds(&status, COMPLETE) || finish::holds(&status, FAILED) {
        let release = pods.to_vec();
        return Plan {
            status,
            release,
            ..Plan::default()
        };
    }
    let mut count = count(job, spec, pods);
    let end = finish::end(job, spec, &count, now);
    if end.is_some() || job.metadata.deletion_timestamp.is_some() {
        count.let_go(spec);
    }
    let mut plan = Plan {
        status,
        release: count.release.clone(),
        ..Plan::default()
    };
    start(spec, &mut plan, now);
    count.tell(spec, &mut plan.status);
    if let Some(end) = end {
        finishing(&mut plan, &count, &end, now);
    } else if spec.suspend == Some(true) {
        suspend(&mut plan, &count, now);
    } else if job.metadata.deletion_timestamp.is_none() {
        resume(&mut plan, now);
        manage(spec, &mut plan, &count, pods, now);
        wait_for_deadline(spec, &mut plan, now);
    }
    plan
}

/// Notes when a job began to run.
fn start(spec: &JobSpec, plan: &mut Plan, now: Timestamp) {
    if spec.suspend != Some(true) && plan.status.start_time.is_none() {
        plan.status.start_time = Some(Time(now));
    }
}

/// Ends a job: its pods first, its last condition when they are gone and counted.
fn finishing(plan: &mut Plan, count: &Count, end: &End, now: Timestamp) {
    let words = (end.reason.as_str(), end.message.as_str());
    finish::set(&mut plan.status, end.target(), "True", words, now);
    let active = count.active.iter().take(BURST).cloned();
    let uncounted = end.good == Good::Yes;
    plan.delete = active.map(|pod| Removal { pod, uncounted }).collect();
    if !count.active.is_empty() || count.terminating > 0 || !count.is_settled() {
        return;
    }
    finish::set(&mut plan.status, end.last(), "True", words, now);
    plan.events.push(match end.good {
        Good::Yes => {
            plan.status.completion_time = Some(Time(now));
            event(EventKind::Normal, "Completed", "Job completed")
        }
        Good::No => event(EventKind::Warning, reason(end), &end.message),
    });
}

/// The reason of a failure as a word that is known at compile time.
fn reason(end: &End) -> &'static str {
    let known = [
        "BackoffLimitExceeded",
        "DeadlineExceeded",
        "PodFailurePolicy",
        "MaxFailedIndexesExceeded",
        "FailedIndexes",
    ];
    let found = known.into_iter().find(|known| *known == end.reason);
    found.unwrap_or("Failed")
}

fn suspend(plan: &mut Plan, count: &Count, now: Timestamp) {
    let active = count.active.iter().take(BURST).cloned();
    plan.delete = active
        .map(|pod| Removal {
            pod,
            uncounted: true,
        })
        .collect();
    if !finish::holds(&plan.status, SUSPENDED) {
        let words = ("JobSuspended", "Job suspended");
        finish::set(&mut plan.status, SUSPENDED, "True", words, now);
        plan.status.start_time = None;
        plan.events
            .push(event(EventKind::Normal, "Suspended", "Job suspended"));
    }
}

fn resume(plan: &mut Plan, now: Timestamp) {
    if finish::holds(&plan.status, SUSPENDED) {
        let words = ("JobResumed", "Job resumed");
        finish::set(&mut plan.status, SUSPENDED, "False", words, now);
        plan.status.start_time = Some(Time(now));
        plan.events
            .push(event(EventKind::Normal, "Resumed", "Job resumed"));
    }
}

fn event(kind: EventKind, reason: &'static str, message: &str) -> PlannedEvent {
    let message = message.to_owned();
    PlannedEvent {
        kind,
        reason,
        message,
    }
}

/// Creates or deletes pods until as many run as should.
fn manage(spec: &JobSpec, plan: &mut Plan, count: &Count, pods: &[Arc<Pod>], now: Timestamp) {
    let active = saturate(count.active.len());
    let parallelism = spec.parallelism.unwrap_or(1).max(0);
    let wanted = match spec.completions {
        Some(completions) => {
            let given_up = saturate(count.failed_indexes.len());
            (completions - count.succeeded - given_up).clamp(0, parallelism)
        }
        // Once a pod of a work queue has ended well there is no more work.
        None if count.succeeded > 0 => active.min(parallelism),
        None => parallelism,
    };
    let surplus = surplus(spec, count, wanted, now);
    let going = if replaces_ended_only(spec) {
        count.terminating
    } else {
        0
    };
    let kept = active - saturate(surplus.len());
    let missing = wanted - kept - going;
    plan.delete = surplus;
    if missing <= 0 {
        return;
    }
    if is_limited(spec) {
        return create_limited(spec, plan, count, pods, (missing, now));
    }
    if let Some(wait) = count::backoff(spec, pods, now) {
        plan.again = Some(wait);
        return;
    }
    let missing = usize::try_from(missing).unwrap_or_default().min(BURST);
    plan.create = if is_indexed(spec) {
        free_indexes(spec, plan, count, pods)
            .take(missing)
            .map(Some)
            .collect()
    } else {
        vec![None; missing]
    };
}

/// Creates pods of indexes that have waited long enough after their own failures, whatever others did.
fn create_limited(
    spec: &JobSpec,
    plan: &mut Plan,
    count: &Count,
    pods: &[Arc<Pod>],
    (missing, now): (i32, Timestamp),
) {
    let missing = usize::try_from(missing).unwrap_or_default().min(BURST);
    for index in free_indexes(spec, plan, count, pods) {
        if plan.create.len() == missing {
            break;
        }
        let held = count.held.get(&index);
        if let Some(wait) = held.and_then(|pod| per_index::wait(pod, now)) {
            plan.again = Some(plan.again.map_or(wait, |again| again.min(wait)));
            continue;
        }
        let failures = held.map(|pod| per_index::after(spec, pod));
        plan.failures.insert(index, failures.unwrap_or_default());
        plan.create.push(Some(index));
    }
}

/// Pods that are one too many, or have an index that another has or that is none.
fn surplus(spec: &JobSpec, count: &Count, wanted: i32, now: Timestamp) -> Vec<Removal> {
    let mut seen = BTreeSet::new();
    let (good, mut gone): (Vec<_>, Vec<_>) = count.active.iter().cloned().partition(|pod| {
        let known = |index| index < spec.completions.unwrap_or_default();
        let ended =
            |index: &i32| count.completed.contains(index) || count.failed_indexes.contains(index);
        let mut fresh = |index| !ended(&index) && seen.insert(index);
        !is_indexed(spec) || index_of(pod).is_some_and(|index| known(index) && fresh(index))
    });
    let over = usize::try_from(saturate(good.len()) - wanted).unwrap_or_default();
    gone.extend(ranking::first_to_go(&good, &good, over, now));
    gone.truncate(BURST);
    gone.into_iter()
        .map(|pod| Removal {
            pod,
            uncounted: true,
        })
        .collect()
}

/// The indexes that nobody works on, in order.
fn free_indexes(
    spec: &JobSpec,
    plan: &Plan,
    count: &Count,
    pods: &[Arc<Pod>],
) -> impl Iterator<Item = i32> + use<> {
    let leaves = |pod: &Arc<Pod>| plan.delete.iter().any(|gone| gone.pod == *pod);
    let works = |pod: &&Arc<Pod>| {
        if replaces_ended_only(spec) {
            !crate::pods::is_finished(pod) && !leaves(pod)
        } else {
            crate::pods::is_active(pod) && !leaves(pod)
        }
    };
    let mut taken: BTreeSet<i32> = pods
        .iter()
        .filter(works)
        .filter_map(|pod| index_of(pod))
        .collect();
    taken.extend(&count.completed);
    taken.extend(&count.failed_indexes);
    (0..spec.completions.unwrap_or_default()).filter(move |index| !taken.contains(index))
}

fn wait_for_deadline(spec: &JobSpec, plan: &mut Plan, now: Timestamp) {
    let Some(deadline) = finish::deadline(spec, &plan.status) else {
        return;
    };
    let left = Duration::try_from(deadline.duration_since(now)).unwrap_or_default();
    plan.again = Some(plan.again.map_or(left, |again| again.min(left)));
}
