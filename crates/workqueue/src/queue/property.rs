//! Random histories of producers, workers, cancellations and panicking limiters, against a model of who may wait for what.
//!
//! The clock is paused and read every millisecond. At each reading the model is asked: is a worker waiting although a key
//! has been due, or ready, for longer than the timer's step?

use crate::limit::limit;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep};

use super::*;
use crate::limiter::{ExponentialBackoff, RateLimiter, Retry, controller_default};
use crate::options::Add;

const KEYS: u8 = 24;
/// The step of tokio's timer.
const STEP: Duration = Duration::from_millis(1);

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    AddAll,
    AddAfter(u8, u64),
    AddRateLimited(u8),
    /// A worker is cancelled, whatever it does, and another one starts.
    ReplaceWorker(usize),
    Pass(u64),
}

/// What must happen, and what happened.
#[derive(Default)]
struct Model {
    /// When each key is to run at the latest, once for delays and once for adds.
    delayed: BTreeMap<u8, Instant>,
    added: BTreeMap<u8, Instant>,
    /// Keys that run, and when the others last ended.
    running: BTreeMap<u8, Instant>,
    ended: BTreeMap<u8, Instant>,
    waiting_workers: usize,
    /// The delay that the limiter returned last, or would have returned had it not panicked.
    delay: Duration,
}

impl Model {
    fn add_after(&mut self, key: u8, delay: Duration) {
        // Every add moves keys that are due to the ready ones, so they make room for another delay.
        let due = self.delayed.get(&key).copied();
        if let Some(due) = due.filter(|due| *due <= Instant::now()) {
            self.delayed.remove(&key);
            self.added.entry(key).or_insert(due);
        }
        let wanted = if delay.is_zero() {
            &mut self.added
        } else {
            &mut self.delayed
        };
        let due = Instant::now() + delay;
        let earliest = wanted.entry(key).or_insert(due);
        *earliest = due.min(*earliest);
    }

    fn begin(&mut self, key: u8) {
        let now = Instant::now();
        assert!(
            self.running.insert(key, now).is_none(),
            "{key} runs twice at once"
        );
        self.added.remove(&key);
        if self.delayed.get(&key).is_some_and(|due| *due <= now) {
            self.delayed.remove(&key);
        }
    }

    /// While a worker waits, nothing is later than its time plus the timer's step.
    fn check(&self) {
        if self.waiting_workers == 0 {
            return;
        }
        let now = Instant::now();
        for (key, due) in self.delayed.iter().chain(&self.added) {
            let since = self.ended.get(key).map_or(*due, |ended| *due.max(ended));
            let late = !self.running.contains_key(key) && now > since + STEP;
            assert!(!late, "{key} was due {:?} ago", now - *due);
        }
    }
}

type Shared = Arc<Mutex<Model>>;

/// Panics in two of three calls, and says first what the queue will do instead.
struct Flaky {
    model: Shared,
    calls: u32,
}

impl RateLimiter<u8> for Flaky {
    fn delay(&mut self, retry: &Retry<'_, u8>) -> Duration {
        let delay = controller_default().delay(retry);
        self.model.lock().unwrap().delay = delay;
        self.panic_often();
        delay
    }

    fn forget(&mut self, _key: &u8) {
        self.panic_often();
    }
}

impl Flaky {
    fn panic_often(&mut self) {
        self.calls += 1;
        if !self.calls.is_multiple_of(3) {
            // Unlike `panic!` this says nothing on stderr.
            std::panic::resume_unwind(Box::new("flaky"));
        }
    }
}

/// Reports the end of a run, or of a wait, even if the worker is cancelled.
struct Report<F: FnMut(&mut Model)>(Shared, F);

impl<F: FnMut(&mut Model)> Drop for Report<F> {
    fn drop(&mut self) {
        (self.1)(&mut self.0.lock().unwrap());
    }
}

async fn work(queue: Queue<u8>, model: Shared, pace: Duration) {
    loop {
        model.lock().unwrap().waiting_workers += 1;
        let waits = Report(model.clone(), |model| model.waiting_workers -= 1);
        let item = limit(queue.get()).await;
        drop(waits);
        let Some(mut item) = item else { return };
        loop {
            let key = *item.key();
            model.lock().unwrap().begin(key);
            let runs = Report(model.clone(), move |model| {
                model.running.remove(&key);
                model.ended.insert(key, Instant::now());
            });
            // Some runs are over as soon as they begin, some take far longer than the delays.
            sleep(pace * u32::from(key % 4) * 8).await;
            drop(runs);
            match item.finish_then_next(Finish::Succeeded) {
                Some(next) => item = next,
                None => break,
            }
        }
    }
}

struct Play {
    queue: Queue<u8>,
    model: Shared,
    pace: Duration,
    tasks: JoinSet<()>,
    handles: Vec<AbortHandle>,
}

impl Play {
    fn new(workers: usize, pace: Duration) -> Self {
        let model = Shared::default();
        let limiter = Flaky {
            model: model.clone(),
            calls: 0,
        };
        let mut play = Self {
            queue: Queue::new(Options::new().name("numbers").limiter(limiter)),
            model,
            pace,
            tasks: JoinSet::new(),
            handles: Vec::new(),
        };
        (0..workers).for_each(|_| play.start_worker());
        play
    }

    fn start_worker(&mut self) {
        let work = work(self.queue.clone(), self.model.clone(), self.pace);
        self.handles.push(self.tasks.spawn(work));
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Add(key) => {
                self.queue.add(key);
                self.wanted(key, Duration::ZERO);
            }
            Step::AddAll => {
                self.queue.add_all(0..KEYS, Add::now());
                (0..KEYS).for_each(|key| self.wanted(key, Duration::ZERO));
            }
            Step::AddAfter(key, delay) => {
                let delay = Duration::from_millis(delay);
                self.queue.add_after(key, delay);
                self.wanted(key, delay);
            }
            Step::AddRateLimited(key) => {
                self.queue.add_rate_limited(key);
                let delay = self.model.lock().unwrap().delay;
                self.wanted(key, delay);
            }
            Step::ReplaceWorker(index) => {
                let index = index % self.handles.len();
                self.handles.swap_remove(index).abort();
                self.start_worker();
            }
            Step::Pass(milliseconds) => limit(self.pass(milliseconds)).await,
        }
    }

    fn wanted(&self, key: u8, delay: Duration) {
        self.model.lock().unwrap().add_after(key, delay);
    }

    /// Lets time pass, and looks every millisecond.
    async fn pass(&self, milliseconds: u64) {
        for _ in 0..milliseconds {
            sleep(STEP).await;
            self.model.lock().unwrap().check();
        }
    }

    /// Everything that was asked for runs in the end, and nothing is left behind.
    async fn finish(mut self) {
        // Far longer than it takes one worker to do every key, and than the longest delay of a key that failed often.
        for _ in 0..20_000 {
            limit(self.pass(50)).await;
            let stats = self.queue.stats();
            if (stats.depth, stats.waiting, stats.running) == (0, 0, 0) {
                break;
            }
        }
        let left = {
            let model = self.model.lock().unwrap();
            (
                model.added.clone(),
                model.delayed.clone(),
                model.running.clone(),
            )
        };
        assert!(
            left.0.is_empty() && left.1.is_empty() && left.2.is_empty(),
            "{left:?}"
        );
        self.queue.shut_down();
        while let Some(ended) = limit(self.tasks.join_next()).await {
            assert!(ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()));
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..KEYS).prop_map(Step::Add),
        1 => Just(Step::AddAll),
        // Few different delays, so that many keys are due at once.
        6 => (0u8..KEYS, 0u64..8).prop_map(|(key, delay)| Step::AddAfter(key, delay * 5)),
        2 => (0u8..KEYS).prop_map(Step::AddRateLimited),
        3 => (0usize..16).prop_map(Step::ReplaceWorker),
        4 => (0u64..20).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[limited::test]
    fn no_key_is_late_while_a_worker_waits(
        steps in prop::collection::vec(step(), 1..100),
        workers in 1usize..=16,
        pace in 0u64..10,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be started");
        runtime.block_on(async {
            let mut play = Play::new(workers, Duration::from_millis(pace));
            for step in steps {
                play.step(step).await;
            }
            limit(play.finish()).await;
        });
    }
}

/// Half of the workers never give their key back, others are cancelled all the time: whoever is left must be woken by each
/// alarm. An alarm that nobody waits for would show as a key that never runs.
#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_alarm_is_lost_between_threads() {
    const ROUNDS: u32 = 100;
    for round in 0..ROUNDS {
        let limiter = ExponentialBackoff::new(STEP, STEP);
        let queue: Queue<u32> = Queue::new(Options::new().limiter(limiter));
        let (kept, released) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let (queue, kept, released) = (queue.clone(), kept.clone(), released.clone());
            tasks.spawn(async move {
                let item = limit(queue.get()).await;
                kept.fetch_add(1, Ordering::SeqCst);
                while !released.load(Ordering::SeqCst) {
                    sleep(STEP).await;
                }
                drop(item);
            });
        }
        let fickle: Vec<_> = (0..4)
            .map(|_| {
                let queue = queue.clone();
                tasks.spawn(async move { while limit(queue.get()).await.is_some() {} })
            })
            .collect();
        for key in 0..8 {
            queue.add_after(key, STEP * (key % 3));
            queue.add_rate_limited(key + 100);
        }
        for worker in fickle {
            tokio::task::yield_now().await;
            worker.abort();
        }
        // The fickle ones may have taken any of them, so there are more keys until everybody has one.
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut key = 1_000;
        while kept.load(Ordering::SeqCst) < 8 {
            let (stats, kept) = (queue.stats(), kept.load(Ordering::SeqCst));
            assert!(
                Instant::now() < deadline,
                "round {round}: {kept} of 8 workers have a key; {stats:?}"
            );
            if stats.depth == 0 && stats.waiting == 0 {
                queue.add_after(key, STEP);
                key += 1;
            }
            sleep(STEP).await;
        }
        released.store(true, Ordering::SeqCst);
        queue.shut_down();
        while limit(tasks.join_next()).await.is_some() {}
    }
}
