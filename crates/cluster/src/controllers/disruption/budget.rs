//! What a disruption budget allows, from the pods that it covers. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::portion::{self, Round};

/// How long an evicted pod may take to be on its way out before it counts again.
const DELETION: SignedDuration = SignedDuration::from_mins(2);

/// How many pods there should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// As many as there are.
    Counted,
    /// As many as their controllers want.
    Scale(i32),
}

/// A budget has a text that is not a percentage.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value for IntOrString: {0:?} is not a percentage")]
pub(super) struct InvalidPortion(IntOrString);

/// Whether the number of pods that there should be matters, and not just that of those there are.
pub(super) fn needs_scale(budget: &PodDisruptionBudget) -> bool {
    let spec = budget.spec.as_ref();
    let is_share = |value: &IntOrString| matches!(value, IntOrString::String(_));
    spec.is_some_and(|s| {
        s.max_unavailable.is_some() || s.min_available.as_ref().is_some_and(is_share)
    })
}

/// Writes what a budget allows into its status. Gives the time after which it has to be done again, because a pod that
/// should be gone by then may not be.
///
/// # Errors
/// When the budget is written so that it cannot be understood.
pub(super) fn assess(
    budget: &mut PodDisruptionBudget,
    pods: &[Arc<Pod>],
    expected: Expected,
    now: Timestamp,
) -> Result<Option<Duration>, InvalidPortion> {
    let expected = match expected {
        Expected::Counted => i32::try_from(pods.len()).unwrap_or(i32::MAX),
        Expected::Scale(scale) => scale,
    };
    let desired = desired(budget, expected)?;
    let (disrupted, again) = still_disrupted(budget, pods, now);
    let healthy = pods
        .iter()
        .filter(|pod| is_healthy(pod, &disrupted))
        .count();
    let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let generation = budget.metadata.generation;
    let status = budget.status.get_or_insert_default();
    status.current_healthy = Some(healthy);
    status.desired_healthy = Some(desired);
    status.expected_pods = Some(expected);
    status.disruptions_allowed = Some(allowed);
    status.disrupted_pods = (!disrupted.is_empty()).then_some(disrupted);
    status.observed_generation = generation;
    match allowed {
        0 => set_condition(budget, "False", "InsufficientPods", "", now),
        _ => set_condition(budget, "True", "SufficientPods", "", now),
    }
    Ok(again)
}

/// Allows nothing, because the pods could not be counted.
pub(super) fn fail(budget: &mut PodDisruptionBudget, why: &str, now: Timestamp) {
    budget.status.get_or_insert_default().disruptions_allowed = Some(0);
    set_condition(budget, "False", "SyncFailed", why, now);
}

/// How many pods have to be healthy.
fn desired(budget: &PodDisruptionBudget, expected: i32) -> Result<i32, InvalidPortion> {
    let spec = budget.spec.as_ref();
    if let Some(most) = spec.and_then(|spec| spec.max_unavailable.as_ref()) {
        return Ok(expected.saturating_sub(portion(most, expected)?).max(0));
    }
    match spec.and_then(|spec| spec.min_available.as_ref()) {
        Some(least) => portion(least, expected),
        None => Ok(0),
    }
}

/// A number, or a share rounded up.
fn portion(value: &IntOrString, of: i32) -> Result<i32, InvalidPortion> {
    portion::of(value, of, Round::Up).ok_or_else(|| InvalidPortion(value.clone()))
}

/// The evicted pods that are not yet on their way out, and when the first of them is overdue.
fn still_disrupted(
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Time>, Option<Duration>) {
    let noted = budget
        .status
        .as_ref()
        .and_then(|s| s.disrupted_pods.as_ref());
    let mut still = BTreeMap::new();
    let mut first: Option<Duration> = None;
    for pod in pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
    {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let Some(since) = noted.and_then(|noted| noted.get(name)) else {
            continue;
        };
        let due = since.0.saturating_add(DELETION).unwrap_or(Timestamp::MAX);
        if let Ok(left) = Duration::try_from(due.duration_since(now)) {
            first = Some(first.map_or(left, |first| first.min(left)));
            still.insert(name.to_owned(), since.clone());
        }
    }
    (still, first)
}

/// Whether a pod is ready and stays.
fn is_healthy(pod: &Pod, disrupted: &BTreeMap<String, Time>) -> bool {
    let conditions = pod
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.any(|c| c.type_ == "Ready" && c.status == "True");
    let leaves = pod
        .metadata
        .name
        .as_ref()
        .is_some_and(|name| disrupted.contains_key(name));
    ready && !leaves && pod.metadata.deletion_timestamp.is_none()
}

fn set_condition(
    budget: &mut PodDisruptionBudget,
    is: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let status = budget.status.get_or_insert_default();
    let generation = status.observed_generation;
    let conditions = status.conditions.get_or_insert_default();
    let place = conditions
        .iter()
        .position(|c| c.type_ == "DisruptionAllowed");
    let since = place
        .map(|place| &conditions[place])
        .filter(|c| c.status == is);
    let condition = Condition {
        type_: "DisruptionAllowed".to_owned(),
        status: is.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: since.map_or(Time(now), |c| c.last_transition_time.clone()),
    };
    match place {
        Some(place) => conditions[place] = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pods(ready: usize, unready: usize) -> Vec<Arc<Pod>> {
        let pod = |n: usize| {
            let status = if n < ready { "True" } else { "False" };
            let pod = json!({
                "metadata": {"name": format!("p{n}")},
                "status": {"conditions": [{"type": "Ready", "status": status}]},
            });
            Arc::new(serde_json::from_value(pod).expect("a pod"))
        };
        (0..ready + unready).map(pod).collect()
    }

    fn budget(spec: Value, status: Value) -> PodDisruptionBudget {
        let budget =
            json!({"metadata": {"name": "b", "generation": 3}, "spec": spec, "status": status});
        serde_json::from_value(budget).expect("a budget")
    }

    fn none() -> Value {
        json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0})
    }

    /// Ready, unready, what the controllers want, and then healthy, desired, expected, allowed.
    #[test]
    fn budgets_allow_what_is_healthy_beyond_what_is_desired() {
        let cases = [
            (json!({"minAvailable": 2}), 3, 0, None, (3, 2, 3, 1)),
            (json!({"minAvailable": 2}), 1, 2, None, (1, 2, 3, 0)),
            (json!({"minAvailable": 0}), 0, 0, None, (0, 0, 0, 0)),
            (json!({"minAvailable": "50%"}), 3, 0, Some(3), (3, 2, 3, 1)),
            (json!({"minAvailable": "100%"}), 3, 0, Some(3), (3, 3, 3, 0)),
            (json!({"maxUnavailable": 1}), 3, 0, Some(3), (3, 2, 3, 1)),
            (json!({"maxUnavailable": 1}), 2, 0, Some(3), (2, 2, 3, 0)),
            (json!({"maxUnavailable": 5}), 2, 0, Some(3), (2, 0, 3, 2)),
            (
                json!({"maxUnavailable": "34%"}),
                3,
                0,
                Some(3),
                (3, 1, 3, 2),
            ),
            (json!({}), 3, 0, None, (3, 0, 3, 3)),
        ];
        for (spec, ready, unready, scale, expected) in cases {
            let mut budget = budget(spec.clone(), none());
            assert_eq!(needs_scale(&budget), scale.is_some(), "{spec}");
            let wanted = scale.map_or(Expected::Counted, Expected::Scale);
            assess(
                &mut budget,
                &pods(ready, unready),
                wanted,
                Timestamp::UNIX_EPOCH,
            )
            .expect("sound");
            let s = budget.status.expect("written");
            let found = [
                s.current_healthy,
                s.desired_healthy,
                s.expected_pods,
                s.disruptions_allowed,
            ];
            let (healthy, desired, pods, allowed) = expected;
            assert_eq!(found, [healthy, desired, pods, allowed].map(Some), "{spec}");
            assert_eq!(s.observed_generation, Some(3));
            let condition = &s.conditions.expect("one")[0];
            let reason = if expected.3 > 0 {
                "SufficientPods"
            } else {
                "InsufficientPods"
            };
            assert_eq!(condition.reason, reason);
        }
    }

    #[test]
    fn evicted_pod_does_not_count_until_it_is_overdue() {
        let mut status = none();
        status["disruptedPods"] =
            json!({"p0": "1970-01-01T00:00:00Z", "gone": "1970-01-01T00:00:00Z"});
        let at = |second| Timestamp::from_second(second).expect("in range");
        for (now, healthy, again) in [(at(20), 2, Some(100)), (at(121), 3, None)] {
            let mut budget = budget(json!({"minAvailable": 1}), status.clone());
            let left = assess(&mut budget, &pods(3, 0), Expected::Counted, now).expect("sound");
            assert_eq!(left, again.map(Duration::from_secs));
            let status = budget.status.expect("written");
            assert_eq!(status.current_healthy, Some(healthy));
            let noted = status.disrupted_pods.unwrap_or_default();
            assert_eq!(noted.contains_key("p0"), again.is_some());
            assert!(!noted.contains_key("gone"));
        }
    }
}
