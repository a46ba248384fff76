//! Two managers and one lease: whatever becomes of the leader, the other takes over, and never do both reconcile.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::{
    Client, Context, Controller, Environment, Key, LeaseOptions, Manager, Outcome, Scope, from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Fault, Wire, limit};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const SEEDS: u64 = 500;
const LEASE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);

/// Who reconciled, and when it was.
type Log = Arc<Mutex<Vec<(char, Instant)>>>;

struct Replica {
    wire: Wire,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

/// What becomes of the leader.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// It is gone between two instructions, without releasing the lease.
    Killed,
    /// It lives, and reaches nobody.
    CutOff,
    /// It is asked to stop.
    Stopped,
}

fn replica(server: &Server, name: char, lease: &str, random: &Environment, log: &Log) -> Replica {
    let wire = Wire::new(server.service());
    let slow = random.clone();
    wire.plan(move |_| Fault::Delay(Duration::from_millis(slow.below(400))));
    let log = log.clone();
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let log = log.clone();
        async move {
            log.lock().push((name, Instant::now()));
            let touched = cx
                .client()
                .create_or_update::<ConfigMap>(cx.key(), |config| {
                    let data = config.data.get_or_insert_default();
                    data.insert("leader".to_owned(), format!("{name} at {}", cx.now()));
                });
            touched.await?;
            log.lock().push((name, Instant::now()));
            Ok(Outcome::requeue_after(Duration::from_secs(1)))
        }
    });
    let controller = Controller::of::<ConfigMap>("touch")
        .scope(Scope::all().namespace("default"))
        .reconciler(reconciler);
    let options = LeaseOptions::new("default", lease, &format!("{name}-{lease}"))
        .lease_duration(LEASE)
        .retry_period(RETRY);
    let manager = Manager::new(wire.client())
        .environment(random.clone())
        .leader_election(options)
        .controller(controller);
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.run_until(stop.clone()));
    Replica { wire, stop, task }
}

fn other(name: char) -> char {
    if name == 'a' { 'b' } else { 'a' }
}

async fn until_led(log: &Log, by: impl Fn(char) -> bool, within: Duration) -> char {
    let deadline = Instant::now() + within;
    loop {
        let found = log.lock().iter().find(|(name, _)| by(*name)).copied();
        if let Some((name, _)) = found {
            return name;
        }
        assert!(
            Instant::now() < deadline,
            "nobody leads within {within:?}: {:?}",
            log.lock()
        );
        sleep(Duration::from_millis(50)).await;
    }
}

async fn check(server: &Server, seed: u64) {
    let random = Environment::seeded(VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH), seed);
    let (log, lease) = (Log::default(), format!("lease-{seed}"));
    let mut replicas = [
        replica(server, 'a', &lease, &random, &log),
        replica(server, 'b', &lease, &random, &log),
    ];
    let first = until_led(&log, |_| true, Duration::from_secs(30)).await;
    sleep(Duration::from_millis(random.below(8_000))).await;
    let fate = [Fate::Killed, Fate::CutOff, Fate::Stopped][random.below(3) as usize];
    let leader = &mut replicas[usize::from(first == 'b')];
    match fate {
        Fate::Killed => leader.task.abort(),
        Fate::CutOff => leader.wire.plan(|_| Fault::LoseRequest),
        Fate::Stopped => leader.stop.cancel(),
    }
    let ended = Instant::now();
    // The lease counts from when the other saw the last renewal, which is a turn and a slow answer after it was made.
    until_led(&log, |name| name == other(first), LEASE + RETRY * 3).await;
    if fate == Fate::Stopped {
        assert!(
            ended.elapsed() < RETRY * 3,
            "a lease that is released is taken at once, seed {seed}"
        );
    }
    sleep(Duration::from_secs(12)).await;
    if fate == Fate::CutOff {
        let task = &mut replicas[usize::from(first == 'b')].task;
        let ended = limit(task).await.expect("no panic");
        assert!(
            matches!(ended, Err(ManagerError::LeadershipLost)),
            "seed {seed}: {ended:?}"
        );
    }
    // Fencing: once the other has begun, the first does nothing any more.
    let log = log.lock().clone();
    let took_over = log.iter().position(|(name, _)| *name != first);
    let after = &log[took_over.expect("the other led")..];
    assert!(
        after.iter().all(|(name, _)| *name != first),
        "seed {seed} {fate:?}: {log:?}"
    );
    for replica in replicas {
        replica.task.abort();
    }
}

#[limited::test(start_paused = true)]
async fn of_two_managers_never_both_reconcile_and_one_always_takes_over() {
    let server = Server::builder().start().await.expect("a server starts");
    let user = Client::new(kube::Client::new(server.service(), "default"));
    let key = Key::new("default", "shared");
    user.create_or_update::<ConfigMap>(&key, |_| {})
        .await
        .expect("it is created");
    for seed in 0..SEEDS {
        check(&server, seed).await;
    }
}
