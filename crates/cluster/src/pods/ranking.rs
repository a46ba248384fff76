//! Which pods go first when there are too many.
//!
//! The order is that of the real controller, made total. There, two pods of nearly the same age are compared by their
//! uid at once, but two of exactly the same age by their restarts first, which is not an order for three pods. Here
//! ages are compared by their power of two and ties go on to the next rule; the uid decides last.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::{is_active, is_ready, node_name, phase, ready_since};

/// The annotation with which users say what a pod's deletion costs.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The rank of one pod: the least goes first. Rules in the order of their weight.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    assigned: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    neighbours: Reverse<usize>,
    ready_age: i32,
    restarts: Reverse<(i32, i32)>,
    age: i32,
    uid: String,
}

/// The `count` pods of `pods` to delete. `related` are the active pods that share the owner's owner: where several
/// of them are on one node, that node gives up pods first.
pub(crate) fn first_to_go(
    pods: &[Arc<Pod>],
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in related.iter().filter(|pod| is_active(pod)) {
        *on_node.entry(node_name(pod)).or_default() += 1;
    }
    let neighbours = |pod: &Pod| on_node.get(node_name(pod)).copied().unwrap_or_default();
    let mut ranked = pods.to_vec();
    ranked.sort_by_cached_key(|pod| rank(pod, neighbours(pod), now));
    ranked.truncate(count);
    ranked
}

fn rank(pod: &Pod, neighbours: usize, now: Timestamp) -> Rank {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    Rank {
        assigned: !node_name(pod).is_empty(),
        phase: match phase(pod) {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        },
        ready: is_ready(pod),
        cost: deletion_cost(pod),
        neighbours: Reverse(neighbours),
        ready_age: magnitude(ready_since(pod), now),
        restarts: Reverse(restarts(pod)),
        age: magnitude(created, now),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
    }
}

/// What the annotation says, if it says a whole number as Go prints it; nothing otherwise.
fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|all| all.get(DELETION_COST)) else {
        return 0;
    };
    let canonical = !text.starts_with('+') && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| canonical).unwrap_or_default()
}

/// The age as a power of two of nanoseconds: ages of one magnitude are alike. Unknown is younger than any.
fn magnitude(since: Option<Timestamp>, now: Timestamp) -> i32 {
    let Some(since) = since else {
        return -2;
    };
    let age = now.duration_since(since).as_nanos();
    match u128::try_from(age).ok().and_then(u128::checked_ilog2) {
        Some(power) => i32::try_from(power).unwrap_or(i32::MAX),
        None => -1,
    }
}

/// The most restarts of a container, and of a sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let Some(status) = &pod.status else {
        return (0, 0);
    };
    let most = |all: &Option<Vec<ContainerStatus>>, counts: &dyn Fn(&str) -> bool| {
        let all = all.iter().flatten();
        let counted = all.filter(|container| counts(&container.name));
        counted
            .map(|container| container.restart_count)
            .max()
            .unwrap_or_default()
    };
    let sidecar = |name: &str| is_sidecar(pod, name);
    (
        most(&status.container_statuses, &|_| true),
        most(&status.init_container_statuses, &sidecar),
    )
}

fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let spec = pod.spec.as_ref();
    let containers = spec.and_then(|spec| spec.init_containers.as_ref());
    containers.into_iter().flatten().any(|container| {
        container.name == name && container.restart_policy.as_deref() == Some("Always")
    })
}
