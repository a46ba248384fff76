//! A pod that was about to be disrupted, and was not: its condition is taken back.
//!
//! Mirrors `disruption.go: nonTerminatingPodHasStaleDisruptionCondition` and `syncStalePodDisruption`.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// How long a pod may carry the condition without being deleted.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// A kubelet may take any time between the condition and the end of the pod.
const BY_KUBELET: &str = "TerminationByKubelet";

/// Since when a pod is said to be disrupted although nobody deletes it.
pub(super) fn since(pod: &Pod) -> Option<Timestamp> {
    let status = pod.status.as_ref()?;
    let is_over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    if pod.metadata.deletion_timestamp.is_some() || is_over {
        return None;
    }
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET)?;
    let by_kubelet = condition.reason.as_deref() == Some(BY_KUBELET);
    if condition.status != "True" || by_kubelet {
        return None;
    }
    let since = condition.last_transition_time.as_ref();
    Some(since.map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

/// Says that the pod is not disrupted.
pub(super) fn reset(pod: &mut Pod, now: Timestamp) {
    let status = pod.status.get_or_insert_default();
    let mut conditions = status.conditions.iter_mut().flatten();
    let found = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET);
    if let Some(condition) = found {
        *condition = PodCondition {
            type_: DISRUPTION_TARGET.to_owned(),
            status: "False".to_owned(),
            last_transition_time: Some(Time(now)),
            observed_generation: condition.observed_generation,
            ..PodCondition::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(metadata: Value, phase: &str, condition: Value) -> Pod {
        let status = json!({"phase": phase, "conditions": [condition]});
        let pod = json!({"metadata": metadata, "status": status});
        serde_json::from_value(pod).expect("it is a pod")
    }

    /// Mirrors `disruption_test.go: TestStalePodDisruption`.
    #[test]
    fn condition_is_stale_when_nobody_deletes_the_pod() {
        let moment = "2030-01-01T00:00:00Z";
        let target = |status: &str, reason: &str| json!({"type": "DisruptionTarget", "status": status, "reason": reason, "lastTransitionTime": moment});
        let (running, evicted) = ("Running", "EvictionByEvictionAPI");
        for (metadata, phase, condition, stale) in [
            (json!({}), running, target("True", evicted), true),
            (
                json!({"deletionTimestamp": moment}),
                running,
                target("True", evicted),
                false,
            ),
            (json!({}), "Failed", target("True", evicted), false),
            (json!({}), running, target("False", evicted), false),
            (json!({}), running, target("True", BY_KUBELET), false),
            (
                json!({}),
                running,
                json!({"type": "Ready", "status": "True"}),
                false,
            ),
        ] {
            let mut pod = pod(metadata.clone(), phase, condition.clone());
            assert_eq!(
                since(&pod).is_some(),
                stale,
                "{metadata} {phase} {condition}"
            );
            reset(&mut pod, moment.parse().expect("a moment"));
            assert_eq!(since(&pod), None);
        }
    }
}
