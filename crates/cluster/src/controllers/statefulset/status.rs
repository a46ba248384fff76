//! What a StatefulSet reports. Pure.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSetStatus;
use k8s_openapi::api::core::v1::Pod;

use super::identity::{ordinal, replicas, revision};
use super::plan::Observed;
use crate::controllers::nonzero;
use crate::pods::{is_available, is_ready, is_terminating, next_availability, phase};

/// The counts of now. Pods that were just deleted for an update are no longer among the current ones.
pub(super) fn status(observed: &Observed<'_>, replaced: &[Arc<Pod>]) -> StatefulSetStatus {
    let set = observed.set;
    let count = |test: &dyn Fn(&Pod) -> bool| -> i32 {
        let known = observed
            .pods
            .iter()
            .filter(|pod| ordinal(set, pod).is_some());
        i32::try_from(known.filter(|pod| test(pod)).count()).unwrap_or(i32::MAX)
    };
    let serves = |pod: &Pod| phase(pod) == "Running" && is_ready(pod);
    let at = |pod: &Pod, name: &str| !is_terminating(pod) && revision(pod) == name;
    let (current, update) = (&observed.current.name, &observed.update.name);
    let gone = replaced
        .iter()
        .filter(|pod| revision(pod) == current)
        .count();
    let current_replicas = count(&|pod| at(pod, current)) - i32::try_from(gone).unwrap_or(i32::MAX);
    let mut status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: count(&|_| true),
        ready_replicas: nonzero(count(&serves)),
        available_replicas: Some(count(&|pod| {
            serves(pod) && is_available(pod, min_ready(observed), observed.now)
        })),
        current_replicas: nonzero(current_replicas),
        updated_replicas: nonzero(count(&|pod| at(pod, update))),
        current_revision: Some(current.clone()),
        update_revision: Some(update.clone()),
        collision_count: Some(observed.collisions),
        conditions: set
            .status
            .as_ref()
            .and_then(|status| status.conditions.clone()),
    };
    complete(&mut status, replicas(set));
    status
}

/// Once all pods are updated and ready, the update revision is the current one.
fn complete(status: &mut StatefulSetStatus, wanted: i32) {
    let all = |count: Option<i32>| count.unwrap_or_default() == wanted;
    if status.replicas == wanted && all(status.updated_replicas) && all(status.ready_replicas) {
        status.current_replicas = status.updated_replicas;
        status.current_revision = status.update_revision.clone();
    }
}

fn min_ready(observed: &Observed<'_>) -> i32 {
    observed.set.spec.min_ready_seconds.unwrap_or_default()
}

/// When a pod becomes available by waiting alone.
pub(super) fn check_after(observed: &Observed<'_>) -> Option<Duration> {
    let pods = observed.pods.iter().map(AsRef::as_ref);
    next_availability(pods, min_ready(observed), observed.now)
}
