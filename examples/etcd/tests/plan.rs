//! Random lives of a cluster: members die, volumes are lost, the operator crashes between any two writes and reads what is
//! not true any more. The quorum is never lost by a step, and in the end the cluster is as it should be.

#[path = "fake/model.rs"]
#[allow(dead_code)]
mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kubewright_example_etcd::plan::{
    ClaimPhase, ClaimView, Health, MemberView, Observed, PodPhase, PodView, Quorum, Step, Voting,
    Wanted, plan, pod_version,
};
use kubewright_example_etcd::version::Version;
use model::{Model, Start};
use proptest::prelude::*;

const TIMEOUT: i64 = 60;

/// A pod or claim with a uid, so that a stale read does not delete another object of the same name.
#[derive(Debug, Clone)]
struct Object<T> {
    uid: u64,
    view: T,
}

/// A cluster with its operator, nodes and people.
#[derive(Debug, Default, Clone)]
struct Life {
    model: Model,
    pods: BTreeMap<String, Object<PodView>>,
    claims: BTreeMap<String, Object<ClaimView>>,
    /// Pods on machines that are gone: their processes never run again.
    broken: BTreeSet<u64>,
    established: bool,
    unhealthy: BTreeMap<u64, i64>,
    now: i64,
    uids: u64,
}

/// What the operator reads: maybe old pods and claims.
#[derive(Debug, Clone, Default)]
struct Cache {
    pods: BTreeMap<String, Object<PodView>>,
    claims: BTreeMap<String, Object<ClaimView>>,
}

/// How a reconcile goes wrong.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    None,
    /// Pods and claims are those of an earlier reconcile.
    Stale,
    /// The operator dies before it writes.
    CrashBefore,
    /// The operator dies between the two writes of a step.
    CrashBetween,
    /// A member dies between the look and the step.
    DiesMeanwhile(usize),
}

#[derive(Debug, Clone)]
enum Event {
    Reconcile(Trouble),
    Time(i64),
    Kill(usize),
    DeletePod(usize),
    LoseData(usize),
    LoseMachine(usize),
    Resize(usize),
    Upgrade,
}

fn wanted(size: usize, version: Version) -> Wanted {
    Wanted {
        name: "e".to_owned(),
        size,
        version,
        template: "t".to_owned(),
        member_timeout: Duration::from_secs(TIMEOUT.unsigned_abs()),
    }
}

fn version(minor: u16) -> Version {
    Version {
        major: 3,
        minor,
        patch: 0,
    }
}

impl Life {
    fn time(&self) -> Timestamp {
        Timestamp::from_second(self.now).expect("a time")
    }

    fn uid(&mut self) -> u64 {
        self.uids += 1;
        self.uids
    }

    /// Time passes: machines start the pods that do not run.
    fn pass(&mut self, seconds: i64) {
        self.now += seconds;
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            let pod = self.pods[&name].clone();
            let claim = self.claims.get(&name);
            let runs = self.model.running.keys().any(|id| {
                self.model
                    .member(*id)
                    .is_some_and(|member| member.name == name)
            });
            let Some(claim) = claim else { continue };
            if runs || self.broken.contains(&pod.uid) {
                continue;
            }
            let disk = format!("{name}/{}", claim.uid);
            let start = Start {
                name: &name,
                disk: &disk,
                peers: pod.view.peers.clone(),
                state: if pod.view.member.is_none() {
                    "new"
                } else {
                    "existing"
                },
                version: "3.5.0",
                now: self.now,
            };
            // Those that exit are started again by the machine.
            let _exits = self.model.start(&start);
        }
        self.note_health();
    }

    /// What the status remembers: since when members are away.
    fn note_health(&mut self) {
        let (model, now) = (&self.model, self.now);
        self.unhealthy
            .retain(|id, _| model.member(*id).is_some() && !model.running.contains_key(id));
        for member in &model.members {
            if !model.running.contains_key(&member.id) {
                self.unhealthy.entry(member.id).or_insert(now);
            }
        }
    }

    fn observe(&mut self, cache: &Cache) -> Observed {
        self.note_health();
        let quorum = self.model.leader.map(|leader| Quorum {
            leader,
            members: self
                .model
                .members
                .iter()
                .map(|it| self.member(it))
                .collect(),
        });
        self.established |= quorum.is_some();
        let pods = cache
            .pods
            .iter()
            .map(|(name, pod)| (name.clone(), pod.view.clone()));
        let claims = cache.claims.iter();
        Observed {
            established: self.established,
            quorum,
            pods: pods.collect(),
            claims: claims
                .map(|(name, claim)| (name.clone(), claim.view.clone()))
                .collect(),
        }
    }

    fn member(&self, member: &model::Member) -> MemberView {
        let since = self.unhealthy.get(&member.id).copied().unwrap_or(self.now);
        let since = Timestamp::from_second(since).expect("a time");
        let healthy = self.model.running.contains_key(&member.id);
        MemberView {
            id: member.id,
            name: member.name.clone(),
            voting: if member.learner {
                Voting::Learner
            } else {
                Voting::Voter
            },
            started: member.started,
            health: if healthy {
                Health::Healthy
            } else {
                Health::Unhealthy(since)
            },
        }
    }

    fn fresh(&self) -> Cache {
        Cache {
            pods: self.pods.clone(),
            claims: self.claims.clone(),
        }
    }

    /// One reconcile. Gives the step.
    fn reconcile(&mut self, wanted: &Wanted, cache: &mut Cache, trouble: Trouble) -> Step {
        if !matches!(trouble, Trouble::Stale) {
            *cache = self.fresh();
        }
        let seen = self.observe(cache);
        let step = plan(wanted, &seen, self.time());
        if let Trouble::DiesMeanwhile(which) = trouble {
            self.kill(which);
        }
        if matches!(trouble, Trouble::CrashBefore) {
            return step;
        }
        let quorate = self.model.is_quorate();
        let voters = self.model.voters().count();
        self.execute(&step, wanted, &seen, cache, trouble);
        let takes_one_away = matches!(step, Step::DeletePod(..));
        let excused =
            takes_one_away && (voters < 3 || matches!(trouble, Trouble::DiesMeanwhile(_)));
        if quorate && !excused {
            assert!(
                self.model.is_quorate(),
                "{step:?} cost the quorum: {self:#?}"
            );
        }
        step
    }

    fn execute(
        &mut self,
        step: &Step,
        wanted: &Wanted,
        seen: &Observed,
        cache: &Cache,
        trouble: Trouble,
    ) {
        // What etcd refuses is tried again.
        let _refused = match step {
            Step::Bootstrap(name) => {
                // The shell reads the server itself before this.
                if !self.established && self.claims.is_empty() && self.pods.is_empty() {
                    self.start(None, name, wanted, seen, trouble);
                }
                Ok(())
            }
            Step::RestartMember(name) => {
                let id = seen.claims[name].member;
                self.start(id, name, wanted, seen, trouble);
                Ok(())
            }
            Step::StartMember(id, name) => {
                let first = seen.claims.get(name).is_some_and(|it| it.member.is_none());
                self.start((!first).then_some(*id), name, wanted, seen, trouble);
                Ok(())
            }
            Step::AddMember(name) => self.model.add(name).map(|_| ()),
            Step::Promote(id) => self.model.promote(*id, self.now),
            Step::RemoveMember(id, _) => self.model.remove(*id),
            Step::MoveLeader { from: _, to } => self.model.move_leader(*to),
            Step::DeletePod(name, _) => {
                self.delete_pod(name, cache.pods[name].uid);
                Ok(())
            }
            Step::DeleteClaim(name) => {
                let uid = cache.claims[name].uid;
                if self.claims.get(name).is_some_and(|it| it.uid == uid) {
                    self.claims.remove(name);
                }
                Ok(())
            }
            Step::Wait(_) | Step::Idle => Ok(()),
        };
    }

    /// Makes claim and pod as the shell does: what is there stays, and a pod whose claim is gone waits.
    fn start(
        &mut self,
        member: Option<u64>,
        name: &str,
        wanted: &Wanted,
        seen: &Observed,
        trouble: Trouble,
    ) {
        let uid = self.uid();
        let view = ClaimView {
            member,
            phase: ClaimPhase::Usable,
        };
        // A claim that was seen is not made again: it may be gone, and its data with it.
        match seen.claims.get(name) {
            Some(claim) if claim.member != member => return,
            Some(_) => {}
            None if self.claims.contains_key(name) => return,
            None => {
                self.claims.insert(name.to_owned(), Object { uid, view });
            }
        }
        if matches!(trouble, Trouble::CrashBetween) {
            return;
        }
        let members = seen.quorum.iter().flat_map(|quorum| &quorum.members);
        let mut peers: Vec<String> = members.map(|it| it.name.clone()).collect();
        if peers.is_empty() {
            peers.push(name.to_owned());
        }
        peers.sort();
        let view = PodView {
            member,
            phase: PodPhase::Alive,
            version: pod_version(wanted, seen),
            template: wanted.template.clone(),
            peers,
        };
        let uid = self.uid();
        self.pods
            .entry(name.to_owned())
            .or_insert(Object { uid, view });
    }

    fn delete_pod(&mut self, name: &str, uid: u64) {
        if self.pods.get(name).is_some_and(|pod| pod.uid == uid) {
            self.pods.remove(name);
            self.stop(name);
        }
    }

    fn stop(&mut self, name: &str) {
        let member = self.model.members.iter().find(|it| it.name == name);
        if let Some(id) = member.map(|it| it.id) {
            self.model.stop(id);
        }
    }

    fn nth_pod(&self, which: usize) -> Option<(String, u64)> {
        let count = self.pods.len().max(1);
        let pod = self.pods.iter().nth(which % count)?;
        Some((pod.0.clone(), pod.1.uid))
    }

    fn kill(&mut self, which: usize) {
        if let Some((name, _)) = self.nth_pod(which) {
            self.stop(&name);
        }
    }

    /// Whether enough voters are left if this one never comes back: losing more is not something that an operator can cure.
    fn can_lose(&self, name: &str) -> bool {
        let voters: Vec<_> = self.model.voters().collect();
        let keeps = |member: &&&model::Member| {
            let pod = self.pods.get(&member.name);
            let broken = pod.is_some_and(|pod| self.broken.contains(&pod.uid));
            member.name != name && !broken && self.claims.contains_key(&member.name)
        };
        self.established && voters.iter().filter(keeps).count() > voters.len() / 2
    }

    fn lose(&mut self, which: usize, machine: bool) {
        let Some((name, uid)) = self.nth_pod(which) else {
            return;
        };
        if !self.can_lose(&name) {
            return;
        }
        self.stop(&name);
        if machine {
            self.broken.insert(uid);
        } else {
            self.claims.remove(&name);
            self.pods.remove(&name);
        }
    }
}

fn troubles() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        4 => Just(Trouble::None),
        2 => Just(Trouble::Stale),
        1 => Just(Trouble::CrashBefore),
        1 => Just(Trouble::CrashBetween),
        1 => (0..9usize).prop_map(Trouble::DiesMeanwhile),
    ]
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => troubles().prop_map(Event::Reconcile),
        6 => (1..5i64).prop_map(Event::Time),
        1 => Just(Event::Time(TIMEOUT + 1)),
        2 => (0..9usize).prop_map(Event::Kill),
        1 => (0..9usize).prop_map(Event::DeletePod),
        1 => (0..9usize).prop_map(Event::LoseData),
        1 => (0..9usize).prop_map(Event::LoseMachine),
        1 => (0..4usize).prop_map(|n| Event::Resize(2 * n + 1)),
        1 => Just(Event::Upgrade),
    ]
}

/// Lets the operator work undisturbed until it has nothing to do.
fn come_to_rest(life: &mut Life, wanted: &Wanted) {
    let mut cache = Cache::default();
    let mut last = Vec::new();
    for _ in 0..400 {
        life.pass(2);
        let step = life.reconcile(wanted, &mut cache, Trouble::None);
        if step == Step::Idle {
            return;
        }
        last.push(step);
    }
    let steps = &last[last.len() - 10..];
    panic!("it does not come to rest: {steps:?}\n{life:#?}");
}

fn assert_as_wanted(life: &Life, wanted: &Wanted) {
    let members: BTreeSet<&str> = life
        .model
        .members
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let pods: BTreeSet<&str> = life.pods.keys().map(String::as_str).collect();
    let claims: BTreeSet<&str> = life.claims.keys().map(String::as_str).collect();
    assert_eq!(members.len(), wanted.size);
    assert_eq!(life.model.voters().count(), wanted.size);
    assert_eq!(members, pods);
    assert_eq!(members, claims);
    assert!(
        life.pods
            .values()
            .all(|pod| pod.view.version == wanted.version)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(std::env::var("PLAN_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)))]

    #[test]
    fn cluster_keeps_its_quorum_and_gets_to_its_size(
        size in 0..3usize,
        events in prop::collection::vec(events(), 1..80),
    ) {
        let mut life = Life::default();
        let mut wanted = wanted(2 * size + 1, version(4));
        let mut cache = Cache::default();
        for event in events {
            match event {
                Event::Reconcile(trouble) => {
                    life.reconcile(&wanted, &mut cache, trouble);
                }
                Event::Time(seconds) => life.pass(seconds),
                Event::Kill(which) => life.kill(which),
                Event::DeletePod(which) => {
                    if let Some((name, uid)) = life.nth_pod(which) {
                        life.delete_pod(&name, uid);
                    }
                }
                Event::LoseData(which) => life.lose(which, false),
                Event::LoseMachine(which) => life.lose(which, true),
                Event::Resize(size) => wanted.size = size,
                Event::Upgrade => wanted.version = version(5),
            }
        }
        come_to_rest(&mut life, &wanted);
        assert_as_wanted(&life, &wanted);
    }
}

/// The steps of a cluster that nothing happens to, until it rests.
fn steps(life: &mut Life, wanted: &Wanted) -> Vec<Step> {
    let mut cache = Cache::default();
    let mut steps = Vec::new();
    for _ in 0..200 {
        let step = life.reconcile(wanted, &mut cache, Trouble::None);
        if step == Step::Idle {
            return steps;
        }
        if !matches!(step, Step::Wait(_)) && steps.last() != Some(&step) {
            steps.push(step);
        }
        life.pass(2);
    }
    panic!("it does not come to rest: {steps:?}");
}

#[test]
fn member_is_added_before_its_pod_starts_and_votes_when_it_has_caught_up() {
    let mut life = Life::default();
    let steps = steps(&mut life, &wanted(3, version(4)));
    let name = |n: u64| format!("e-{n}");
    let expected = [
        Step::Bootstrap(name(0)),
        Step::AddMember(name(1)),
        Step::StartMember(2007, name(1)),
        Step::Promote(2007),
        Step::AddMember(name(2)),
        Step::StartMember(3007, name(2)),
        Step::Promote(3007),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn scale_in_removes_the_newest_member_then_its_pod_then_its_claim() {
    use kubewright_example_etcd::plan::{PodEnd, Removal};
    let mut life = Life::default();
    come_to_rest(&mut life, &wanted(3, version(4)));
    life.model.move_leader(3007).expect("it leads");
    let steps = steps(&mut life, &wanted(1, version(4)));
    let expected = [
        Step::MoveLeader {
            from: 3007,
            to: 1007,
        },
        Step::RemoveMember(3007, Removal::ScaleIn),
        Step::DeletePod("e-2".to_owned(), PodEnd::Removed),
        Step::DeleteClaim("e-2".to_owned()),
        Step::RemoveMember(2007, Removal::ScaleIn),
        Step::DeletePod("e-1".to_owned(), PodEnd::Removed),
        Step::DeleteClaim("e-1".to_owned()),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn upgrade_goes_pod_by_pod_and_the_leader_is_last() {
    use kubewright_example_etcd::plan::PodEnd;
    let mut life = Life::default();
    come_to_rest(&mut life, &wanted(3, version(4)));
    let steps = steps(&mut life, &wanted(3, version(5)));
    let renew = |n: u64| Step::DeletePod(format!("e-{n}"), PodEnd::Renewed);
    let start = |n: u64| Step::StartMember((n + 1) * 1000 + 7, format!("e-{n}"));
    let expected = [
        renew(1),
        start(1),
        renew(2),
        start(2),
        Step::MoveLeader {
            from: 1007,
            to: 2007,
        },
        renew(0),
        start(0),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn upgrade_that_skips_a_minor_version_is_not_begun() {
    use kubewright_example_etcd::plan::Waiting;
    let mut life = Life::default();
    come_to_rest(&mut life, &wanted(3, version(4)));
    let wanted = wanted(3, version(6));
    let mut cache = Cache::default();
    let step = life.reconcile(&wanted, &mut cache, Trouble::None);
    assert_eq!(step, Step::Wait(Waiting::UnsupportedUpgrade(version(6))));
}

#[test]
fn nothing_is_removed_when_two_of_three_are_away() {
    use kubewright_example_etcd::plan::Waiting;
    let mut life = Life::default();
    let wanted = wanted(3, version(4));
    come_to_rest(&mut life, &wanted);
    for name in ["e-1", "e-2"] {
        let uid = life.pods[name].uid;
        life.broken.insert(uid);
        life.stop(name);
    }
    life.pass(TIMEOUT * 10);
    let step = life.reconcile(&wanted, &mut Cache::default(), Trouble::None);
    assert_eq!(step, Step::Wait(Waiting::Quorum));
}

#[test]
fn cluster_whose_data_is_all_gone_is_not_bootstrapped_again() {
    use kubewright_example_etcd::plan::Waiting;
    let mut life = Life::default();
    let wanted = wanted(1, version(4));
    come_to_rest(&mut life, &wanted);
    life.stop("e-0");
    life.claims.clear();
    life.pods.clear();
    let step = life.reconcile(&wanted, &mut Cache::default(), Trouble::None);
    assert_eq!(step, Step::Wait(Waiting::AllDataLost));
}
