//! Rollouts through a world in which pods become ready and die as they please.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;

use super::bounds::{self, Bounds};
use super::plan::{Observed, Plan, plan};
use super::samples::{deployment, recreating, status};
use super::sets::same_template;
use crate::controllers::replicaset::plan::desired;
use crate::pods::samples::{at, template};

/// What the sets really have, which they report when they get to it.
#[derive(Clone, Debug)]
struct World {
    deployment: Deployment,
    sets: Vec<Member>,
    now: i64,
}

#[derive(Clone, Debug)]
struct Member {
    set: ReplicaSet,
    serving: i32,
    idle: i32,
}

impl Member {
    /// The set's controller does its work and reports it. Idle pods go first.
    fn settle(&mut self) {
        let wanted = desired(&self.set);
        let surplus = self.serving + self.idle - wanted;
        let idle_gone = surplus.clamp(0, self.idle);
        self.idle -= idle_gone;
        self.serving -= (surplus - idle_gone).max(0);
        self.idle += (-surplus).max(0);
        self.report();
    }

    fn report(&mut self) {
        let generation = self.set.metadata.generation;
        let mut status = status(self.serving + self.idle, self.serving);
        status.observed_generation = generation;
        self.set.status = Some(status);
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// The set's controller gets a turn.
    Settle(usize),
    /// A pod begins to serve.
    Serve(usize),
    /// A pod stops serving.
    Fail(usize),
    /// The Deployment gets a new template.
    Template(u8),
}

impl World {
    fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            sets: Vec::new(),
            now: 0,
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds::of(&self.deployment)
    }

    fn wanted(&self) -> i32 {
        self.sets.iter().map(|member| desired(&member.set)).sum()
    }

    /// The pods that serve and will go on to, whatever size the sets were given.
    fn safe(&self) -> i32 {
        let safe = |member: &Member| member.serving.min(desired(&member.set));
        self.sets.iter().map(safe).sum()
    }

    fn plan(&self) -> Plan {
        let sets: Vec<Arc<ReplicaSet>> = self
            .sets
            .iter()
            .map(|member| Arc::new(member.set.clone()))
            .collect();
        let owners = self
            .sets
            .iter()
            .filter(|member| member.serving + member.idle > 0);
        let owners: Vec<String> = owners
            .filter_map(|member| member.set.metadata.uid.clone())
            .collect();
        plan(&Observed {
            deployment: &self.deployment,
            sets: &sets,
            pod_owners: &owners,
            now: at(self.now),
        })
    }

    /// Carries the plan out. Says whether anything but the status changed.
    fn carry_out(&mut self, plan: Plan) -> bool {
        let changed = plan.create.is_some() || !plan.update.is_empty() || !plan.delete.is_empty();
        for update in plan.update {
            let name = update.after.metadata.name.clone();
            let member = self
                .sets
                .iter_mut()
                .find(|member| member.set.metadata.name == name);
            let member = member.expect("plans change sets that exist");
            let generation = member.set.metadata.generation.unwrap_or(0) + 1;
            let status = member.set.status.take();
            member.set = ReplicaSet {
                status,
                ..update.after
            };
            member.set.metadata.generation = Some(generation);
        }
        self.sets.retain(|member| {
            !plan
                .delete
                .iter()
                .any(|gone| gone.metadata.name == member.set.metadata.name)
        });
        if let Some(mut set) = plan.create {
            set.metadata.uid = set.metadata.name.clone();
            set.metadata.creation_timestamp = Some(Time(at(self.now)));
            set.metadata.generation = Some(1);
            self.sets.push(Member {
                set,
                serving: 0,
                idle: 0,
            });
        }
        self.deployment.status = Some(plan.status);
        self.now += 1;
        changed
    }

    fn happen(&mut self, event: &Event) {
        let count = self.sets.len().max(1);
        let member = |sets: &mut Vec<Member>, at: usize, act: fn(&mut Member)| {
            sets.get_mut(at % count).map(act).unwrap_or_default();
        };
        match event {
            Event::Settle(at) => member(&mut self.sets, *at, Member::settle),
            Event::Serve(at) => member(&mut self.sets, *at, |member| {
                if member.idle > 0 {
                    member.idle -= 1;
                    member.serving += 1;
                }
                member.report();
            }),
            Event::Fail(at) => member(&mut self.sets, *at, |member| {
                if member.serving > 0 {
                    member.serving -= 1;
                    member.idle += 1;
                }
                member.report();
            }),
            Event::Template(number) => {
                self.deployment.spec.template = template(&format!("image-{number}"));
                *self.deployment.metadata.generation.get_or_insert(0) += 1;
            }
        }
    }

    /// All sets do their work and all pods serve. Says whether anything changed.
    fn calm_down(&mut self) -> bool {
        let before: Vec<_> = self
            .sets
            .iter()
            .map(|member| member.set.status.clone())
            .collect();
        for member in &mut self.sets {
            member.settle();
            member.serving += member.idle;
            member.idle = 0;
            member.report();
        }
        let after = self.sets.iter().map(|member| member.set.status.clone());
        !before.into_iter().eq(after)
    }

    /// Lets all that may go well go well, until nothing changes.
    fn converge(&mut self) {
        for _ in 0..400 {
            let moved = self.calm_down();
            let plan = self.plan();
            let differs = self.deployment.status.as_ref() != Some(&plan.status);
            if !self.carry_out(plan) && !moved && !differs {
                return;
            }
        }
        panic!("the rollout does not end: {self:?}");
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (0..4usize).prop_map(Event::Settle),
        4 => (0..4usize).prop_map(Event::Serve),
        2 => (0..4usize).prop_map(Event::Fail),
        1 => (0..3u8).prop_map(Event::Template),
    ];
    prop::collection::vec(event, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Never more pods than surge allows; never does a plan take away a pod that serves while too few would be left;
    /// and when the world calms down the rollout ends with all pods new.
    #[test]
    fn a_rollout_keeps_its_limits_and_ends(
        replicas in 0..9i32,
        surge in 0..4i32,
        unavailable in 0..4i32,
        all_at_once in any::<bool>(),
        events in events(),
    ) {
        let wanted = deployment("image-0", replicas, &surge.to_string(), &unavailable.to_string());
        let mut world = World::new(if all_at_once { recreating(wanted) } else { wanted });
        world.converge();
        let limits = world.bounds();
        for event in &events {
            world.happen(event);
            let before = world.safe();
            let plan = world.plan();
            world.carry_out(plan);
            prop_assert!(world.wanted() <= limits.most(), "{event:?} {world:?}");
            if bounds::strategy(&world.deployment) == bounds::Strategy::Rolling {
                prop_assert!(world.safe() >= before.min(limits.least_available()), "{event:?} {world:?}");
            }
        }
        world.converge();
        let with_pods = world.sets.iter().filter(|member| member.serving > 0);
        for set in with_pods.map(|member| &member.set) {
            let template = set.spec.template.as_ref().expect("sets have templates");
            prop_assert!(same_template(template, &world.deployment.spec.template), "{world:?}");
        }
        let serving: i32 = world.sets.iter().map(|member| member.serving).sum();
        prop_assert_eq!(serving, replicas);
    }

    /// Scaling in the middle of a rollout: the limits of the new size hold as soon as the plan is carried out.
    #[test]
    fn a_scaled_rollout_keeps_the_limits_of_its_new_size(
        before in 1..12i32,
        after in 0..12i32,
        steps in 0..6usize,
    ) {
        let mut world = World::new(deployment("image-0", before, "2", "1"));
        world.converge();
        world.happen(&Event::Template(1));
        for step in 0..steps {
            let plan = world.plan();
            world.carry_out(plan);
            world.happen(&Event::Settle(step));
            world.happen(&Event::Serve(step));
        }
        world.deployment.spec.replicas = Some(after);
        let plan = world.plan();
        world.carry_out(plan);
        prop_assert!(world.wanted() <= world.bounds().most().max(before + 2), "{world:?}");
        world.converge();
        let serving: i32 = world.sets.iter().map(|member| member.serving).sum();
        prop_assert_eq!(serving, after);
    }
}
