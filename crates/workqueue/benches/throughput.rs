//! Keys per second through the queue: distinct keys, duplicate adds and delayed adds, with one worker and with eight.
//!
//! A queue with a name measures durations as well. The keys are `Arc<str>` of the shape `namespace/name`, made before the clock starts. Each line is the best of three.

use std::sync::Arc;
use std::time::Duration;

use kubewright_workqueue::{Add, Options, Queue, limiter};
use tokio::task::JoinSet;

const ROUNDS: usize = 3;

fn main() {
    for keys in [1_000, 100_000, 1_000_000] {
        for (workers, name) in [(1, ""), (8, ""), (1, "named"), (8, "named")] {
            distinct(keys, workers, name);
        }
    }
    in_one_go(1_000_000);
    for workers in [0, 1, 8] {
        duplicates(1_000_000, 1_000, workers);
    }
    for workers in [1, 8] {
        rate_limited(100_000, workers);
    }
}

/// All keys are added, then all are taken and done.
fn distinct(count: usize, workers: usize, name: &str) {
    let keys = keys(count);
    let repeat = (200_000 / count).max(1);
    let best = best_of(|| {
        let queue = Queue::new(Options::new().name(name));
        let mut times = Times::default();
        for _ in 0..repeat {
            let batch = keys.clone();
            times.add += timed(|| batch.into_iter().for_each(|key| queue.add(key)));
            times.work += work(&queue, workers, count);
        }
        times
    });
    let total = (count * repeat) as f64;
    println!(
        "{count:>9} distinct keys, {workers} workers {name:5}: add {}  get+done {}  total {}",
        rate(total, best.add),
        rate(total, best.work),
        rate(total, best.add + best.work),
    );
}

/// All keys are added by one call.
fn in_one_go(count: usize) {
    let keys = keys(count);
    let best = best_of(|| {
        let queue = Queue::new(Options::new());
        let batch = keys.clone();
        let add = timed(|| queue.add_all(batch, Add::now()));
        let work = work(&queue, 1, count);
        Times { add, work }
    });
    let total = rate(count as f64, best.add + best.work);
    let add = rate(count as f64, best.add);
    println!("{count:>9} distinct keys in one go, 1 workers: add {add}  total {total}");
}

/// Few keys are added over and over, while workers take what they can.
fn duplicates(adds: usize, distinct: usize, workers: usize) {
    let keys = keys(distinct);
    let best = best_of(|| {
        let queue = Queue::new(Options::new());
        let runtime = runtime(workers.max(1));
        let mut set = spawn(&runtime, &queue, workers);
        let add = timed(|| {
            for key in keys.iter().cycle().take(adds) {
                queue.add(key.clone());
            }
        });
        queue.shut_down();
        runtime.block_on(async { while set.join_next().await.is_some() {} });
        Times {
            add,
            work: Duration::ZERO,
        }
    });
    println!(
        "{adds:>9} adds of {distinct} keys, {workers} workers: {}",
        rate(adds as f64, best.add)
    );
}

/// Every key is added rate limited with a delay of a millisecond, and waited for.
fn rate_limited(count: usize, workers: usize) {
    let keys = keys(count);
    let best = best_of(|| {
        let delay = Duration::from_millis(1);
        let limiter = limiter::ExponentialBackoff::new(delay, delay);
        let queue = Queue::new(Options::new().limiter(limiter));
        let batch = keys.clone();
        let add = timed(|| {
            batch
                .into_iter()
                .for_each(|key| queue.add_rate_limited(key))
        });
        let work = work(&queue, workers, count);
        Times { add, work }
    });
    println!(
        "{count:>9} rate-limited keys, {workers} workers: add {}  delivered {}",
        rate(count as f64, best.add),
        rate(count as f64, best.add + best.work)
    );
}

#[derive(Default, Clone, Copy)]
struct Times {
    add: Duration,
    work: Duration,
}

fn best_of(mut round: impl FnMut() -> Times) -> Times {
    let rounds = (0..ROUNDS).map(|_| round());
    rounds.min_by_key(|t| t.add + t.work).unwrap_or_default()
}

fn keys(count: usize) -> Vec<Arc<str>> {
    (0..count)
        .map(|i| format!("namespace-{}/workload-{i:07}", i % 100).into())
        .collect()
}

/// Takes exactly `count` keys with so many workers, each a task of its own.
fn work(queue: &Queue<Arc<str>>, workers: usize, count: usize) -> Duration {
    let runtime = runtime(workers);
    let share = count / workers;
    let mut set = JoinSet::new();
    timed(|| {
        for _ in 0..workers {
            let queue = queue.clone();
            let worker = async move {
                for _ in 0..share {
                    if let Some(item) = queue.get().await {
                        item.done();
                    }
                }
            };
            set.spawn_on(worker, runtime.handle());
        }
        runtime.block_on(async { while set.join_next().await.is_some() {} });
    })
}

fn spawn(
    runtime: &tokio::runtime::Runtime,
    queue: &Queue<Arc<str>>,
    workers: usize,
) -> JoinSet<()> {
    let mut set = JoinSet::new();
    for _ in 0..workers {
        let queue = queue.clone();
        let worker = async move { while queue.get().await.is_some() {} };
        set.spawn_on(worker, runtime.handle());
    }
    set
}

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers.min(2))
        .enable_time()
        .build()
        .expect("a runtime can be started")
}

fn timed(work: impl FnOnce()) -> Duration {
    #[allow(
        clippy::disallowed_methods,
        reason = "a benchmark measures the real clock"
    )]
    let start = std::time::Instant::now();
    work();
    start.elapsed()
}

fn rate(count: f64, time: Duration) -> String {
    format!("{:6.2} M/s", count / time.as_secs_f64() / 1e6)
}
