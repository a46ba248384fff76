//! Random histories of producers, workers and cancellations: every key that was added runs, and runs in time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::machine::Finish;
use crate::options::Add;

/// So many that workers take some along. One of four takes time.
const KEYS: u8 = 64;

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    /// Many at once.
    AddAll,
    AddAfter(u8, u64),
    /// A worker is cancelled, whatever it does, and another one starts.
    ReplaceWorker,
    Pass(u64),
}

/// What workers report: which keys run now, and when each began its latest run.
#[derive(Default)]
struct Log {
    running: BTreeSet<u8>,
    begun: BTreeMap<u8, Instant>,
}

/// Takes a key out of the log even if the worker is cancelled.
struct Entry<'a>(&'a Mutex<Log>, u8);

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().running.remove(&self.1);
    }
}

async fn work(queue: Queue<u8>, log: Arc<Mutex<Log>>, pace: Duration) {
    while let Some(mut item) = queue.get().await {
        loop {
            let key = *item.key();
            item.during(run(key, &log, pace)).await;
            item.stop_watch();
            match item.finish_then_next(Finish::Ended) {
                Some(next) => item = next,
                None => break,
            }
        }
    }
}

async fn run(key: u8, log: &Mutex<Log>, pace: Duration) {
    {
        let mut log = log.lock().unwrap();
        assert!(log.running.insert(key), "{key} runs twice at once");
        log.begun.insert(key, Instant::now());
    }
    let _entry = Entry(log, key);
    // Some runs are over as soon as they begin.
    if !pace.is_zero() && key.is_multiple_of(4) {
        sleep(pace).await;
    }
}

async fn play(steps: Vec<Step>, workers: usize, pace: Duration) {
    let queue = Queue::new(Options::new().name("numbers"));
    let log = Arc::new(Mutex::new(Log::default()));
    let mut tasks = JoinSet::new();
    let start = |tasks: &mut JoinSet<()>| tasks.spawn(work(queue.clone(), log.clone(), pace));
    let mut handles: Vec<_> = (0..workers).map(|_| start(&mut tasks)).collect();
    // When a run of each key was last asked for.
    let mut wanted: BTreeMap<u8, Instant> = BTreeMap::new();
    for step in steps {
        match step {
            Step::Add(key) => {
                queue.add(key);
                wanted.insert(key, Instant::now());
            }
            Step::AddAll => {
                queue.add_all(0..KEYS, Add::now());
                wanted.extend((0..KEYS).map(|key| (key, Instant::now())));
            }
            Step::AddAfter(key, delay) => {
                queue.add_after(key, Duration::from_millis(delay));
            }
            Step::ReplaceWorker => {
                handles.remove(0).abort();
                handles.push(start(&mut tasks));
            }
            Step::Pass(milliseconds) => sleep(Duration::from_millis(milliseconds)).await,
        }
    }
    // Each key is at most ready and delayed: long enough for one worker to do them all, and not a timer longer.
    sleep(Duration::from_millis(60) + pace * 40).await;
    let stats = queue.stats();
    assert_eq!((stats.depth, stats.waiting, stats.running), (0, 0, 0));
    for (key, asked) in wanted {
        let begun = log.lock().unwrap().begun.get(&key).copied();
        assert!(begun >= Some(asked), "{key} did not run after it was added");
    }
    queue.shut_down();
    while let Some(ended) = tasks.join_next().await {
        assert!(ended.is_ok() || ended.is_err_and(|error| error.is_cancelled()));
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..KEYS).prop_map(Step::Add),
        4 => (0u8..KEYS, 0u64..50).prop_map(|(key, delay)| Step::AddAfter(key, delay)),
        1 => Just(Step::AddAll),
        2 => Just(Step::ReplaceWorker),
        3 => (0u64..20).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_added_key_runs_in_time_whoever_is_cancelled(
        steps in prop::collection::vec(step(), 1..80),
        workers in 1usize..5,
        pace in 0u64..10,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime can be started");
        runtime.block_on(play(steps, workers, Duration::from_millis(pace)));
    }
}
