//! Nodes that are low on something: which pods they take, and which go first.

use k8s_openapi::api::core::v1::{Pod, Taint};

use super::admission::Rejection;
use crate::scheduler::taints;

/// What a node is low on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Pressure {
    /// The node is low on memory.
    Memory,
    /// The node is low on disk space.
    Disk,
    /// The node is low on process numbers.
    Pid,
}

impl Pressure {
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Pid];

    /// The condition of the node.
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pid => "PIDPressure",
        }
    }

    /// Reason and message of the condition while it holds, as in `nodestatus.MemoryPressureCondition` and its kin.
    pub(crate) fn reason(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory => (
                "KubeletHasInsufficientMemory",
                "kubelet has insufficient memory available",
            ),
            Self::Disk => ("KubeletHasDiskPressure", "kubelet has disk pressure"),
            Self::Pid => (
                "KubeletHasInsufficientPID",
                "kubelet has insufficient PID available",
            ),
        }
    }

    /// What is short, as evictions name it.
    fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Pid => "pids",
        }
    }

    /// The message on a pod that is evicted. A real node adds how much was left and how much the pod used.
    pub(crate) fn message(self) -> String {
        format!("The node was low on resource: {}. ", self.resource())
    }
}

/// Whether a node that is low on something takes a pod.
///
/// Mirrors `eviction.managerImpl.Admit`.
///
/// # Errors
/// Why it does not.
pub(crate) fn admit_under_pressure(pod: &Pod, pressures: &[Pressure]) -> Result<(), Rejection> {
    if pressures.is_empty() || is_critical(pod) {
        return Ok(());
    }
    if pressures == [Pressure::Memory] {
        let taint = Taint {
            key: "node.kubernetes.io/memory-pressure".to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        let tolerations = pod
            .spec
            .iter()
            .flat_map(|spec| spec.tolerations.iter().flatten());
        let mut tolerations = tolerations.filter(|toleration| taints::covers(toleration, &taint));
        if quality(pod) != Quality::BestEffort || tolerations.next().is_some() {
            return Ok(());
        }
    }
    let names: Vec<&str> = pressures
        .iter()
        .map(|pressure| pressure.condition())
        .collect();
    Err(Rejection {
        reason: "Evicted".to_owned(),
        message: format!("The node had condition: [{}]. ", names.join(" ")),
    })
}

/// The pod that goes first when a node is low on something; nothing when all are critical.
///
/// Mirrors the order of `rankMemoryPressure`: pods that use more than they asked for, then by priority. What a simulated
/// pod uses is what its class allows, so that pods without requests go before those with some.
pub(crate) fn first_victim<'a, T>(pods: impl IntoIterator<Item = (T, &'a Pod)>) -> Option<T> {
    let candidates = pods.into_iter().filter(|(_, pod)| !is_critical(pod));
    let order = |pod: &Pod| {
        let priority = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.priority)
            .unwrap_or(0);
        let name = pod.metadata.name.clone().unwrap_or_default();
        (quality(pod), priority, name)
    };
    let first = candidates.min_by_key(|(_, pod)| order(pod));
    first.map(|(key, _)| key)
}

/// How much a pod was promised: its class of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Quality {
    BestEffort,
    Burstable,
    Guaranteed,
}

fn quality(pod: &Pod) -> Quality {
    let class = pod
        .status
        .as_ref()
        .and_then(|status| status.qos_class.as_deref());
    match class {
        Some("Guaranteed") => Quality::Guaranteed,
        Some("Burstable") => Quality::Burstable,
        Some(_) => Quality::BestEffort,
        None => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let asks = containers.filter_map(|c| c.resources.as_ref()).any(|r| {
                r.requests.as_ref().is_some_and(|r| !r.is_empty())
                    || r.limits.as_ref().is_some_and(|l| !l.is_empty())
            });
            if asks {
                Quality::Burstable
            } else {
                Quality::BestEffort
            }
        }
    }
}

/// Mirrors `kubelettypes.IsCriticalPod`: static pods, and priorities of the system.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    let priority = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.priority)
        .unwrap_or(0);
    priority >= 2_000_000_000
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pods_that_were_promised_nothing_go_first_then_by_priority() {
        let pod = |name: &str, class: &str, priority: i32| -> Pod {
            let object: Value = json!({"metadata": {"name": name}, "spec": {"containers": [], "priority": priority},
                "status": {"qosClass": class}});
            serde_json::from_value(object).expect("a pod")
        };
        let pods = [
            pod("guaranteed", "Guaranteed", 0),
            pod("best-high", "BestEffort", 10),
            pod("best-low", "BestEffort", 1),
            pod("system", "BestEffort", 2_000_000_000),
        ];
        let victim = |pods: &[Pod]| {
            first_victim(pods.iter().map(|pod| (pod.metadata.name.clone(), pod))).flatten()
        };
        assert_eq!(victim(&pods).as_deref(), Some("best-low"));
        assert_eq!(victim(&pods[..1]).as_deref(), Some("guaranteed"));
        assert_eq!(victim(&pods[3..]), None);
    }
}
