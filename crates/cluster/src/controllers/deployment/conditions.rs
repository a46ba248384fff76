//! The conditions of a Deployment: find, set, drop.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DeploymentCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Enough pods serve.
pub(crate) const AVAILABLE: &str = "Available";
/// The rollout moves, or has arrived.
pub(crate) const PROGRESSING: &str = "Progressing";
/// Pods could not be created or deleted.
pub(crate) const REPLICA_FAILURE: &str = "ReplicaFailure";

/// Why a rollout is in the state it is in.
pub(crate) mod reason {
    /// The set for the template was made.
    pub(crate) const CREATED: &str = "NewReplicaSetCreated";
    /// The set for the template was there already.
    pub(crate) const FOUND: &str = "FoundNewReplicaSet";
    /// Pods come and go.
    pub(crate) const UPDATED: &str = "ReplicaSetUpdated";
    /// The rollout is complete.
    pub(crate) const ARRIVED: &str = "NewReplicaSetAvailable";
    /// Nothing moved for too long.
    pub(crate) const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    /// The user halted the rollout.
    pub(crate) const PAUSED: &str = "DeploymentPaused";
    /// The user let it go on.
    pub(crate) const RESUMED: &str = "DeploymentResumed";
    /// The set for the template could not be made.
    pub(crate) const CREATE_FAILED: &str = "ReplicaSetCreateError";
    /// Enough pods serve.
    pub(crate) const ENOUGH: &str = "MinimumReplicasAvailable";
    /// Too few pods serve.
    pub(crate) const TOO_FEW: &str = "MinimumReplicasUnavailable";
}

/// A condition of now.
pub(crate) fn condition(
    type_: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: Some(type_.to_owned()),
        status: Some(status.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.into()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition of a type.
pub(crate) fn find<'a>(
    conditions: &'a [DeploymentCondition],
    type_: &str,
) -> Option<&'a DeploymentCondition> {
    conditions
        .iter()
        .find(|condition| condition.type_.as_deref() == Some(type_))
}

/// The reason that a condition gives.
pub(crate) fn reason_of<'a>(conditions: &'a [DeploymentCondition], type_: &str) -> Option<&'a str> {
    find(conditions, type_)?.reason.as_deref()
}

/// Sets a condition. Where status and reason stay, so does the condition; where the status stays, so does the time of
/// its last change.
pub(crate) fn set(conditions: &mut Vec<DeploymentCondition>, condition: DeploymentCondition) {
    let before = find(conditions, condition.type_.as_deref().unwrap_or_default());
    if before.is_some_and(|before| {
        before.status == condition.status && before.reason == condition.reason
    }) {
        return;
    }
    replace(conditions, condition);
}

/// Sets a condition even where it does not change, so that its time of update shows progress.
pub(crate) fn replace(
    conditions: &mut Vec<DeploymentCondition>,
    mut condition: DeploymentCondition,
) {
    let type_ = condition.type_.clone().unwrap_or_default();
    if let Some(before) =
        find(conditions, &type_).filter(|before| before.status == condition.status)
    {
        condition.last_transition_time = before.last_transition_time.clone();
    }
    remove(conditions, &type_);
    conditions.push(condition);
}

/// Drops the condition of a type.
pub(crate) fn remove(conditions: &mut Vec<DeploymentCondition>, type_: &str) {
    conditions.retain(|condition| condition.type_.as_deref() != Some(type_));
}
