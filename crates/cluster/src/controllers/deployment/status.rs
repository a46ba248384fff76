//! What a Deployment reports: counts, availability, progress. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentStatus, ReplicaSetCondition,
};

use super::bounds::{Bounds, replicas};
use super::conditions::{self, AVAILABLE, PROGRESSING, REPLICA_FAILURE, condition, reason};
use super::sets::Slot;
use crate::controllers::nonzero;

/// Seconds after which a rollout without progress failed; none where the user does not care.
pub(crate) fn deadline(deployment: &Deployment) -> Option<i32> {
    let deadline = deployment.spec.progress_deadline_seconds;
    deadline.filter(|seconds| *seconds != i32::MAX)
}

/// The counts of now and whether enough pods serve. `kept` are the conditions to go on from.
pub(crate) fn counts(
    deployment: &Deployment,
    new: Option<&Slot>,
    old: &[Slot],
    mut kept: Vec<DeploymentCondition>,
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |count: &dyn Fn(&Slot) -> i32| -> i32 {
        old.iter()
            .chain(new)
            .map(count)
            .fold(0, i32::saturating_add)
    };
    let available = sum(&Slot::available);
    let unavailable = sum(&Slot::desired).saturating_sub(available).max(0);
    conditions::set(
        &mut kept,
        availability(&Bounds::of(deployment), available, now),
    );
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(&Slot::running)),
        updated_replicas: nonzero(new.map_or(0, Slot::running)),
        ready_replicas: nonzero(sum(&ready)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero(unavailable),
        terminating_replicas: terminating(new, old),
        collision_count: deployment
            .status
            .as_ref()
            .and_then(|status| status.collision_count),
        conditions: Some(kept),
    }
}

fn availability(bounds: &Bounds, available: i32, now: Timestamp) -> DeploymentCondition {
    if available >= bounds.least_available() {
        let message = "Deployment has minimum availability.";
        condition(AVAILABLE, "True", reason::ENOUGH, message, now)
    } else {
        let message = "Deployment does not have minimum availability.";
        condition(AVAILABLE, "False", reason::TOO_FEW, message, now)
    }
}

fn ready(slot: &Slot) -> i32 {
    let status = slot.after.status.as_ref();
    status
        .and_then(|status| status.ready_replicas)
        .unwrap_or_default()
}

/// The sum over all sets, if all that were looked at say theirs.
fn terminating(new: Option<&Slot>, old: &[Slot]) -> Option<i32> {
    let mut sum: i32 = 0;
    for slot in old.iter().chain(new) {
        let status = slot.after.status.as_ref();
        match status.and_then(|status| status.terminating_replicas) {
            Some(count) => sum = sum.saturating_add(count),
            None if status
                .and_then(|status| status.observed_generation)
                .is_none() => {}
            None => return None,
        }
    }
    Some(sum)
}

/// Judges the rollout by how the counts changed since the last report.
pub(crate) fn judge(
    deployment: &Deployment,
    new: Option<&Slot>,
    status: &mut DeploymentStatus,
    now: Timestamp,
) {
    let complete = is_complete(deployment, status);
    let progressing = is_progressing(deployment, status);
    let settled = status.replicas == status.updated_replicas;
    let conditions = status.conditions.get_or_insert_default();
    let Some(deadline) = deadline(deployment) else {
        conditions::remove(conditions, PROGRESSING);
        return;
    };
    if settled && conditions::reason_of(conditions, PROGRESSING) == Some(reason::ARRIVED) {
        return;
    }
    let subject = subject(deployment, new);
    let say = |value: &str, reason: &str, what: &str| {
        condition(
            PROGRESSING,
            value,
            reason,
            format!("{subject} {what}."),
            now,
        )
    };
    if complete {
        conditions::set(
            conditions,
            say("True", reason::ARRIVED, "has successfully progressed"),
        );
    } else if progressing {
        conditions::replace(conditions, say("True", reason::UPDATED, "is progressing"));
    } else if is_late(conditions, deadline, now) {
        conditions::set(
            conditions,
            say("False", reason::TIMED_OUT, "has timed out progressing"),
        );
    }
}

fn subject(deployment: &Deployment, new: Option<&Slot>) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    match new {
        Some(new) => format!("ReplicaSet {:?}", name(&new.after.metadata.name)),
        None => format!("Deployment {:?}", name(&deployment.metadata.name)),
    }
}

/// Whether all pods are new and available and the report is about the latest wish.
pub(crate) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = Some(replicas(deployment));
    let count = |count: Option<i32>| Some(count.unwrap_or_default());
    count(status.updated_replicas) == wanted
        && count(status.replicas) == wanted
        && count(status.available_replicas) == wanted
        && status.observed_generation >= deployment.metadata.generation
}

/// Whether new pods came or became ready or available, or old ones went.
fn is_progressing(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let before = deployment.status.clone().unwrap_or_default();
    let count = |count: Option<i32>| count.unwrap_or_default();
    let old = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(status.updated_replicas) > count(before.updated_replicas)
        || old(status) < old(&before)
        || count(status.ready_replicas) > count(before.ready_replicas)
        || count(status.available_replicas) > count(before.available_replicas)
}

fn is_late(conditions: &[DeploymentCondition], deadline: i32, now: Timestamp) -> bool {
    let Some(condition) = conditions::find(conditions, PROGRESSING) else {
        return false;
    };
    match condition.reason.as_deref() {
        Some(reason::ARRIVED) => false,
        Some(reason::TIMED_OUT) => true,
        _ => remaining(condition, deadline, now).is_some_and(|left| left.is_negative()),
    }
}

fn remaining(
    condition: &DeploymentCondition,
    deadline: i32,
    now: Timestamp,
) -> Option<SignedDuration> {
    let since = condition.last_update_time.as_ref()?.0;
    let allowed = SignedDuration::from_secs(i64::from(deadline));
    Some(allowed.saturating_sub(now.duration_since(since)))
}

/// After which time to look again whether the rollout is late; none where it cannot become so.
pub(crate) fn check_after(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deadline(deployment)?;
    if deployment.spec.paused == Some(true) || is_complete(deployment, status) {
        return None;
    }
    let condition = conditions::find(status.conditions.as_deref()?, PROGRESSING)?;
    if matches!(
        condition.reason.as_deref(),
        Some(reason::TIMED_OUT | reason::ARRIVED)
    ) {
        return None;
    }
    let left = remaining(condition, deadline, now)?.max(SignedDuration::ZERO);
    // A second more, so that the check is not a moment too early: times in conditions have no fractions.
    Some(left.unsigned_abs() + Duration::from_secs(1))
}

/// Shows the failure of a set to create or delete pods as the Deployment's own; the new set's first.
pub(crate) fn show_failures(new: Option<&Slot>, old: &[Slot], status: &mut DeploymentStatus) {
    let failure = new.into_iter().chain(old).find_map(failure_of);
    let conditions = status.conditions.get_or_insert_default();
    match failure {
        Some(failure) => conditions::set(conditions, promoted(failure)),
        None => conditions::remove(conditions, REPLICA_FAILURE),
    }
}

fn failure_of(slot: &Slot) -> Option<&ReplicaSetCondition> {
    let conditions = slot.after.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE))
}

fn promoted(failure: &ReplicaSetCondition) -> DeploymentCondition {
    DeploymentCondition {
        type_: failure.type_.clone(),
        status: failure.status.clone(),
        reason: failure.reason.clone(),
        message: failure.message.clone(),
        last_update_time: failure.last_transition_time.clone(),
        last_transition_time: failure.last_transition_time.clone(),
    }
}
