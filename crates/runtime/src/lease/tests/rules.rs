//! The machine, step by step, and the shell against a server.

use kubewright_testing::limit;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kubewright_server::Server;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::machine::{Action, Machine, Seen};
use super::super::*;
use crate::environment::{Environment, VirtualClock};

const WALL: Timestamp = Timestamp::UNIX_EPOCH;

fn options(identity: &str) -> LeaseOptions {
    LeaseOptions::new("default", "op", identity)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The lease as a server would give it back.
fn written(action: Action) -> Seen {
    match action {
        Action::Create(lease) | Action::Update(lease) => Seen::Written(lease),
        other => panic!("{other:?} is not a write"),
    }
}

fn lease_of(action: &Action) -> &Lease {
    match action {
        Action::Create(lease) | Action::Update(lease) => lease,
        other => panic!("{other:?} is not a write"),
    }
}

fn transitions(action: &Action) -> Option<i32> {
    lease_of(action)
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_transitions)
}

/// A machine that leads since `now`, and its lease.
fn leader(identity: &str, now: Instant) -> (Machine, Box<Lease>) {
    let mut machine = Machine::new(options(identity));
    assert_eq!(machine.step(now, WALL, Seen::Turn), Action::Get);
    let action = machine.step(now, WALL, Seen::Missing);
    assert_eq!(transitions(&action), Some(0));
    let lease = lease_of(&action).clone();
    assert_eq!(machine.step(now, WALL, written(action)), Action::Rest);
    (machine, Box::new(lease))
}

#[test]
fn times_that_do_not_fit_are_refused() {
    let cases = [
        (options("a"), Ok(())),
        (options(""), Err(LeaseOptionsError::Empty)),
        (
            options("a").lease_duration(seconds(10)),
            Err(LeaseOptionsError::LeaseDuration),
        ),
        (
            options("a").renew_deadline(Duration::from_millis(2400)),
            Err(LeaseOptionsError::RenewDeadline),
        ),
        (
            options("a").retry_period(seconds(0)),
            Err(LeaseOptionsError::RetryPeriod),
        ),
        (
            options("a").lease_duration(Duration::from_millis(15_500)),
            Err(LeaseOptionsError::WholeSeconds),
        ),
    ];
    for (options, expected) in cases {
        assert_eq!(options.check(), expected);
    }
}

#[test]
fn leader_renews_without_reading_and_reads_when_that_fails() {
    let start = Instant::now();
    let (mut machine, lease) = leader("a", start);
    let later = start + seconds(2);
    let wall = Timestamp::from_second(2).expect("in range");
    let action = machine.step(later, wall, Seen::Turn);
    let spec = lease_of(&action).spec.clone().expect("it has one");
    assert!(matches!(action, Action::Update(_)));
    assert_eq!(spec.renew_time.map(|time| time.0), Some(wall));
    assert_eq!(spec.acquire_time.map(|time| time.0), Some(WALL));
    assert_eq!(spec.lease_transitions, Some(0));
    assert_eq!(machine.step(later, wall, Seen::Failed), Action::Get);
    let action = machine.step(later, wall, Seen::Found(lease));
    assert_eq!(transitions(&action), Some(0), "it is still ours");
}

#[test]
fn leader_that_finds_another_holder_has_lost() {
    let start = Instant::now();
    let (mut machine, mut lease) = leader("a", start);
    machine.step(start, WALL, Seen::Turn);
    machine.step(start, WALL, Seen::Failed);
    lease.spec.as_mut().expect("it has one").holder_identity = Some("b".into());
    assert_eq!(machine.step(start, WALL, Seen::Found(lease)), Action::Rest);
    assert_eq!(machine.standing(), Standing::Lost { renewed: start });
}

#[test]
fn candidate_waits_from_when_it_saw_the_last_change() {
    let start = Instant::now();
    let (_, lease) = leader("a", start);
    let mut candidate = Machine::new(options("b"));
    let mut look = |at: u64, lease: &Lease| {
        let now = start + seconds(at);
        candidate.step(now, WALL, Seen::Turn);
        let action = candidate.step(now, WALL, Seen::Found(Box::new(lease.clone())));
        (action, candidate.standing())
    };
    let following = Standing::Following { leader: "a".into() };
    // First seen long after it was written: only our own clock counts.
    assert_eq!(look(100, &lease), (Action::Rest, following.clone()));
    assert_eq!(look(114, &lease), (Action::Rest, following.clone()));
    let mut renewed = lease.clone();
    let renewal = MicroTimeOf(200).into();
    renewed.spec.as_mut().expect("it has one").renew_time = Some(renewal);
    assert_eq!(look(114, &renewed), (Action::Rest, following.clone()));
    assert_eq!(look(128, &renewed), (Action::Rest, following));
    let (action, _) = look(129, &renewed);
    assert_eq!(transitions(&action), Some(1));
}

struct MicroTimeOf(i64);

impl From<MicroTimeOf> for k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime {
    fn from(second: MicroTimeOf) -> Self {
        Self(Timestamp::from_second(second.0).expect("in range"))
    }
}

#[test]
fn answer_that_comes_after_the_deadline_makes_no_leader() {
    let start = Instant::now();
    let mut machine = Machine::new(options("a"));
    machine.step(start, WALL, Seen::Turn);
    let action = machine.step(start, WALL, Seen::Missing);
    machine.step(start + seconds(10), WALL, written(action));
    assert_eq!(machine.standing(), Standing::Unknown);
    assert!(machine.may_hold());
}

#[test]
fn released_lease_has_no_holder_and_a_second_left() {
    let (machine, lease) = leader("a", Instant::now());
    let spec = machine
        .released(*lease.clone(), WALL)
        .and_then(|lease| lease.spec);
    let spec = spec.expect("it is ours");
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!(spec.lease_duration_seconds, Some(1));
    let other = Machine::new(options("b"));
    assert_eq!(other.released(*lease, WALL), None);
}

struct Scene {
    _server: Server,
    client: Client,
    environment: Environment,
}

impl Scene {
    async fn start() -> Self {
        let server = Server::builder().start().await.expect("starts");
        let client = Client::new(server.service(), "default");
        let clock = VirtualClock::starting_at(WALL);
        let environment = Environment::seeded(clock, 1);
        Self {
            _server: server,
            client,
            environment,
        }
    }

    fn election(&self, identity: &str) -> Election {
        let environment = self.environment.clone();
        Election::new(self.client.clone(), options(identity), environment).expect("times fit")
    }

    async fn lease(&self) -> Lease {
        let api: Api<Lease> = Api::default_namespaced(self.client.clone());
        api.get("op").await.expect("there is a lease")
    }
}

#[limited::test(start_paused = true)]
async fn stopped_leader_hands_over_at_once() {
    let scene = Scene::start().await;
    let (first, second) = (scene.election("a"), scene.election("b"));
    let (a, b) = (first.leadership(), second.leadership());
    let (stop_a, stop_b) = (CancellationToken::new(), CancellationToken::new());
    let run_a = tokio::spawn(first.run(stop_a.clone(), |_| {}));
    limit(a.acquired()).await;
    let run_b = tokio::spawn(second.run(stop_b.clone(), |_| {}));
    tokio::time::sleep(seconds(35)).await;
    assert!(a.is_leading() && !b.is_leading());
    assert_eq!(b.other_leader().as_deref(), Some("a"));
    stop_a.cancel();
    assert_eq!(limit(run_a).await.expect("runs"), Ended::Stopped);
    assert!(!a.is_leading());
    let handed_over = Instant::now();
    limit(b.acquired()).await;
    assert!(handed_over.elapsed() < Duration::from_millis(4500));
    let spec = scene.lease().await.spec.expect("it has one");
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
    assert_eq!(spec.lease_transitions, Some(1));
    stop_b.cancel();
    assert_eq!(limit(run_b).await.expect("runs"), Ended::Stopped);
}

#[limited::test(start_paused = true)]
async fn leader_that_cannot_renew_loses_at_the_deadline() {
    let scene = Scene::start().await;
    let election = scene.election("a");
    let leadership = election.leadership();
    let healthy = leadership.health(seconds(20));
    let run = tokio::spawn(election.run(CancellationToken::new(), |_| {}));
    limit(leadership.acquired()).await;
    // Somebody takes the lease by force.
    let api: Api<Lease> = Api::default_namespaced(scene.client.clone());
    let theirs = serde_json::json!({"spec": {"holderIdentity": "thief"}});
    let patch = kube::api::Patch::Merge(theirs);
    let params = kube::api::PatchParams::default();
    api.patch("op", &params, &patch).await.expect("patched");
    let taken = Instant::now();
    limit(leadership.lost()).await;
    assert!(taken.elapsed() <= seconds(2), "seen at the next renewal");
    assert_eq!(limit(run).await.expect("runs"), Ended::Lost);
    assert_eq!(healthy(), Ok(()));
    tokio::time::sleep(seconds(36)).await;
    let expected = "failed election to renew leadership on lease op";
    assert_eq!(healthy(), Err(expected.to_owned()));
}

#[limited::test(start_paused = true)]
async fn killed_leader_stops_leading_by_the_clock_alone() {
    let scene = Scene::start().await;
    let election = scene.election("a");
    let leadership = election.leadership();
    let run = tokio::spawn(election.run(CancellationToken::new(), |_| {}));
    limit(leadership.acquired()).await;
    run.abort();
    let killed = Instant::now();
    assert!(leadership.is_leading());
    limit(leadership.lost()).await;
    assert!(killed.elapsed() <= seconds(10));
    assert!(!leadership.is_leading());
}

/// A process that was held for longer than its lease may find it won and lost at once: nobody saw it lead.
#[limited::test(start_paused = true)]
async fn lost_is_a_state_that_nobody_has_to_see_begin() {
    let now = Instant::now();
    let leading = Standing::Leading {
        renewed: now,
        deadline: now + seconds(10),
    };
    let lost = Standing::Lost { renewed: now };
    let stories = [vec![leading.clone(), lost], vec![leading]];
    for story in stories {
        let (sender, standing) = tokio::sync::watch::channel(Standing::Unknown);
        let leadership = LeaderStatus {
            standing,
            name: "op".into(),
            lease_duration: seconds(15),
            renew_deadline: seconds(10),
        };
        for standing in &story {
            sender.send(standing.clone()).expect("somebody looks");
        }
        drop(sender);
        let (a, b) = (leadership.clone(), leadership);
        let both = async { tokio::join!(a.lost(), b.expired()) };
        let ended = tokio::time::timeout(seconds(60), both).await;
        assert!(ended.is_ok(), "{story:?}");
        assert!(
            now.elapsed() <= seconds(10),
            "at the deadline at the latest"
        );
    }
}
