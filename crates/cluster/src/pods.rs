//! What controllers ask of pods: whether one is ready, active, available, and how a new one is made from a template.
//!
//! Everything in this file is a plain function of the objects. [`claim`] says whose an object is and [`adopt`] acts on it,
//! [`ranking`] says which pods go first, [`hash`] names templates, [`batch`] creates many pods carefully.

pub(crate) mod adopt;
pub(crate) mod batch;
pub(crate) mod claim;
pub(crate) mod disruption;
pub(crate) mod hash;
pub(crate) mod ranking;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod selected;
pub(crate) mod selecting;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Whether a ready pod has been so for long enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It is available now.
    Now,
    /// Ready, and available after this time if nothing happens.
    In(Duration),
    /// Not ready, or ready without saying since when.
    NotReady,
}

/// The phase of a pod; empty where nobody has set one.
pub(crate) fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// Whether a pod ran to its end, well or not.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whether somebody asked for a pod's deletion.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether a pod counts as a replica: it neither finished nor goes away.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// Whether a pod says that it serves.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    ready_condition(pod).is_some_and(|condition| condition.status == "True")
}

/// Whether a pod has been ready for `min_ready_seconds`.
pub(crate) fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    availability(pod, min_ready_seconds, now) == Availability::Now
}

/// Since when a pod is ready, if it is and says so.
pub(crate) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let condition = ready_condition(pod).filter(|condition| condition.status == "True")?;
    condition.last_transition_time.as_ref().map(|time| time.0)
}

/// Whether a pod is available, and if not, when it may become so.
pub(crate) fn availability(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> Availability {
    if !is_ready(pod) {
        return Availability::NotReady;
    }
    if min_ready_seconds <= 0 {
        return Availability::Now;
    }
    let Some(since) = ready_since(pod) else {
        return Availability::NotReady;
    };
    let needed = SignedDuration::from_secs(i64::from(min_ready_seconds));
    let missing = needed.saturating_sub(now.duration_since(since));
    if missing.is_positive() {
        Availability::In(missing.unsigned_abs())
    } else {
        Availability::Now
    }
}

/// The shortest time after which one more pod becomes available by waiting alone.
pub(crate) fn next_availability<'a>(
    pods: impl IntoIterator<Item = &'a Pod>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let waiting =
        pods.into_iter()
            .filter_map(|pod| match availability(pod, min_ready_seconds, now) {
                Availability::In(wait) => Some(wait),
                Availability::Now | Availability::NotReady => None,
            });
    waiting.min()
}

/// The node a pod is bound to; empty before that.
pub(crate) fn node_name(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

/// The value of a label, if an object has it.
pub(crate) fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// A pod as its controller creates it: what the template says, owned, its name left to the server.
pub(crate) fn from_template(
    template: &PodTemplateSpec,
    namespace: Option<String>,
    owner: OwnerReference,
) -> Pod {
    let metadata = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", owner.name)),
            namespace,
            labels: metadata.labels,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

fn ready_condition(pod: &Pod) -> Option<&PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
}
