//! In-place resizes: what a node has set aside for containers, and what becomes of a wish for more or less.
//!
//! Mirrors `allocation.manager` of a kubelet, and `computePodResizeAction` of kuberuntime for what has to be started again.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Amount;
use kubewright_schema::quantity::Quantity;
use serde_json::json;

use crate::node::run::{Run, State};
use crate::node::script::{Role, containers};
use crate::scheduler::resources::Requests;

/// The conditions of a resize. A pod has none of them while nothing is resized.
pub(crate) const CONDITIONS: [&str; 2] = [PENDING, IN_PROGRESS];
pub(crate) const PENDING: &str = "PodResizePending";
pub(crate) const IN_PROGRESS: &str = "PodResizeInProgress";
/// What a wish waits as that this node can never fulfil.
pub(crate) const INFEASIBLE: &str = "Infeasible";
/// What every other wish waits as.
const DEFERRED: &str = "Deferred";
/// How long it is shown that a resize is in progress: a kubelet looks at a pod again when its status has changed.
pub(crate) const SHOWN: Duration = Duration::from_secs(1);
/// When a deferred resize is tried again if nothing has become free: `retryDelay` of the allocation manager.
pub(crate) const RETRY: Duration = Duration::from_secs(180);

/// What a node has set aside for a container. As text: there may be very many, and nearly all stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allocation(Option<Box<str>>);

/// How far a pod is with being resized.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Resize {
    /// The generation of the pod whose wishes are what the node has set aside.
    settled: Option<i64>,
    pub(crate) pending: Option<Pending>,
    pub(crate) progress: Option<Progress>,
    /// Whether the pod has had a condition of a resize, which is to be taken back.
    pub(crate) was_shown: bool,
}

/// A wish that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pending {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) generation: Option<i64>,
    pub(crate) since: Timestamp,
}

/// A wish that was granted, and is being carried out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Progress {
    pub(crate) generation: Option<i64>,
    pub(crate) since: Timestamp,
}

/// What a node answers to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Granted,
    /// It has to wait; the reason is [`INFEASIBLE`] or that of the admission which refuses it.
    Waits {
        reason: String,
        message: String,
    },
}

impl Allocation {
    /// What a container asks for.
    pub(crate) fn of(container: &Container) -> Self {
        Self::new(container.resources.as_ref())
    }

    fn new(resources: Option<&ResourceRequirements>) -> Self {
        let text = resources.and_then(|resources| serde_json::to_string(resources).ok());
        Self(text.map(String::into_boxed_str))
    }

    /// What the status of a container says was set aside for it; nothing when it does not.
    pub(crate) fn reported(status: &ContainerStatus) -> Option<Self> {
        let mut resources = status.resources.clone()?;
        resources.requests.clone_from(&status.allocated_resources);
        Some(Self::new(Some(&resources)))
    }

    pub(crate) fn resources(&self) -> Option<ResourceRequirements> {
        serde_json::from_str(self.0.as_deref()?).ok()
    }

    /// The most memory, in bytes; nothing when there is no limit.
    pub(crate) fn memory_limit(&self) -> Option<i64> {
        let limits = self.resources()?.limits?;
        let limit = Quantity::parse(&limits.get("memory")?.0).ok()?.value();
        limit.filter(|bytes| *bytes > 0)
    }

    /// Whether both are the same amounts, however they are written.
    fn equals(&self, other: &Self) -> bool {
        self == other || self.amounts() == other.amounts()
    }

    fn amounts(&self) -> (Amounts, Amounts) {
        let resources = self.resources().unwrap_or_default();
        (parsed(resources.requests), parsed(resources.limits))
    }
}

/// Amounts by resource. What cannot be read was refused by the server.
type Amounts = BTreeMap<String, Option<Quantity>>;

fn parsed(amounts: Option<BTreeMap<String, Amount>>) -> Amounts {
    let amounts = amounts.into_iter().flatten();
    amounts
        .map(|(name, amount)| (name, Quantity::parse(&amount.0).ok()))
        .collect()
}

/// Whether a pod wants other resources than its node has set aside. A wish that was taken back waits no longer.
pub(crate) fn is_wanted(pod: &Pod, run: &mut Run) -> bool {
    let generation = pod.metadata.generation;
    if generation.is_some() && run.resize.settled == generation {
        return false;
    }
    let mut resizable = resizable(pod, run);
    if resizable.any(|(_, wanted, index)| !run.containers[index].allocated.equals(&wanted)) {
        return true;
    }
    run.resize.settled = generation;
    run.resize.pending = None;
    false
}

/// The containers that can be resized with what they want, and their place in the run.
fn resizable<'a>(
    pod: &'a Pod,
    run: &Run,
) -> impl Iterator<Item = (Cow<'a, Container>, Allocation, usize)> + use<'a> {
    let count = run.containers.len();
    let all = containers(pod).zip(0..count);
    all.filter(|((role, _), _)| *role != Role::Ephemeral)
        .map(|((_, container), index)| {
            let wanted = Allocation::of(&container);
            (container, wanted, index)
        })
}

impl Run {
    /// The node has set aside what the pod wants. What runs keeps what it had until it is resized.
    pub(crate) fn allocate(&mut self, pod: &Pod) {
        let wanted: Vec<_> = resizable(pod, self).collect();
        for (_, wanted, index) in wanted {
            let container = &mut self.containers[index];
            if container.allocated.equals(&wanted) {
                continue;
            }
            let old = std::mem::replace(&mut container.allocated, wanted);
            if matches!(container.state, State::Running { .. }) {
                container.actual.get_or_insert(old);
            }
        }
        self.resize.settled = pod.metadata.generation;
        self.resize.pending = None;
    }

    /// Whether what the node has set aside is what this pod wants.
    pub(crate) fn is_settled(&self, pod: &Pod) -> bool {
        pod.metadata.generation.is_some() && self.resize.settled == pod.metadata.generation
    }
}

/// The pod with the resources that its node has set aside, which admission and sums go by.
pub(crate) fn allocated<'a>(pod: &'a Pod, run: &Run) -> Cow<'a, Pod> {
    if run.is_settled(pod) {
        return Cow::Borrowed(pod);
    }
    let mut pod = Cow::Borrowed(pod);
    let resizable: Vec<_> = resizable(&pod.clone(), run)
        .map(|(container, _, index)| (container.name.clone(), index))
        .collect();
    let Some(spec) = &mut pod.to_mut().spec else {
        return pod;
    };
    let init = spec.init_containers.iter_mut().flatten();
    for container in init.chain(&mut spec.containers) {
        let found = resizable.iter().find(|(name, _)| *name == container.name);
        if let Some((_, index)) = found {
            container.resources = run.containers[*index].allocated.resources();
        }
    }
    pod
}

/// Why a wish can never be fulfilled on its node, if it cannot.
///
/// Mirrors `podResizesAdmitHandler.Admit`: processors that a container has for itself stay as they are.
pub(crate) fn infeasible(pod: &Pod, run: &Run, has_static_cpus: bool) -> Option<String> {
    let class = pod.status.as_ref().and_then(|s| s.qos_class.as_deref());
    if !has_static_cpus || class != Some("Guaranteed") {
        return None;
    }
    let cpu = |of: &Allocation| of.amounts().0.get("cpu").cloned();
    let mut resizable = resizable(pod, run);
    let differs =
        resizable.any(|(_, wanted, index)| cpu(&wanted) != cpu(&run.containers[index].allocated));
    differs.then(|| {
        "Resize is infeasible for Guaranteed Pods alongside CPU Manager policy \"static\""
            .to_owned()
    })
}

/// The order in which deferred resizes are tried: `sortPendingResizes`.
pub(crate) fn rank(pod: &Pod, run: &Run) -> impl Ord + use<> {
    let (old, new) = (
        Requests::of(&allocated(pod, run)).exact,
        Requests::of(pod).exact,
    );
    let grows = new.cpu > old.cpu || new.memory > old.memory;
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority);
    let class = pod.status.as_ref().and_then(|s| s.qos_class.as_deref());
    let since = run.resize.pending.as_ref().map(|pending| pending.since);
    (
        grows,
        Reverse(priority.unwrap_or(0)),
        class != Some("Guaranteed"),
        since,
    )
}

/// Whether a container has to be started again to get what was set aside for it, by the policies of what changes.
pub(crate) fn needs_restart(container: &Container, old: &Allocation, new: &Allocation) -> bool {
    let (old, new) = (old.amounts(), new.amounts());
    let differs =
        |name: &String| old.0.get(name) != new.0.get(name) || old.1.get(name) != new.1.get(name);
    let policies = container.resize_policy.iter().flatten();
    policies
        .filter(|policy| policy.restart_policy == "RestartContainer")
        .any(|policy| differs(&policy.resource_name))
}

impl Pending {
    /// What waits, given what waited before.
    pub(crate) fn new(
        (reason, message): (&str, String),
        before: Option<&Self>,
        pod: &Pod,
        now: Timestamp,
    ) -> Self {
        let reason = if reason == INFEASIBLE {
            INFEASIBLE
        } else {
            DEFERRED
        };
        let same = before.filter(|before| before.reason == reason);
        Self {
            reason,
            message,
            generation: pod.metadata.generation,
            since: same.map_or(now, |before| before.since),
        }
    }

    /// Whether it is to be reported, given what was before.
    pub(crate) fn is_news(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            before.reason != self.reason || before.generation != self.generation
        })
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.reason == DEFERRED
    }
}

/// The message of an event about a resize: what containers want, and what is wrong.
///
/// Mirrors `events.podResizeMessage`.
pub(crate) fn message(prefix: &str, pod: &Pod, generation: Option<i64>, error: &str) -> String {
    let Some(spec) = &pod.spec else {
        return prefix.to_owned();
    };
    let one = |container: &Container| {
        let resources = container.resources.clone().unwrap_or_default();
        json!({"name": container.name, "resources": resources}).to_string()
    };
    let list = |name: &str, all: Vec<String>| format!("\"{name}\":[{}]", all.join(","));
    let mut parts = Vec::new();
    let init: Vec<String> = spec.init_containers.iter().flatten().map(one).collect();
    if !init.is_empty() {
        parts.push(list("initContainers", init));
    }
    parts.push(list(
        "containers",
        spec.containers.iter().map(one).collect(),
    ));
    parts.push(format!("\"generation\":{}", generation.unwrap_or(0)));
    if !error.is_empty() {
        parts.push(format!("\"error\":{}", json!(error)));
    }
    format!("{prefix}: {{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn pod(priority: i32, class: &str, cpu: &str) -> Pod {
        let containers = json!([{"name": "a", "resources": {"requests": {"cpu": cpu}}}]);
        let object: Value = json!({"metadata": {"name": "p", "generation": 1},
            "spec": {"containers": containers, "priority": priority}, "status": {"qosClass": class}});
        serde_json::from_value(object).expect("a pod")
    }

    /// A pod that has one core and wants so many.
    fn wanting(priority: i32, class: &str, cpu: &str) -> (Pod, Run) {
        let mut run = Run::adopt(&pod(priority, class, "1"), Timestamp::UNIX_EPOCH);
        let mut pod = pod(priority, class, cpu);
        pod.metadata.generation = Some(2);
        is_wanted(&pod, &mut run);
        (pod, run)
    }

    /// `sortPendingResizes`.
    #[test]
    fn smaller_pods_are_resized_first_then_by_priority_and_class() {
        let order = [
            wanting(0, "Burstable", "500m"),
            wanting(10, "Burstable", "3"),
            wanting(0, "Guaranteed", "2"),
            wanting(0, "Burstable", "2"),
        ];
        let ranks: Vec<_> = order.iter().map(|(pod, run)| rank(pod, run)).collect();
        assert!(ranks.is_sorted());
        assert!(ranks[0] < ranks[3]);
    }

    #[test]
    fn amounts_are_the_same_however_they_are_written() {
        let (pod, mut run) = wanting(0, "Burstable", "1000m");
        assert!(!is_wanted(&pod, &mut run) && run.is_settled(&pod));
        let (other, mut run) = wanting(0, "Burstable", "1001m");
        assert!(is_wanted(&other, &mut run) && !run.is_settled(&other));
        let asks = |pod: &Pod| Requests::of(pod).exact.cpu;
        assert_eq!(
            (asks(&allocated(&other, &run)), asks(&other)),
            (1_000, 1_001)
        );
        run.allocate(&other);
        assert_eq!(asks(&allocated(&other, &run)), 1_001);
    }
}
