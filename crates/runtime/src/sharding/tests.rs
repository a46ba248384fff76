//! Replicas that are killed, cut off, stopped and added at random, over a real API server with a slow and lossy line.
//!
//! Objects are only names here. The server's side is an audit of every piece of work: it knows who works on what, and
//! remembers the highest fencing token of each object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::Key;
use kubewright_server::Server;
use kubewright_testing::{Call, Fault, Wire};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::sharder::{Ended, Sharder};
use super::{ShardingOptions, Shards};
use crate::environment::{Environment, VirtualClock};

const OBJECTS: usize = 2_000;
const WORKERS: usize = 4;

/// How many seeds are tried. `KUBEWRIGHT_SHARDING_SEEDS=200` tries so many instead of a few.
fn seeds() -> u64 {
    let seeds = std::env::var("KUBEWRIGHT_SHARDING_SEEDS").ok();
    seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(30)
}

/// What the server knows of the work on the objects.
#[derive(Default)]
struct Audit {
    /// Who works on an object now.
    working: BTreeMap<Key, String>,
    /// The highest token that came with a write of an object.
    tokens: BTreeMap<Key, u64>,
    /// Work that was begun while somebody else was at it, and writes with a token that was too low.
    violations: Vec<String>,
}

type Shared = Arc<Mutex<Audit>>;

/// A piece of work, which ends when this is dropped.
struct Work(Shared, Key);

impl Work {
    fn begin(audit: &Shared, key: &Key, name: &str) -> Self {
        let mut state = audit.lock();
        if let Some(other) = state.working.insert(key.clone(), name.to_owned()) {
            let violation = format!("{name} begins {key} while {other} works on it");
            state.violations.push(violation);
        }
        Self(audit.clone(), key.clone())
    }

    fn write(&self, token: u64) {
        let mut state = self.0.lock();
        let highest = state.tokens.entry(self.1.clone()).or_default();
        let (before, key) = (*highest, &self.1);
        *highest = before.max(token);
        if token < before {
            let violation = format!("{key} is written with token {token} after {before}");
            state.violations.push(violation);
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.lock().working.remove(&self.1);
    }
}

struct Replica {
    name: String,
    wire: Wire,
    shards: Shards,
    stop: CancellationToken,
    task: JoinHandle<Ended>,
}

struct World<'a> {
    server: &'a Server,
    random: Environment,
    operator: String,
    objects: Arc<Vec<Key>>,
    audit: Shared,
    replicas: Vec<Replica>,
    started: usize,
}

impl<'a> World<'a> {
    fn new(server: &'a Server, seed: u64) -> Self {
        let clock = VirtualClock::starting_at(jiff::Timestamp::UNIX_EPOCH);
        let key = |n| Key::new(&format!("team-{}", n % 13), &format!("object-{n}"));
        Self {
            server,
            random: Environment::seeded(clock, seed),
            operator: format!("operator-{seed}"),
            objects: Arc::new((0..OBJECTS).map(key).collect()),
            audit: Shared::default(),
            replicas: Vec::new(),
            started: 0,
        }
    }

    fn start(&mut self) {
        self.started += 1;
        let name = format!("replica-{}", self.started);
        let wire = Wire::new(self.server.service());
        wire.plan(lossy(self.random.clone()));
        let options = ShardingOptions::new("default", &self.operator, &name);
        let sharder = Sharder::new(options, wire.client(), self.random.clone());
        let (shards, stop) = (sharder.shards(), CancellationToken::new());
        let controller = Controller {
            name: name.clone(),
            objects: self.objects.clone(),
            audit: self.audit.clone(),
            random: self.random.clone(),
            shards: shards.clone(),
        };
        let task = tokio::spawn(controller.run(sharder, stop.clone()));
        self.replicas.push(Replica {
            name,
            wire,
            shards,
            stop,
            task,
        });
    }

    fn below(&self, count: usize) -> usize {
        self.random.below(count as u64) as usize
    }

    async fn disturb(&mut self) {
        let index = self.below(self.replicas.len());
        match self.below(4) {
            // Gone between two instructions.
            0 if self.replicas.len() > 1 => self.replicas.swap_remove(index).task.abort(),
            // It lives, and reaches nobody for a while.
            1 => {
                let wire = self.replicas[index].wire.clone();
                let (random, pause) = (self.random.clone(), self.below(30_000) as u64);
                wire.plan(|_| Fault::LoseRequest);
                sleep(Duration::from_millis(pause)).await;
                wire.plan(lossy(random));
            }
            2 if self.replicas.len() > 1 => {
                let leaving = self.replicas.swap_remove(index);
                leaving.stop.cancel();
                let limit = Duration::from_secs(60);
                let ended = timeout(limit, leaving.task).await;
                ended.expect("a replica that is asked to stop does").ok();
            }
            _ if self.replicas.len() < 5 => self.start(),
            _ => {}
        }
        self.replicas.retain(|replica| !replica.task.is_finished());
        sleep(Duration::from_millis(self.below(20_000) as u64)).await;
    }

    /// After a quiet time each of three replicas has its share, and each object was worked on by the one that has it.
    async fn settle(&mut self, seed: u64) {
        // Whoever lost its lease meanwhile ends first.
        self.replicas.iter().for_each(|replica| replica.wire.heal());
        sleep(Duration::from_secs(20)).await;
        self.replicas.retain(|replica| !replica.task.is_finished());
        while self.replicas.len() > 3 {
            if let Some(replica) = self.replicas.pop() {
                replica.task.abort();
            }
        }
        while self.replicas.len() < 3 {
            self.start();
        }
        self.replicas.iter().for_each(|replica| replica.wire.heal());
        sleep(Duration::from_secs(90)).await;
        let state = |it: &Replica| {
            (
                it.name.clone(),
                it.shards.held().len(),
                it.task.is_finished(),
            )
        };
        let states: Vec<_> = self.replicas.iter().map(state).collect();
        let audit = self.audit.lock();
        assert_eq!(audit.violations, [] as [String; 0], "seed {seed}");
        let mut objects = BTreeSet::new();
        for replica in &self.replicas {
            let own = |key: &&Key| replica.shards.owns(key);
            let held: Vec<&Key> = self.objects.iter().filter(own).collect();
            let share = OBJECTS as f64 / 3.0;
            assert!(
                (held.len() as f64) < 1.3 * share,
                "seed {seed}: {} has {} objects",
                replica.name,
                held.len()
            );
            for key in held {
                assert!(
                    objects.insert(key.clone()),
                    "seed {seed}: {key} is held twice"
                );
                let written = audit.tokens.get(key).copied();
                let current = replica.shards.token(key);
                assert_eq!(written, current, "seed {seed}: {key} was not taken over");
            }
        }
        assert_eq!(objects.len(), OBJECTS, "seed {seed}: {states:?}");
    }
}

/// A slow line that loses a request or an answer now and then.
fn lossy(random: Environment) -> impl Fn(&Call) -> Fault + Send + Sync + 'static {
    move |_| match random.below(40) {
        0 => Fault::LoseRequest,
        1 => Fault::LoseAnswer,
        _ => Fault::Delay(Duration::from_millis(random.below(400))),
    }
}

/// A controller in miniature: takes over what it gets, and works on each object for a while.
struct Controller {
    name: String,
    objects: Arc<Vec<Key>>,
    audit: Shared,
    random: Environment,
    shards: Shards,
}

impl Controller {
    async fn run(self, sharder: Sharder, stop: CancellationToken) -> Ended {
        // Whatever ends first ends the rest: work is dropped where it is.
        tokio::select! { biased;
            ended = sharder.run(stop) => ended,
            () = self.work() => unreachable!("it works for ever"),
        }
    }

    async fn work(&self) {
        let queue = Mutex::new(VecDeque::new());
        let workers = (0..WORKERS).map(|_| self.worker(&queue));
        let workers = futures::future::join_all(workers);
        tokio::select! { biased;
            () = self.take_over(&queue) => {}
            _ = workers => {}
        }
    }

    async fn take_over(&self, queue: &Mutex<VecDeque<Key>>) {
        let mut changes = self.shards.changes();
        let mut before = BTreeSet::new();
        loop {
            let held = self.shards.held();
            let new = |key: &&Key| {
                let shard = self.shards.of(key);
                held.contains(&shard) && !before.contains(&shard)
            };
            queue
                .lock()
                .extend(self.objects.iter().filter(new).cloned());
            before = held;
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    async fn worker(&self, queue: &Mutex<VecDeque<Key>>) {
        loop {
            let next = queue.lock().pop_front();
            let Some(key) = next else {
                sleep(Duration::from_millis(200)).await;
                continue;
            };
            let Some(permit) = self.shards.enter(&key) else {
                continue;
            };
            let token = self.shards.token(&key).unwrap_or_default();
            let work = Work::begin(&self.audit, &key, &self.name);
            sleep(Duration::from_millis(1 + self.random.below(40))).await;
            work.write(token);
            drop(work);
            drop(permit);
        }
    }
}

#[limited::test(start_paused = true)]
async fn no_object_is_worked_on_by_two_and_each_is_taken_over_whatever_becomes_of_replicas() {
    let server = Server::builder().start().await.expect("a server starts");
    for seed in 0..seeds() {
        let mut world = World::new(&server, seed);
        (0..3).for_each(|_| world.start());
        for _ in 0..6 {
            world.disturb().await;
            if world.replicas.is_empty() {
                world.start();
            }
        }
        world.settle(seed).await;
        world
            .replicas
            .iter()
            .for_each(|replica| replica.task.abort());
    }
}
