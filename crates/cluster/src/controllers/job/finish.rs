//! How a job ends, and the conditions that say so. Pure.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::count::Count;
use super::{policy, saturate};
use crate::pods::phase;

pub(crate) const COMPLETE: &str = "Complete";
pub(crate) const FAILED: &str = "Failed";
pub(crate) const SUSPENDED: &str = "Suspended";
/// Says that a job will be complete once its last pods are gone.
const SUCCESS: &str = "SuccessCriteriaMet";
/// Says that a job will have failed once its last pods are gone.
const FAILURE: &str = "FailureTarget";

/// How a job ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) good: Good,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Whether it ends well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Good {
    Yes,
    No,
}

impl End {
    fn new(good: Good, reason: &str, message: impl Into<String>) -> Self {
        let (reason, message) = (reason.to_owned(), message.into());
        Self {
            good,
            reason,
            message,
        }
    }

    /// The condition for the time until the last pods are gone.
    pub(crate) fn target(&self) -> &'static str {
        match self.good {
            Good::Yes => SUCCESS,
            Good::No => FAILURE,
        }
    }

    /// The condition after that.
    pub(crate) fn last(&self) -> &'static str {
        match self.good {
            Good::Yes => COMPLETE,
            Good::No => FAILED,
        }
    }
}

/// Whether a condition is there and true.
pub(crate) fn holds(status: &JobStatus, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition.status == "True")
}

pub(crate) fn find<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

/// Sets a condition; the time of its last change stays if its status does.
pub(crate) fn set(
    status: &mut JobStatus,
    kind: &str,
    value: &str,
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let same = |condition: &JobCondition| condition.type_ == kind && condition.status == value;
    let conditions = status.conditions.get_or_insert_default();
    if conditions.iter().any(same) {
        return;
    }
    conditions.retain(|condition| condition.type_ != kind);
    conditions.push(JobCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
}

/// How the job ends, if it does: as was decided before, or for what is seen now.
pub(crate) fn end(job: &Job, spec: &JobSpec, count: &Count, now: Timestamp) -> Option<End> {
    let status = job.status.clone().unwrap_or_default();
    for (kind, good) in [(SUCCESS, Good::Yes), (FAILURE, Good::No)] {
        if let Some(condition) = find(&status, kind).filter(|condition| condition.status == "True")
        {
            let reason = condition.reason.as_deref().unwrap_or_default();
            let message = condition.message.clone().unwrap_or_default();
            return Some(End::new(good, reason, message));
        }
    }
    failure(spec, &status, count, now).or_else(|| success(spec, count))
}

fn failure(spec: &JobSpec, status: &JobStatus, count: &Count, now: Timestamp) -> Option<End> {
    if let Some(message) = &count.verdict {
        return Some(End::new(Good::No, "PodFailurePolicy", message.as_str()));
    }
    let limit = spec.backoff_limit.unwrap_or(6);
    if count.failed > limit || restarts_exceed(spec, &count.active, limit) {
        let message = "Job has reached the specified backoff limit";
        return Some(End::new(Good::No, "BackoffLimitExceeded", message));
    }
    if deadline(spec, status).is_some_and(|deadline| now >= deadline) {
        let message = "Job was active longer than specified deadline";
        return Some(End::new(Good::No, "DeadlineExceeded", message));
    }
    failed_indexes(spec, count)
}

/// Whether so many indexes are given up that the job is.
fn failed_indexes(spec: &JobSpec, count: &Count) -> Option<End> {
    let failed = saturate(count.failed_indexes.len());
    if spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::new(Good::No, "MaxFailedIndexesExceeded", message));
    }
    let ended = failed.saturating_add(saturate(count.completed.len()));
    let all = failed > 0 && ended >= spec.completions.unwrap_or_default();
    all.then(|| End::new(Good::No, "FailedIndexes", "Job has failed indexes"))
}

/// When a job that runs has run for too long.
pub(crate) fn deadline(spec: &JobSpec, status: &JobStatus) -> Option<Timestamp> {
    if spec.suspend == Some(true) {
        return None;
    }
    let start = status.start_time.as_ref()?.0;
    let seconds = spec.active_deadline_seconds?;
    start.checked_add(SignedDuration::from_secs(seconds)).ok()
}

/// Whether containers that are restarted in place have failed too often.
fn restarts_exceed(spec: &JobSpec, active: &[Arc<Pod>], limit: i32) -> bool {
    let pod = spec.template.spec.as_ref();
    if pod.and_then(|pod| pod.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let alive = active
        .iter()
        .filter(|pod| matches!(phase(pod), "Running" | "Pending"));
    let statuses = alive
        .filter_map(|pod| pod.status.as_ref())
        .flat_map(|status| {
            let init = status.init_container_statuses.iter().flatten();
            init.chain(status.container_statuses.iter().flatten())
        });
    let restarts: i64 = statuses.map(|status| i64::from(status.restart_count)).sum();
    match limit {
        0 => restarts > 0,
        limit => restarts >= i64::from(limit),
    }
}

fn success(spec: &JobSpec, count: &Count) -> Option<End> {
    if let Some(rule) = policy::success(spec, &count.completed) {
        let message = format!("Matched rules at index {rule}");
        return Some(End::new(Good::Yes, "SuccessPolicy", message));
    }
    let reached = match spec.completions {
        Some(completions) => count.succeeded >= completions,
        // A work queue is done when one pod says so and the others have followed.
        None => count.succeeded > 0 && count.active.is_empty(),
    };
    reached.then(|| {
        let message = "Reached expected number of succeeded pods";
        End::new(Good::Yes, "CompletionsReached", message)
    })
}
