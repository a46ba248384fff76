//! How disrupted the zones of a cluster are, and how fast nodes may be given up there. Pure.
//!
//! Mirrors `node_lifecycle_controller.go: ComputeZoneState, handleDisruption, setLimiterInZone`. A controller that cannot
//! reach a single node has more likely lost its own network than all of its nodes at once: nobody is evicted then.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;

use crate::pods::label;

/// How long after a node another one of its zone may be given up: `--node-eviction-rate` of 0.1 a second.
const USUAL_PAUSE: Duration = Duration::from_secs(10);
/// The same in a large zone of which too much is gone: `--secondary-node-eviction-rate` of 0.01 a second.
const LONG_PAUSE: Duration = Duration::from_secs(100);
/// From how many nodes on a zone is large: `--large-cluster-size-threshold`.
const LARGE: usize = 50;
/// The share of a zone that has to be gone for it to be disrupted in part, in percent: `--unhealthy-zone-threshold`.
const UNHEALTHY_PERCENT: usize = 55;
/// Nodes with this label say nothing about their zone.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// Whether a node serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Ready,
    NotReady,
}

/// What may be done about a node that is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eviction {
    /// It gets the taint that evicts.
    Allowed,
    /// It keeps the taint that it has, and gets none before this moment; never if there is nothing.
    Later(Option<Timestamp>),
    /// No node of the cluster is ready: taints that evict are taken away.
    Suspended,
}

/// Whether the whole cluster seems to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Usual,
    /// No node is ready (`master disruption mode`).
    AllDisrupted,
}

/// Nodes by zone. Every node in `nodes` is counted in its zone.
#[derive(Debug, Default)]
pub(super) struct Zones {
    nodes: BTreeMap<String, (String, Health)>,
    zones: BTreeMap<String, Zone>,
    pub(super) mode: Mode,
}

#[derive(Debug, Default)]
struct Zone {
    ready: usize,
    not_ready: usize,
    /// When the last node was given up.
    last: Option<Timestamp>,
}

impl Zones {
    /// Takes up a node. Says whether the mode of the cluster has changed.
    pub(super) fn observe(&mut self, node: &Node, health: Health) -> bool {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if label(&node.metadata, EXCLUDED).is_some() {
            return self.forget(name);
        }
        let zone = zone_of(node);
        if self
            .nodes
            .get(name)
            .is_some_and(|(z, h)| (z, h) == (&zone, &health))
        {
            return false;
        }
        self.uncount(name);
        *self.zones.entry(zone.clone()).or_default().count(health) += 1;
        self.nodes.insert(name.to_owned(), (zone, health));
        self.update_mode()
    }

    /// Forgets a node that is gone. Says whether the mode of the cluster has changed.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        self.uncount(name);
        self.update_mode()
    }

    /// What may be done about a node that is not ready.
    pub(super) fn eviction(&self, node: &Node, now: Timestamp) -> Eviction {
        if self.mode == Mode::AllDisrupted {
            return Eviction::Suspended;
        }
        let Some(zone) = self.zones.get(&zone_of(node)) else {
            return Eviction::Allowed;
        };
        let Some(pause) = zone.pause() else {
            return Eviction::Later(None);
        };
        match zone
            .last
            .map(|last| last + pause)
            .filter(|next| *next > now)
        {
            Some(next) => Eviction::Later(Some(next)),
            None => Eviction::Allowed,
        }
    }

    /// Notes that a node is given up.
    pub(super) fn given_up(&mut self, node: &Node, now: Timestamp) {
        self.zones.entry(zone_of(node)).or_default().last = Some(now);
    }

    fn uncount(&mut self, name: &str) {
        if let Some((zone, health)) = self.nodes.remove(name)
            && let Some(zone) = self.zones.get_mut(&zone)
        {
            *zone.count(health) -= 1;
        }
    }

    fn update_mode(&mut self) -> bool {
        let mut zones = self
            .zones
            .values()
            .filter(|zone| zone.size() > 0)
            .peekable();
        let all = zones.peek().is_some() && zones.all(|zone| zone.ready == 0);
        let mode = if all { Mode::AllDisrupted } else { Mode::Usual };
        std::mem::replace(&mut self.mode, mode) != mode
    }
}

impl Zone {
    fn count(&mut self, health: Health) -> &mut usize {
        match health {
            Health::Ready => &mut self.ready,
            Health::NotReady => &mut self.not_ready,
        }
    }

    fn size(&self) -> usize {
        self.ready + self.not_ready
    }

    /// How long after a node another one may be given up; never if there is nothing.
    fn pause(&self) -> Option<Duration> {
        let partly = self.not_ready > 2 && self.not_ready * 100 >= self.size() * UNHEALTHY_PERCENT;
        if self.ready == 0 || !partly {
            // A zone that is gone as a whole is given up at the usual pace: its pods have somewhere to go.
            return Some(USUAL_PAUSE);
        }
        (self.size() > LARGE).then_some(LONG_PAUSE)
    }
}

/// Region and zone of a node (`component-helpers/node/topology: GetZoneKey`).
fn zone_of(node: &Node) -> String {
    let value = |keys: [&str; 2]| {
        let mut found = keys.iter().filter_map(|key| label(&node.metadata, key));
        found.next().unwrap_or_default().to_owned()
    };
    let region = value([
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/region",
    ]);
    let zone = value([
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/zone",
    ]);
    format!("{region}/{zone}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_second(1_700_000_000).expect("in range") + Duration::from_secs(seconds)
    }

    fn node(zone: &str, number: usize) -> Node {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        let node = json!({"metadata": {"name": format!("{zone}{number}"), "labels": labels}});
        serde_json::from_value(node).expect("a node")
    }

    /// Zones with so many nodes, of which so many are not ready.
    fn zones(sizes: &[(&str, usize, usize)]) -> Zones {
        let mut zones = Zones::default();
        for (zone, size, not_ready) in sizes {
            for number in 0..*size {
                let health = if number < *not_ready {
                    Health::NotReady
                } else {
                    Health::Ready
                };
                zones.observe(&node(zone, number), health);
            }
        }
        zones
    }

    /// `node_lifecycle_controller.go: ComputeZoneState` and `handleDisruption`.
    #[test]
    fn nodes_are_given_up_at_the_pace_of_their_zone() {
        let first = at(0);
        let soon = Eviction::Later(Some(at(10)));
        let late = Eviction::Later(Some(at(100)));
        // The zones, what may be done at first, and what after one node of zone a was given up.
        type Sizes = &'static [(&'static str, usize, usize)];
        let cases: [(Sizes, Eviction, Eviction); 8] = [
            (&[("a", 1, 1)], Eviction::Suspended, Eviction::Suspended),
            (
                &[("a", 3, 3), ("b", 2, 2)],
                Eviction::Suspended,
                Eviction::Suspended,
            ),
            (&[("a", 2, 1)], Eviction::Allowed, soon),
            (&[("a", 3, 3), ("b", 2, 0)], Eviction::Allowed, soon),
            (&[("a", 3, 2)], Eviction::Allowed, soon),
            (&[("a", 5, 3)], Eviction::Later(None), Eviction::Later(None)),
            (&[("a", 51, 30)], Eviction::Allowed, late),
            (&[("a", 51, 20)], Eviction::Allowed, soon),
        ];
        for (sizes, expected, after) in cases {
            let mut zones = zones(sizes);
            assert_eq!(zones.eviction(&node("a", 0), first), expected, "{sizes:?}");
            zones.given_up(&node("a", 0), first);
            assert_eq!(zones.eviction(&node("a", 1), first), after, "{sizes:?}");
        }
    }

    #[test]
    fn mode_changes_with_the_last_ready_node_and_with_the_first_one_back() {
        let mut zones = zones(&[("a", 2, 0)]);
        assert!(!zones.observe(&node("a", 0), Health::NotReady));
        assert!(zones.observe(&node("a", 1), Health::NotReady));
        assert_eq!(zones.mode, Mode::AllDisrupted);
        assert!(!zones.observe(&node("a", 1), Health::NotReady));
        assert!(zones.observe(&node("a", 0), Health::Ready));
        assert!(zones.forget("a0"), "the one that is left is not ready");
        assert!(
            zones.forget("a1"),
            "a cluster without nodes is not disrupted"
        );
        assert_eq!(zones.mode, Mode::Usual);
    }
}
