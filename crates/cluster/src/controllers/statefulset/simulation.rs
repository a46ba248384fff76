//! StatefulSets through a world in which pods become ready, fail and take their time to go.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;

use super::identity::{ordinal, revision};
use super::plan::{Change, Plan};
use super::samples::{Claims, parallel, plan_of, rolling, set};
use crate::pods::samples::{at, in_phase, ready, terminating, unready};
use crate::pods::{is_finished, is_ready, is_terminating};

#[derive(Clone, Debug)]
enum Event {
    Serve(i32),
    Idle(i32),
    Fail(i32),
    Kill(i32),
    /// A pod on its way out is gone.
    Gone(i32),
    Scale(i32),
}

struct World {
    set: StatefulSet,
    pods: BTreeMap<i32, Pod>,
}

impl World {
    fn plan(&self) -> Plan {
        plan_of(
            &self.set,
            self.pods.values().cloned().collect(),
            &Claims::new(),
        )
    }

    fn serves(pod: &Pod) -> bool {
        is_ready(pod) && !is_terminating(pod) && !is_finished(pod)
    }

    fn replicas(&self) -> i32 {
        self.set.spec.replicas.unwrap_or(0)
    }

    /// Wanted pods that do not serve.
    fn missing(&self) -> i32 {
        let serving = (0..self.replicas()).filter(|at| self.pods.get(at).is_some_and(Self::serves));
        self.replicas() - i32::try_from(serving.count()).unwrap_or(0)
    }

    fn carry_out(&mut self, plan: &Plan) {
        for change in &plan.changes {
            match change {
                Change::CreatePod(pod) => {
                    let at = ordinal(&self.set, pod).expect("the set names its pods");
                    let before = self.pods.insert(at, in_phase(pod.clone(), "Running"));
                    assert!(before.is_none(), "two pods of one name");
                }
                Change::DeletePod(pod) => {
                    let at = ordinal(&self.set, pod).expect("the set names its pods");
                    let there = self
                        .pods
                        .get_mut(&at)
                        .expect("plans delete pods that exist");
                    *there = terminating(there.clone());
                }
                _ => panic!("nothing else is asked for: {change:?}"),
            }
        }
    }

    fn change(&mut self, at: i32, how: impl Fn(Pod) -> Pod) {
        if let Some(pod) = self.pods.get_mut(&at) {
            *pod = how(pod.clone());
        }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Serve(which) => self.change(which, |pod| ready(pod, at(0))),
            Event::Idle(which) => self.change(which, unready),
            Event::Fail(which) => self.change(which, |pod| unready(in_phase(pod, "Failed"))),
            Event::Kill(which) => self.change(which, terminating),
            Event::Gone(which) => {
                if self.pods.get(&which).is_some_and(is_terminating) {
                    self.pods.remove(&which);
                }
            }
            Event::Scale(size) => self.set.spec.replicas = Some(size),
        }
    }

    fn converge(&mut self) {
        for _ in 0..200 {
            let plan = self.plan();
            let before = self.pods.clone();
            self.carry_out(&plan);
            self.pods.retain(|_, pod| !is_terminating(pod));
            for pod in self.pods.values_mut().filter(|pod| !is_finished(pod)) {
                *pod = ready(pod.clone(), at(0));
            }
            if plan.changes.is_empty() && before == self.pods {
                return;
            }
        }
        panic!("the set does not come to rest: {:?}", self.pods.keys());
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        5 => (0..6i32).prop_map(Event::Serve),
        2 => (0..6i32).prop_map(Event::Idle),
        1 => (0..6i32).prop_map(Event::Fail),
        1 => (0..6i32).prop_map(Event::Kill),
        5 => (0..6i32).prop_map(Event::Gone),
        1 => (0..6i32).prop_map(Event::Scale),
    ];
    prop::collection::vec(event, 0..60)
}

/// The ordinals that a plan creates, and those that it deletes although they serve.
fn moves(world: &World, plan: &Plan) -> (Vec<i32>, Vec<i32>) {
    let (mut created, mut disturbed) = (Vec::new(), Vec::new());
    for change in &plan.changes {
        match change {
            Change::CreatePod(pod) => created.extend(ordinal(&world.set, pod)),
            Change::DeletePod(pod) if World::serves(pod) => {
                disturbed.extend(ordinal(&world.set, pod))
            }
            _ => {}
        }
    }
    (created, disturbed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// One by one: a pod starts only when all before it serve, and at most one pod moves unless the update may take more.
    /// In every order: an update never takes a serving pod when as many as may be missing are, nor one below the
    /// partition; and in the end all pods serve and have the revision they should.
    #[test]
    fn a_set_keeps_its_order_and_its_limits_and_comes_to_rest(
        replicas in 0..6i32,
        partition in 0..4i32,
        limit in 1..4i32,
        at_once in any::<bool>(),
        updated in any::<bool>(),
        events in events(),
    ) {
        let mut wanted = set(replicas);
        wanted.spec.update_strategy = Some(rolling(partition, &limit.to_string()));
        let wanted = if at_once { parallel(wanted) } else { wanted };
        let first = if updated { "new" } else { "old" };
        let pods = (0..replicas).map(|at| (at, super::samples::good(&wanted, at, first))).collect();
        let mut world = World { set: wanted, pods };
        for event in &events {
            world.happen(event);
            let plan = world.plan();
            let (created, disturbed) = moves(&world, &plan);
            let size = world.replicas();
            if !at_once {
                prop_assert!(created.len() <= 1);
                for &at in &created {
                    prop_assert!((0..at).all(|before| world.pods.get(&before).is_some_and(World::serves)));
                }
            }
            let updates: Vec<i32> = disturbed.iter().copied().filter(|at| *at < size).collect();
            let taken = i32::try_from(updates.len()).unwrap_or(i32::MAX);
            prop_assert!(taken == 0 || world.missing() + taken <= limit, "{event:?} takes {updates:?}");
            prop_assert!(updates.iter().all(|at| *at >= partition), "{event:?} takes {updates:?}");
            if !at_once && disturbed.iter().any(|at| *at >= size) {
                prop_assert_eq!(disturbed.len(), 1);
            }
            world.carry_out(&plan);
        }
        world.converge();
        let there: Vec<i32> = world.pods.keys().copied().collect();
        prop_assert_eq!(there, (0..world.replicas()).collect::<Vec<_>>());
        for (at, pod) in &world.pods {
            prop_assert!(World::serves(pod));
            prop_assert!(*at < partition || revision(pod) == "new", "{at} is {}", revision(pod));
        }
    }
}
