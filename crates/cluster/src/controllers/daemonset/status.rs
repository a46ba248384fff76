//! What a DaemonSet reports. Pure.

use k8s_openapi::api::apps::v1::DaemonSetStatus;

use super::eligibility::Fit;
use super::plan::View;
use crate::controllers::nonzero;
use crate::pods::is_ready;

/// The counts of now: nodes that should have a pod, that have one, and what the pod that is there longest says.
pub(super) fn status(view: &View<'_>) -> DaemonSetStatus {
    let set = view.observed.set;
    let before = set.status.as_ref();
    let mut status = DaemonSetStatus {
        desired_number_scheduled: view.desired(),
        observed_generation: set.metadata.generation,
        collision_count: before.and_then(|status| status.collision_count),
        conditions: before.and_then(|status| status.conditions.clone()),
        ..DaemonSetStatus::default()
    };
    let (mut available, mut updated) = (0, 0);
    for place in view.nodes.values() {
        let Some(pod) = place.pods.first() else {
            continue;
        };
        match place.fit {
            None => {}
            Some(Fit::Run) => {
                status.current_number_scheduled += 1;
                status.number_ready += i32::from(is_ready(pod));
                available += i32::from(view.is_available(pod));
                updated += i32::from(view.is_updated(pod));
            }
            Some(_) => status.number_misscheduled += 1,
        }
    }
    status.number_available = nonzero(available);
    status.updated_number_scheduled = nonzero(updated);
    status.number_unavailable = nonzero(status.desired_number_scheduled - available);
    status
}
