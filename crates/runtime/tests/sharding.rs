//! Replicas of one operator that share its objects, end to end: managers over one API server in the process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::controller::Handle;
use kubewright_runtime::environment::VirtualClock;
use kubewright_runtime::manager::ManagerError;
use kubewright_runtime::sharding::Caches;
use kubewright_runtime::{
    Client, Context, Controller, Environment, Key, Manager, Outcome, Query, Scope, ShardingOptions,
    from_fn,
};
use kubewright_server::Server;
use kubewright_testing::{Fault, Wire, limit, until};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const OBJECTS: usize = 120;

/// Who reconciles what now, and who has reconciled what.
#[derive(Default)]
struct Log {
    working: BTreeMap<Key, &'static str>,
    done: BTreeMap<&'static str, BTreeSet<Key>>,
    twice: Vec<String>,
}

type Shared = Arc<Mutex<Log>>;

struct Working(Shared, Key);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.lock().working.remove(&self.1);
    }
}

struct Replica {
    client: Client,
    handle: Handle,
    wire: Wire,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
}

fn replica(server: &Server, name: &'static str, random: &Environment, log: &Shared) -> Replica {
    let options = ShardingOptions::new("default", "operator", name);
    replica_with(server, options, name, random, log)
}

fn replica_with(
    server: &Server,
    options: ShardingOptions,
    name: &'static str,
    random: &Environment,
    log: &Shared,
) -> Replica {
    let wire = Wire::new(server.service());
    let (log, pause) = (log.clone(), random.clone());
    let reconciler = from_fn(move |_: Arc<ConfigMap>, cx: Context| {
        let (log, pause) = (log.clone(), pause.below(50));
        async move {
            let key = cx.key().clone();
            let other = log.lock().working.insert(key.clone(), name);
            if let Some(other) = other {
                log.lock().twice.push(format!("{key}: {other} and {name}"));
            }
            let _working = Working(log.clone(), key.clone());
            sleep(Duration::from_millis(pause)).await;
            log.lock().done.entry(name).or_default().insert(key);
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("shared")
        .scope(Scope::all().namespace("default"))
        .workers(4)
        .reconciler(reconciler);
    let handle = controller.handle();
    let manager = Manager::new(wire.client())
        .environment(random.clone())
        .sharded(options)
        .controller(controller);
    let client = manager.client();
    let stop = CancellationToken::new();
    let task = tokio::spawn(manager.run_until(stop.clone()));
    Replica {
        client,
        handle,
        wire,
        stop,
        task,
    }
}

/// Waits until these have reconciled every object since the log was last cleared, each its share.
async fn all_done(log: &Shared, by: &[&'static str], within: Duration) {
    let deadline = Instant::now() + within;
    loop {
        let done: BTreeMap<&str, usize> = {
            let log = log.lock();
            assert_eq!(log.twice, [] as [String; 0]);
            log.done
                .iter()
                .map(|(name, keys)| (*name, keys.len()))
                .collect()
        };
        let of = |name: &&str| done.get(*name).copied().unwrap_or(0);
        let each = by
            .iter()
            .all(|name| of(name) as f64 > 0.7 * OBJECTS as f64 / by.len() as f64);
        let keys: BTreeSet<Key> = {
            let log = log.lock();
            by.iter()
                .flat_map(|name| log.done.get(name).cloned().unwrap_or_default())
                .collect()
        };
        if each && keys.len() == OBJECTS {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "after {within:?}: {done:?}, {} objects",
            keys.len()
        );
        sleep(Duration::from_millis(100)).await;
    }
}

async fn objects(server: &Server) {
    let user = Client::new(kube::Client::new(server.service(), "default"));
    for number in 0..OBJECTS {
        let key = Key::new("default", &format!("object-{number}"));
        let created = user.create_or_update::<ConfigMap>(&key, |_| {}).await;
        created.expect("it is created");
    }
}

/// How many of the objects are in the cache of a replica.
async fn cached(replica: &Replica) -> usize {
    // A cache that is asked for before the manager runs knows nothing of shards.
    if !replica.handle.is_warm() {
        return 0;
    }
    let listed = replica
        .client
        .list::<ConfigMap>(Query::all().namespace("default"))
        .await;
    listed.expect("the cache is read").len()
}

/// Waits until the caches of these replicas have as many objects as `expected` says.
async fn until_cached(replicas: &[&Replica], expected: impl Fn(&[usize]) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut counts = Vec::new();
        for replica in replicas {
            counts.push(cached(replica).await);
        }
        if expected(&counts) {
            return;
        }
        assert!(Instant::now() < deadline, "after 60 s: {counts:?}");
        sleep(Duration::from_millis(500)).await;
    }
}

#[limited::test(start_paused = true)]
async fn caches_keep_the_objects_of_their_own_shards_only() {
    let server = Server::builder().start().await.expect("a server starts");
    objects(&server).await;
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let (random, log) = (Environment::seeded(clock, 2), Shared::default());
    let start = |name| {
        let options = ShardingOptions::new("default", "operator", name).caches(Caches::OwnShards);
        replica_with(&server, options, name, &random, &log)
    };
    let one = start("one");
    until_cached(&[&one], |counts| counts == [OBJECTS]).await;
    let (two, three) = (start("two"), start("three"));
    until_cached(&[&one, &two, &three], |counts| {
        let share = OBJECTS as f64 / 3.0;
        let fair = |count: &usize| (*count as f64) < 1.3 * share;
        counts.iter().sum::<usize>() == OBJECTS && counts.iter().all(fair)
    })
    .await;
    all_done(&log, &["one", "two", "three"], Duration::from_secs(30)).await;
    // What another replica had is listed again by whoever takes it over, and reconciled.
    log.lock().done.clear();
    two.task.abort();
    three.stop.cancel();
    until_cached(&[&one], |counts| counts == [OBJECTS]).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    while log.lock().done.get("one").map_or(0, BTreeSet::len) < OBJECTS / 2 {
        assert!(Instant::now() < deadline, "{:?}", log.lock().done);
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(log.lock().twice, [] as [String; 0]);
}

#[limited::test(start_paused = true)]
async fn objects_of_other_replicas_are_out_of_scope_and_not_absent() {
    let server = Server::builder().start().await.expect("a server starts");
    objects(&server).await;
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let (random, log) = (Environment::seeded(clock, 3), Shared::default());
    let replicas = ["one", "two"].map(|name| {
        let options = ShardingOptions::new("default", "operator", name).caches(Caches::OwnShards);
        replica_with(&server, options, name, &random, &log)
    });
    until_cached(&replicas.each_ref(), |counts| {
        counts.iter().sum::<usize>() == OBJECTS && !counts.contains(&0)
    })
    .await;
    let found = async |replica: &Replica, name: &str| {
        let key = Key::new("default", name);
        match limit(replica.client.get::<ConfigMap>(&key)).await {
            Err(error) if error.is_out_of_scope() => None,
            read => Some(read.expect("it is read").is_some()),
        }
    };
    let [one, two] = &replicas;
    for number in 0..OBJECTS {
        for (name, exists) in [
            (format!("object-{number}"), true),
            (format!("x-{number}"), false),
        ] {
            let mut both = [found(one, &name).await, found(two, &name).await];
            both.sort();
            assert_eq!(both, [None, Some(exists)], "{name}");
        }
        // Whoever writes is no stranger to the objects of the other.
        let key = Key::new("default", &format!("object-{number}"));
        let written = limit(one.client.create_or_update::<ConfigMap>(&key, |_| {})).await;
        assert!(!written.expect("it is there").is_changed());
    }
}

#[limited::test(start_paused = true)]
async fn leases_of_shards_are_written_under_the_name_of_the_operator() {
    let server = Server::builder().start().await.expect("a server starts");
    let user = Client::new(kube::Client::new(server.service(), "default"));
    let manager = Manager::new(kube::Client::new(server.service(), "default"))
        .name("guestbook-operator")
        .sharded(ShardingOptions::new("default", "operator", "one"));
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.run_until(stop.clone()));
    let lease = until("the replica has a lease", async || {
        let key = Key::new("default", "operator-one");
        let lease = user.live().get::<Lease>(&key);
        lease.await.expect("it is read")
    });
    let written = lease.await.metadata.managed_fields.unwrap_or_default();
    let managers: Vec<_> = written.iter().map(|it| it.manager.as_deref()).collect();
    assert_eq!(managers, [Some("guestbook-operator")]);
    stop.cancel();
    limit(running).await.expect("no panic").expect("it ends");
}

#[limited::test(start_paused = true)]
async fn replicas_share_objects_and_take_over_from_each_other() {
    let server = Server::builder().start().await.expect("a server starts");
    objects(&server).await;
    let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let (random, log) = (Environment::seeded(clock, 1), Shared::default());
    let one = replica(&server, "one", &random, &log);
    all_done(&log, &["one"], Duration::from_secs(30)).await;

    // Two more join: each gets a third, and the first keeps what it has.
    let two = replica(&server, "two", &random, &log);
    let three = replica(&server, "three", &random, &log);
    all_done(&log, &["one", "two", "three"], Duration::from_secs(30)).await;

    // One is killed without a word: its objects are taken over when its lease has run out.
    log.lock().done.clear();
    one.task.abort();
    sleep(Duration::from_secs(40)).await;
    let first = log.lock().done.clone();
    let taken: usize = first.values().map(BTreeSet::len).sum();
    assert!(
        !first.contains_key("one") && taken > OBJECTS / 4,
        "{taken} were taken over"
    );

    // One is asked to stop: its objects are taken over at once, and its lease is gone.
    log.lock().done.clear();
    two.stop.cancel();
    let ended = limit(two.task).await.expect("the manager does not panic");
    ended.expect("the manager ends well");
    sleep(Duration::from_secs(8)).await;
    let taken = log.lock().done.get("three").map_or(0, BTreeSet::len);
    assert!(taken > OBJECTS / 3, "{taken} were taken over");

    // The last one is cut off: it ends, and says why.
    three.wire.plan(|_| Fault::LoseRequest);
    let ended = limit(three.task).await.expect("the manager does not panic");
    assert!(matches!(ended, Err(ManagerError::ShardsLost)), "{ended:?}");
    assert_eq!(log.lock().twice, [] as [String; 0]);
}
