//! Slow workers, failures and a limit of retries: what a controller does with its queue, without a cluster.
//!
//! Three sloths share a rate-limited queue. Eating a leaf takes a while; some leaves fail at first and are tried again,
//! later each time; a rotten one fails always, and is dropped with a report after five retries. One leaf is added
//! again while it is being eaten, and is eaten once more afterwards, never by two at once.
//!
//! `cargo run -p kubewright-workqueue --example sloth` prints what happens and when. The clock is real; the counts at
//! the end are the same in every run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kubewright_workqueue::limiter::ExponentialBackoff;
use kubewright_workqueue::{Drain, Item, Options, Queue, prometheus};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Leaf = &'static str;

const SLOTHS: usize = 3;
const RETRIES: u32 = 5;
const SLOWNESS: Duration = Duration::from_millis(30);

/// How often eating a leaf fails before it works.
const TOUGHNESS: [(Leaf, u32); 6] = [
    ("acacia", 0),
    ("beech", 2),
    ("cecropia", 0),
    ("durian", 1),
    ("elm (rotten)", u32::MAX),
    ("fig", 0),
];

/// What happened to each leaf.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Fate {
    bites: u32,
    eaten: u32,
    dropped: u32,
}

#[derive(Debug)]
struct TooTough(Leaf);

impl std::fmt::Display for TooTough {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is too tough today", self.0)
    }
}

struct Forest {
    queue: Queue<Leaf>,
    start: Instant,
    fates: Mutex<BTreeMap<Leaf, Fate>>,
}

impl Forest {
    fn say(&self, line: &str) {
        println!("{:>5} ms  {line}", self.start.elapsed().as_millis());
    }

    fn record(&self, leaf: Leaf, change: impl FnOnce(&mut Fate)) -> Fate {
        let mut fates = self.fates.lock().expect("no sloth panics with a leaf");
        let fate = fates.entry(leaf).or_default();
        change(fate);
        fate.clone()
    }

    /// One sloth, until there is nothing left.
    async fn sloth(self: Arc<Self>, name: usize) {
        while let Some(item) = self.queue.get().await {
            let outcome = self.eat(name, item.key()).await;
            self.conclude(item, outcome);
        }
        self.say(&format!("sloth {name} goes to sleep"));
    }

    /// The slow work.
    async fn eat(&self, name: usize, leaf: Leaf) -> Result<(), TooTough> {
        self.say(&format!("sloth {name} chews {leaf}"));
        let fate = self.record(leaf, |fate| fate.bites += 1);
        if leaf == "acacia" && fate.bites == 1 {
            // A change arrives while the key is being worked on.
            self.queue.add(leaf);
        }
        sleep(SLOWNESS).await;
        let toughness = TOUGHNESS.iter().find(|(other, _)| *other == leaf);
        match toughness {
            Some((_, failures)) if fate.bites <= *failures => Err(TooTough(leaf)),
            _ => Ok(()),
        }
    }

    /// The usual end of a run: forget, retry, or give up and say so.
    fn conclude(&self, item: Item<Leaf>, outcome: Result<(), TooTough>) {
        let leaf = *item.key();
        match outcome {
            Ok(()) => {
                self.record(leaf, |fate| fate.eaten += 1);
                self.say(&format!("{leaf} is eaten"));
                item.done();
            }
            Err(error) if item.requeues() < RETRIES => {
                let retry = item.requeues() + 1;
                self.say(&format!("{error}; retry {retry} of {RETRIES}"));
                item.retry();
            }
            Err(error) => {
                self.record(leaf, |fate| fate.dropped += 1);
                self.say(&format!("ERROR dropping {leaf} out of the queue: {error}"));
                item.done();
            }
        }
    }
}

#[tokio::main]
async fn main() {
    let forest = run().await;
    report(&forest);
}

async fn run() -> Arc<Forest> {
    let limiter = ExponentialBackoff::new(Duration::from_millis(5), Duration::from_secs(1));
    let forest = Arc::new(Forest {
        queue: Queue::new(Options::new().name("leaves").limiter(limiter)),
        start: Instant::now(),
        fates: Mutex::default(),
    });
    for (leaf, _) in TOUGHNESS {
        forest.queue.add(leaf);
        forest.queue.add(leaf);
    }
    let mut sloths = JoinSet::new();
    for name in 1..=SLOTHS {
        sloths.spawn(forest.clone().sloth(name));
    }
    wait_for_the_rotten_leaf(&forest).await;
    if forest.queue.shut_down_with_drain().await == Drain::CutShort {
        forest.say("somebody was in a hurry");
    }
    sloths.join_all().await;
    forest
}

/// Delayed retries do not survive shutdown, so the example ends when the last of them has been given up.
async fn wait_for_the_rotten_leaf(forest: &Forest) {
    while forest.record("elm (rotten)", |_| {}).dropped == 0 {
        sleep(SLOWNESS).await;
    }
}

fn report(forest: &Forest) {
    println!("\nleaf            bites  eaten  dropped");
    for (leaf, fate) in forest.fates.lock().expect("no sloth panics").iter() {
        let Fate {
            bites,
            eaten,
            dropped,
        } = fate;
        println!("{leaf:<15} {bites:>5}  {eaten:>5}  {dropped:>7}");
    }
    let mut text = String::new();
    let written = prometheus::write(&[forest.queue.stats()], &mut text);
    written.expect("a string takes everything");
    println!();
    for line in text.lines().filter(|line| line.contains("_total{")) {
        println!("{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[limited::test(start_paused = true)]
    async fn every_leaf_is_eaten_but_the_rotten_one() {
        let forest = run().await;
        let expected = [
            ("acacia", [2, 2, 0]),
            ("beech", [3, 1, 0]),
            ("cecropia", [1, 1, 0]),
            ("durian", [2, 1, 0]),
            ("elm (rotten)", [6, 0, 1]),
            ("fig", [1, 1, 0]),
        ];
        let fates = forest.fates.lock().expect("no sloth panics");
        let counts = |(leaf, fate): (&Leaf, &Fate)| (*leaf, [fate.bites, fate.eaten, fate.dropped]);
        let counted: Vec<_> = fates.iter().map(counts).collect();
        assert_eq!(counted, expected);
        let stats = forest.queue.stats();
        assert_eq!((stats.adds, stats.retries, stats.known), (15, 8, 0));
    }
}
