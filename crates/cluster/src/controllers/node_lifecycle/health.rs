//! Whether nodes are alive, and what follows for their conditions and taints. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::zones::Eviction;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that keep new pods away while they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "node.kubernetes.io/network-unavailable",
    ),
];
/// Conditions of which a silent node says nothing any more.
const REPORTED: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Remembers when each node was last heard of. Moments are the watcher's own, so that a node with a wrong clock is not
/// taken for dead.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    nodes: BTreeMap<String, Heard>,
}

#[derive(Debug)]
struct Heard {
    renewed: Option<Timestamp>,
    reported: Option<Timestamp>,
    at: Timestamp,
}

/// Whether a node speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Speaks,
    /// It has been silent for longer than it may.
    Silent,
}

impl Monitor {
    /// Takes up the last report of a node, and decides.
    pub(super) fn judge(
        &mut self,
        node: &Node,
        lease: Option<&Lease>,
        grace: Duration,
        now: Timestamp,
    ) -> Voice {
        let name = node.metadata.name.clone().unwrap_or_default();
        let renewed = lease.and_then(|l| l.spec.as_ref()?.renew_time.as_ref().map(|t| t.0));
        let reported = condition(node, "Ready")
            .filter(|ready| ready.reason.as_deref() != Some(UNKNOWN))
            .and_then(|ready| ready.last_heartbeat_time.as_ref())
            .map(|t| t.0);
        let heard = self.nodes.entry(name).or_insert(Heard {
            renewed,
            reported,
            at: now,
        });
        let news = renewed > heard.renewed || reported.is_some() && reported > heard.reported;
        if news {
            *heard = Heard {
                renewed,
                reported: reported.or(heard.reported),
                at: now,
            };
        }
        heard.voice(grace, now)
    }

    /// Takes up a lease of a node that has reported nothing else.
    pub(super) fn renewed(&mut self, name: &str, renewed: Timestamp, now: Timestamp) {
        if let Some(heard) = self.nodes.get_mut(name)
            && Some(renewed) > heard.renewed
        {
            heard.renewed = Some(renewed);
            heard.at = now;
        }
    }

    /// When a node was last heard of.
    pub(super) fn heard(&self, name: &str) -> Option<Timestamp> {
        self.nodes.get(name).map(|heard| heard.at)
    }

    /// The judgement of a node of which there is no news.
    pub(super) fn last(&self, name: &str, grace: Duration, now: Timestamp) -> Voice {
        let heard = self.nodes.get(name);
        heard.map_or(Voice::Silent, |heard| heard.voice(grace, now))
    }

    /// Gives all nodes another grace period: the watcher itself may have been away
    /// (`node_lifecycle_controller.go: handleDisruption`).
    pub(super) fn restart(&mut self, now: Timestamp) {
        for heard in self.nodes.values_mut() {
            heard.at = now;
        }
    }

    /// Forgets a node that is gone.
    pub(super) fn forget(&mut self, name: &str) {
        self.nodes.remove(name);
    }
}

impl Heard {
    fn voice(&self, grace: Duration, now: Timestamp) -> Voice {
        let silence = now.duration_since(self.at);
        if Duration::try_from(silence).is_ok_and(|silence| silence > grace) {
            Voice::Silent
        } else {
            Voice::Speaks
        }
    }
}

const UNKNOWN: &str = "NodeStatusUnknown";

/// The conditions of a node that has fallen silent; nothing if they say so already.
pub(super) fn silent_conditions(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let unknown: Vec<NodeCondition> = REPORTED
        .into_iter()
        .filter_map(|type_| {
            let known = condition(node, type_);
            if known.is_some_and(|c| c.status == "Unknown") {
                return None;
            }
            let (reason, message) = match known {
                Some(_) => (UNKNOWN, "Kubelet stopped posting node status."),
                None => (
                    "NodeStatusNeverUpdated",
                    "Kubelet never posted node status.",
                ),
            };
            Some(NodeCondition {
                type_: type_.to_owned(),
                status: "Unknown".to_owned(),
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
                last_heartbeat_time: known.and_then(|c| c.last_heartbeat_time.clone()),
                last_transition_time: Some(Time(now)),
            })
        })
        .collect();
    (!unknown.is_empty()).then_some(unknown)
}

/// The taints that a node should have; nothing if it has them. The one that evicts is added when that is allowed, stays
/// while it may not be added, and goes while nobody is evicted.
pub(super) fn taints(node: &Node, eviction: Eviction, now: Timestamp) -> Option<Vec<Taint>> {
    let present = node.spec.as_ref().and_then(|s| s.taints.clone());
    let present = present.unwrap_or_default();
    let evicts = match eviction {
        Eviction::Allowed => true,
        Eviction::Later(_) => has_evicting_taint(node),
        Eviction::Suspended => false,
    };
    let mut wanted = wanted(node);
    wanted.retain(|(_, effect)| *effect != "NoExecute" || evicts);
    let is_ours = |taint: &Taint| {
        let pressure = PRESSURES.iter().any(|(_, key)| *key == taint.key);
        pressure || [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str())
    };
    let is_wanted = |taint: &Taint| {
        let mut wanted = wanted.iter();
        wanted.any(|(key, effect)| *key == taint.key && *effect == taint.effect)
    };
    let mut taints: Vec<Taint> = present.clone();
    taints.retain(|taint| !is_ours(taint) || is_wanted(taint));
    for (key, effect) in &wanted {
        let same = |taint: &Taint| taint.key == *key && taint.effect == *effect;
        if !taints.iter().any(same) {
            taints.push(Taint {
                key: (*key).to_owned(),
                effect: (*effect).to_owned(),
                time_added: Some(Time(now)),
                value: None,
            });
        }
    }
    (taints != present).then_some(taints)
}

/// Whether a node that is not ready waits for the taint that evicts.
pub(super) fn awaits_eviction(node: &Node) -> bool {
    trouble(node).is_some() && !has_evicting_taint(node)
}

/// Whether a node has a taint of this controller that evicts. One of them is exchanged for the other without a wait.
fn has_evicting_taint(node: &Node) -> bool {
    let taints = node
        .spec
        .iter()
        .flat_map(|spec| spec.taints.iter().flatten());
    let mut evicting = taints.filter(|taint| taint.effect == "NoExecute");
    evicting.any(|taint| [NOT_READY, UNREACHABLE].contains(&taint.key.as_str()))
}

/// The taint that says why a node is not ready.
fn trouble(node: &Node) -> Option<&'static str> {
    match condition(node, "Ready").map(|c| c.status.as_str()) {
        Some("False") => Some(NOT_READY),
        Some("Unknown") => Some(UNREACHABLE),
        _ => None,
    }
}

/// Keys and effects of the taints that follow from a node's state.
fn wanted(node: &Node) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    for effect in ["NoSchedule", "NoExecute"] {
        wanted.extend(trouble(node).map(|key| (key, effect)));
    }
    if node.spec.as_ref().and_then(|s| s.unschedulable) == Some(true) {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    for (type_, key) in PRESSURES {
        if condition(node, type_).is_some_and(|c| c.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    wanted
}

/// When a lease says it was renewed. Nothing else of it is read: there are very many of these.
pub(super) fn renew_time(lease: &[u8]) -> Option<Timestamp> {
    #[derive(serde::Deserialize)]
    struct Renewal {
        spec: Spec,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        renew_time: Timestamp,
    }
    let renewal: Renewal = serde_json::from_slice(lease).ok()?;
    Some(renewal.spec.renew_time)
}

/// Whether a node says that it is ready.
pub(super) fn is_ready(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|c| c.status == "True")
}

/// Whether nobody knows how a node is.
pub(super) fn is_unknown(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|c| c.status == "Unknown")
}

fn condition<'a>(node: &'a Node, type_: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|c| c.type_ == type_)
}
