//! Updates of DaemonSets through a world in which pods become ready and die, and nodes come and go.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;

use super::plan::Plan;
use super::samples::{node, plan_of, set, tainted};
use super::template::{is_updated, target};
use crate::pods::samples::{at, in_phase, ready, terminating, unready};
use crate::pods::{is_active, is_ready, is_terminating};

#[derive(Clone, Debug)]
enum Event {
    Serve(usize),
    Idle(usize),
    Fail(usize),
    Gone(usize),
    Node(u8),
    Taint(u8),
}

struct World {
    set: DaemonSet,
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<String, Pod>,
    named: usize,
}

impl World {
    fn plan(&self) -> Plan {
        let nodes: Vec<Node> = self.nodes.values().cloned().collect();
        let pods: Vec<Pod> = self.pods.values().cloned().collect();
        plan_of(&self.set, &nodes, &pods, &[])
    }

    fn carry_out(&mut self, plan: Plan) {
        for mut pod in plan.create {
            self.named += 1;
            let name = format!("web-{}", self.named);
            pod.metadata.name = Some(name.clone());
            pod.metadata.creation_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(
                    i64::try_from(self.named).unwrap_or(0),
                )));
            let node = target(&pod).map(str::to_owned);
            pod.spec.get_or_insert_default().node_name = node;
            self.pods.insert(name, in_phase(pod, "Running"));
        }
        for gone in plan.delete {
            let name = gone.pod.metadata.name.clone().expect("pods have names");
            let pod = self
                .pods
                .get_mut(&name)
                .expect("plans delete pods that exist");
            *pod = terminating(pod.clone());
        }
    }

    fn change(&mut self, which: usize, how: impl Fn(Pod) -> Pod) {
        let count = self.pods.len().max(1);
        if let Some(pod) = self.pods.values_mut().nth(which % count) {
            *pod = how(pod.clone());
        }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Serve(which) => self.change(which, |pod| ready(pod, at(0))),
            Event::Idle(which) => self.change(which, unready),
            Event::Fail(which) => self.change(which, |pod| unready(in_phase(pod, "Failed"))),
            Event::Gone(which) => {
                let leaving = self.pods.iter().filter(|(_, pod)| is_terminating(pod));
                let name = leaving.map(|(name, _)| name.clone()).nth(which % 3);
                name.and_then(|name| self.pods.remove(&name))
                    .map(drop)
                    .unwrap_or_default();
            }
            Event::Node(which) => {
                let name = format!("node-{which}");
                self.nodes.insert(name.clone(), node(&name));
            }
            Event::Taint(which) => {
                let name = format!("node-{which}");
                self.nodes.insert(
                    name.clone(),
                    tainted(node(&name), "dedicated", "NoSchedule"),
                );
            }
        }
    }

    /// Nodes without taints that have a pod that serves.
    fn serving(&self) -> usize {
        let fits = self.nodes.iter().filter(|(_, node)| node.spec.is_none());
        fits.filter(|(name, _)| self.serves(name)).count()
    }

    fn serves(&self, node: &str) -> bool {
        let mut pods = self.pods.values().filter(|pod| target(pod) == Some(node));
        pods.any(|pod| is_active(pod) && is_ready(pod))
    }

    fn converge(&mut self) {
        for _ in 0..200 {
            let plan = self.plan();
            let still = plan.create.is_empty() && plan.delete.is_empty();
            self.carry_out(plan);
            let before = self.pods.len();
            self.pods.retain(|_, pod| !is_terminating(pod));
            let rest = self
                .pods
                .values()
                .all(|pod| is_ready(pod) || !is_active(pod));
            for pod in self.pods.values_mut().filter(|pod| is_active(pod)) {
                *pod = ready(pod.clone(), at(0));
            }
            if still && rest && before == self.pods.len() {
                return;
            }
        }
        panic!("the set does not come to rest");
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => (0..8usize).prop_map(Event::Serve),
        2 => (0..8usize).prop_map(Event::Idle),
        1 => (0..8usize).prop_map(Event::Fail),
        4 => (0..8usize).prop_map(Event::Gone),
        1 => (0..6u8).prop_map(Event::Node),
        1 => (0..6u8).prop_map(Event::Taint),
    ];
    prop::collection::vec(event, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Never two pods on a node without surge, nor three with; a plan takes a node's last serving pod only within the
    /// limit; and in the end every node that fits has one pod of the new template.
    #[test]
    fn an_update_keeps_its_limits_and_ends(
        count in 1..5u8,
        surge in 0..3i32,
        unavailable in 0..3i32,
        events in events(),
    ) {
        let wanted = set(&surge.to_string(), &unavailable.to_string());
        let nodes: BTreeMap<String, Node> = (0..count).map(|at| format!("node-{at}")).map(|name| (name.clone(), node(&name))).collect();
        let pods = nodes.keys().map(|name| super::samples::good(&wanted, name, "old"));
        let pods = pods.map(|pod| (pod.metadata.name.clone().unwrap_or_default(), pod)).collect();
        let mut world = World { set: wanted, nodes, pods, named: 0 };
        let limit = if surge == 0 { usize::try_from(unavailable.max(1)).unwrap_or(1) } else { 0 };
        for event in &events {
            world.happen(event);
            let fits = world.nodes.values().filter(|node| node.spec.is_none()).count();
            let before = world.serving();
            let plan = world.plan();
            world.carry_out(plan);
            let least = before.min(fits.saturating_sub(limit));
            prop_assert!(world.serving() >= least, "{event:?}: {} of {before}", world.serving());
            let most = if surge == 0 { 1 } else { 2 };
            for name in world.nodes.keys() {
                let there = world.pods.values().filter(|pod| target(pod) == Some(name.as_str()) && is_active(pod));
                prop_assert!(there.count() <= most, "{event:?} on {name}");
            }
        }
        world.converge();
        for (name, node) in &world.nodes {
            let there: Vec<&Pod> = world.pods.values().filter(|pod| target(pod) == Some(name.as_str())).collect();
            if node.spec.is_none() {
                prop_assert_eq!(there.len(), 1, "on {}", name);
                prop_assert!(is_updated(&world.set, there[0], "new"), "on {}", name);
            }
        }
    }
}
