//! The shell: who wakes when. Time is paused, so a wait that should not be there would show as time that passed.

use crate::limit::limit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;
use crate::limiter::ExponentialBackoff;
use crate::machine::Finish;
use crate::options::Add;
use crate::priority::Priority;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn queue() -> Queue<&'static str> {
    Queue::default()
}

/// Lets every other task run until it waits.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// Workers that put what they get into a list, each key held for `work`.
fn workers(queue: &Queue<&'static str>, count: usize, work: Duration) -> Workers {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        let (queue, taken) = (queue.clone(), taken.clone());
        tasks.spawn(async move {
            while let Some(item) = limit(queue.get()).await {
                taken.lock().unwrap().push(*item.key());
                if !work.is_zero() {
                    sleep(work).await;
                }
            }
        });
    }
    Workers { taken, tasks }
}

struct Workers {
    taken: Arc<Mutex<Vec<&'static str>>>,
    tasks: JoinSet<()>,
}

impl Workers {
    fn taken(&self) -> Vec<&'static str> {
        self.taken.lock().unwrap().clone()
    }

    async fn finish(self) -> Vec<&'static str> {
        limit(self.tasks.join_all()).await;
        self.taken.lock().unwrap().clone()
    }
}

#[limited::test(start_paused = true)]
async fn many_producers_and_workers_run_every_key_and_none_twice_at_once() {
    let queue: Queue<u32> = Queue::default();
    let running = Arc::new(Mutex::new(std::collections::HashSet::new()));
    let runs = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..10 {
        let (queue, running, runs) = (queue.clone(), running.clone(), runs.clone());
        workers.spawn(async move {
            while let Some(item) = limit(queue.get()).await {
                assert!(running.lock().unwrap().insert(*item.key()));
                sleep(ms(3)).await;
                running.lock().unwrap().remove(item.key());
                runs.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut producers = JoinSet::new();
    for producer in 0..50 {
        let queue = queue.clone();
        producers.spawn(async move {
            for round in 0..50 {
                queue.add((producer + round) % 50);
                sleep(ms(1)).await;
            }
        });
    }
    limit(producers.join_all()).await;
    assert_eq!(limit(queue.shut_down_with_drain()).await, Drain::Finished);
    limit(workers.join_all()).await;
    assert!(runs.load(Ordering::Relaxed) >= 50);
    assert_eq!((queue.len(), queue.stats().known), (0, 0));
}

#[limited::test(start_paused = true)]
async fn add_wakes_a_worker_that_waits() {
    let queue = queue();
    let workers = workers(&queue, 1, Duration::ZERO);
    settle().await;
    queue.add("a");
    settle().await;
    assert_eq!(workers.taken(), ["a"]);
}

/// Two adds in one go while two workers are about to sleep: a notification that is kept once would wake one of them.
#[limited::test(start_paused = true)]
async fn no_wake_up_is_lost_when_keys_outnumber_stored_notifications() {
    for adds in 1..=8 {
        let queue: Queue<usize> = Queue::default();
        let barrier = Arc::new(tokio::sync::Barrier::new(adds + 1));
        let mut waiting = JoinSet::new();
        for _ in 0..adds {
            let (queue, barrier) = (queue.clone(), barrier.clone());
            waiting.spawn(async move {
                let item = limit(queue.get()).await.expect("a key comes");
                // Nobody gives its key back before everybody has one.
                limit(barrier.wait()).await;
                *item.key()
            });
        }
        settle().await;
        (0..adds).for_each(|key| queue.add(key));
        timeout(ms(1), barrier.wait())
            .await
            .expect("every worker wakes");
        let mut keys = limit(waiting.join_all()).await;
        keys.sort();
        assert_eq!(keys, Vec::from_iter(0..adds));
    }
}

/// Rounds of racing threads.
const ROUNDS: u32 = 2000;

#[limited::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    let queue: Queue<u32> = Queue::default();
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    for round in 0..ROUNDS {
        let mut workers = JoinSet::new();
        for _ in 0..2 {
            let (queue, barrier) = (queue.clone(), barrier.clone());
            workers.spawn(async move {
                limit(barrier.wait()).await;
                limit(queue.get()).await.map(|item| *item.key())
            });
        }
        limit(barrier.wait()).await;
        for _ in 0..(round % 64) * 4 {
            std::hint::spin_loop();
        }
        (0..2).for_each(|key| queue.add(2 * round + key));
        // If one slept on, this would never end.
        let keys = limit(workers.join_all()).await;
        assert_eq!(keys.into_iter().flatten().count(), 2);
    }
}

#[limited::test(start_paused = true)]
async fn cancelled_worker_passes_its_wake_up_on() {
    let queue = queue();
    let first = tokio::spawn({
        let queue = queue.clone();
        async move { drop(limit(queue.get()).await) }
    });
    settle().await;
    let second = workers(&queue, 1, Duration::ZERO);
    settle().await;
    queue.add("a");
    // The first worker has been chosen but has not run yet.
    first.abort();
    settle().await;
    assert_eq!(second.taken(), ["a"]);
}

#[limited::test(start_paused = true)]
async fn ready_key_does_not_wait_for_a_timer() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("later", ms(100));
    queue.add_after("now", Duration::ZERO);
    assert_eq!(
        limit(queue.get()).await.map(|item| *item.key()),
        Some("now")
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
    advance(ms(100)).await;
    let start = Instant::now();
    assert_eq!(
        limit(queue.get()).await.map(|item| *item.key()),
        Some("later")
    );
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[limited::test(start_paused = true)]
async fn delayed_key_wakes_a_worker_when_due() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", ms(50));
    assert_eq!(queue.len(), 0);
    assert_eq!(limit(queue.get()).await.map(|item| *item.key()), Some("a"));
    assert_eq!(start.elapsed(), ms(50));
}

#[limited::test(start_paused = true)]
async fn delay_set_while_all_workers_sleep_wakes_one() {
    let queue = queue();
    let workers = workers(&queue, 3, Duration::ZERO);
    settle().await;
    queue.add_after("a", ms(50));
    sleep(ms(51)).await;
    assert_eq!(workers.taken(), ["a"]);
}

#[limited::test(start_paused = true)]
async fn earlier_delay_moves_the_alarm_forward() {
    let queue = queue();
    let workers = workers(&queue, 2, Duration::ZERO);
    queue.add_after("first", ms(1000));
    settle().await;
    queue.add_after("second", ms(50));
    sleep(ms(60)).await;
    assert_eq!(workers.taken(), ["second"]);
    queue.add_after("third", ms(2000));
    sleep(ms(1000)).await;
    assert_eq!(workers.taken(), ["second", "first"]);
    sleep(ms(2000)).await;
    assert_eq!(workers.taken(), ["second", "first", "third"]);
}

#[limited::test(start_paused = true)]
async fn worker_that_leaves_passes_the_timer_on() {
    let queue = queue();
    queue.add_after("first", ms(10));
    queue.add_after("second", ms(20));
    // The one that takes the first key holds it far beyond the second alarm.
    let workers = workers(&queue, 2, ms(1000));
    sleep(ms(21)).await;
    assert_eq!(workers.taken(), ["first", "second"]);
}

#[limited::test(start_paused = true)]
async fn cancelled_worker_passes_the_timer_on() {
    let queue = queue();
    queue.add_after("a", ms(10));
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { drop(limit(queue.get()).await) }
    });
    settle().await;
    let workers = workers(&queue, 1, Duration::ZERO);
    settle().await;
    waiting.abort();
    sleep(ms(11)).await;
    assert_eq!(workers.taken(), ["a"]);
}

/// A worker that waits for the timer is woken for a key and cancelled: one worker takes the key, and another one the timer.
#[limited::test(start_paused = true)]
async fn cancelled_worker_passes_both_its_wake_up_and_the_timer_on() {
    let queue = queue();
    queue.add_after("later", ms(20));
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { drop(limit(queue.get()).await) }
    });
    settle().await;
    let workers = workers(&queue, 2, ms(1000));
    settle().await;
    queue.add("now");
    waiting.abort();
    sleep(ms(21)).await;
    assert_eq!(workers.taken(), ["now", "later"]);
}

#[limited::test(start_paused = true)]
async fn keys_due_together_wake_several_workers() {
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.add_after(key, ms(10));
    }
    let workers = workers(&queue, 3, ms(1000));
    sleep(ms(11)).await;
    assert_eq!(workers.taken(), ["a", "b", "c"]);
}

/// The worker that rings two alarms at once leaves with one key and wakes another worker for the other key. A third
/// worker must still wait for the next alarm.
#[limited::test(start_paused = true)]
async fn keys_due_together_leave_a_worker_for_the_next_alarm() {
    let queue = queue();
    for (key, delay) in [("x", 10), ("y", 10), ("z", 20)] {
        queue.add_after(key, ms(delay));
    }
    let workers = workers(&queue, 3, ms(1000));
    sleep(ms(21)).await;
    assert_eq!(workers.taken(), ["x", "y", "z"]);
}

#[limited::test(start_paused = true)]
async fn endless_delay_neither_panics_nor_runs() {
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    let year = Duration::from_secs(365 * 24 * 3600);
    assert!(timeout(year, queue.get()).await.is_err());
    queue.shut_down();
    assert!(limit(queue.get()).await.is_none());
}

#[limited::test(start_paused = true)]
async fn rate_limited_key_waits_for_the_limiter() {
    let limiter = ExponentialBackoff::new(ms(10), ms(1000));
    let queue = Queue::new(Options::new().limiter(limiter));
    for (requeues, wait) in [(1, 10), (2, 20), (3, 40)] {
        let start = Instant::now();
        queue.add_rate_limited("a");
        let item = limit(queue.get()).await.expect("the key comes");
        assert_eq!((item.requeues(), start.elapsed()), (requeues, ms(wait)));
    }
    queue.forget(&"a");
    assert_eq!(queue.requeues(&"a"), 0);
}

#[limited::test(start_paused = true)]
async fn item_says_how_its_run_ended() {
    let limiter = ExponentialBackoff::new(ms(10), ms(1000));
    let queue = Queue::new(Options::new().limiter(limiter));
    let start = Instant::now();
    queue.add("a");
    limit(queue.get()).await.expect("the key comes").retry();
    let item = limit(queue.get()).await.expect("the key comes back");
    assert_eq!((item.requeues(), start.elapsed()), (1, ms(10)));
    item.run_again_after(ms(500));
    assert_eq!(queue.requeues(&"a"), 0);
    let item = limit(queue.get()).await.expect("the key comes back");
    assert_eq!(start.elapsed(), ms(510));
    item.done();
    assert_eq!(queue.stats().known, 0);
}

#[limited::test(start_paused = true)]
async fn worker_that_panics_gives_its_key_back() {
    let queue = queue();
    queue.add("a");
    let worker = tokio::spawn({
        let queue = queue.clone();
        async move {
            let item = limit(queue.get()).await;
            queue.add("a");
            assert!(item.is_none(), "the worker breaks while it holds a key");
        }
    });
    assert!(limit(worker).await.is_err());
    assert_eq!(limit(queue.get()).await.map(|item| *item.key()), Some("a"));
    assert_eq!(queue.stats().running, 0);
}

#[limited::test(start_paused = true)]
async fn shutdown_wakes_every_worker() {
    let queue = queue();
    queue.add_after("dropped", ms(10));
    let workers = workers(&queue, 4, Duration::ZERO);
    settle().await;
    assert!(!queue.is_shutting_down());
    queue.shut_down();
    assert!(queue.is_shutting_down());
    queue.add("late");
    assert_eq!(limit(workers.finish()).await, [] as [&str; 0]);
}

#[limited::test(start_paused = true)]
async fn shutdown_does_not_wait_for_running_keys() {
    let queue = queue();
    queue.add("a");
    let item = limit(queue.get()).await;
    queue.shut_down();
    assert!(limit(queue.get()).await.is_none());
    drop(item);
}

#[limited::test(start_paused = true)]
async fn drain_waits_until_every_key_is_done() {
    let queue = queue();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let workers = workers(&queue, 1, ms(10));
    settle().await;
    queue.add("a");
    let start = Instant::now();
    assert_eq!(limit(queue.shut_down_with_drain()).await, Drain::Finished);
    assert_eq!(start.elapsed(), ms(40));
    assert_eq!(limit(workers.finish()).await, ["a", "b", "c", "a"]);
}

#[limited::test(start_paused = true)]
async fn drain_of_an_idle_queue_ends_at_once() {
    let queue = queue();
    queue.add_after("dropped", ms(10));
    let start = Instant::now();
    assert_eq!(limit(queue.shut_down_with_drain()).await, Drain::Finished);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[limited::test(start_paused = true)]
async fn drain_is_cut_short_by_shutdown() {
    let queue = queue();
    queue.add("stuck");
    let item = limit(queue.get()).await;
    let mut drains = JoinSet::new();
    for _ in 0..2 {
        let queue = queue.clone();
        drains.spawn(async move { limit(queue.shut_down_with_drain()).await });
    }
    settle().await;
    queue.shut_down();
    assert_eq!(limit(drains.join_all()).await, [Drain::CutShort; 2]);
    drop(item);
}

#[limited::test(start_paused = true)]
async fn add_all_is_the_same_as_adding_one_by_one() {
    let queue: Queue<u32> = Queue::default();
    queue.add(7);
    let low = Add::now().priority(Priority::LOW);
    queue.add_all((0..1000).chain(0..1000), low);
    assert_eq!(queue.len(), 1000);
    let first = limit(queue.get()).await.expect("a key is ready");
    assert_eq!((*first.key(), first.priority()), (7, Priority::NORMAL));
    let second = limit(queue.get()).await.expect("a key is ready");
    assert_eq!((*second.key(), second.priority()), (0, Priority::LOW));
}

#[limited::test(start_paused = true)]
async fn worker_that_always_finds_a_key_lets_others_run() {
    let queue: Queue<u32> = Queue::default();
    queue.add(0);
    let busy = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(item) = limit(queue.get()).await {
                queue.add(*item.key());
            }
        }
    });
    settle().await;
    // On one thread this line is only reached if the busy worker yields.
    queue.shut_down();
    limit(busy).await.expect("the worker ends");
}

/// A clock that moves only by hand.
#[derive(Clone, Default)]
struct HandClock {
    milliseconds: Arc<AtomicUsize>,
    moved: Arc<Notify>,
}

impl Clock for HandClock {
    fn now(&self) -> Duration {
        ms(self.milliseconds.load(Ordering::SeqCst) as u64)
    }

    fn sleep_until(
        &self,
        _deadline: Duration,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.moved.notified())
    }
}

#[limited::test]
async fn time_comes_from_the_given_clock() {
    let clock = HandClock::default();
    let queue = Queue::new(Options::new().clock(clock.clone()));
    queue.add_after("a", ms(3_600_000));
    let workers = workers(&queue, 1, Duration::ZERO);
    settle().await;
    assert_eq!(workers.taken(), [] as [&str; 0]);
    clock.milliseconds.store(3_600_000, Ordering::SeqCst);
    clock.moved.notify_one();
    settle().await;
    assert_eq!(workers.taken(), ["a"]);
    queue.shut_down();
    limit(workers.finish()).await;
}

/// With nothing left to wait for, a worker that did not sleep would spin here for ever.
#[limited::test]
async fn worker_with_the_timer_sleeps_when_another_took_the_last_delayed_key() {
    let clock = HandClock::default();
    let queue = Queue::new(Options::new().clock(clock.clone()));
    queue.add_after("a", ms(10));
    let waiting = workers(&queue, 1, Duration::ZERO);
    settle().await;
    clock.milliseconds.store(10, Ordering::SeqCst);
    assert_eq!(queue.try_get().map(|item| *item.key()), Some("a"));
    clock.moved.notify_one();
    settle().await;
    assert_eq!(waiting.taken(), [] as [&str; 0]);
    queue.add_after("b", ms(10));
    clock.milliseconds.store(20, Ordering::SeqCst);
    clock.moved.notify_one();
    settle().await;
    assert_eq!(waiting.taken(), ["b"]);
}

#[limited::test(start_paused = true)]
async fn worker_ends_a_run_and_takes_the_next_at_once() {
    let queue = Queue::new(Options::new().name("words"));
    queue.add("a");
    queue.add("b");
    let mut item = queue.try_get().expect("a is ready");
    queue.add("a");
    advance(ms(30)).await;
    assert_eq!(item.stop_watch(), ms(30));
    let item = item.finish_then_next(Finish::Succeeded);
    let item = item.expect("b is ready");
    assert_eq!(*item.key(), "b");
    let item = item.finish_then_next(Finish::Failed);
    let item = item.expect("a was added again");
    assert_eq!((*item.key(), queue.requeues(&"b")), ("a", 1));
    assert!(item.finish_then_next(Finish::Succeeded).is_none());
    let stats = queue.stats();
    assert_eq!((stats.running, stats.waiting), (0, 1));
    assert_eq!(stats.work_duration.sum(), ms(30));
}

#[limited::test(start_paused = true)]
async fn drained_queue_gives_nothing_in_exchange() {
    let queue = queue();
    queue.add("a");
    let item = queue.try_get().expect("a is ready");
    queue.shut_down();
    assert!(item.finish_then_next(Finish::Failed).is_none());
    assert_eq!(queue.stats().running, 0);
}
