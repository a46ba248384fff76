//! Workers that take keys along: who gets which key, and when the queue hears of it. Time is paused.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{advance, sleep};

use super::*;
use crate::machine::Finish;
use crate::options::Add;
use crate::priority::Priority;

/// Enough keys for a worker to take some along.
const KEYS: u32 = 200;

fn full() -> Queue<u32> {
    let queue = Queue::new(Options::new().name("numbers"));
    (0..KEYS).for_each(|key| queue.add(key));
    queue
}

fn next(mut item: Item<u32>) -> Option<Item<u32>> {
    item.stop_watch();
    item.finish_then_next(Finish::Succeeded)
}

/// A worker that has had short runs until it took keys along, and what it ran so far.
fn hurried(queue: &Queue<u32>) -> (Item<u32>, Vec<u32>) {
    let mut item = queue.try_get().expect("there are keys");
    let mut ran = Vec::new();
    while !item.has_next() {
        ran.push(*item.key());
        item = next(item).expect("there are keys");
    }
    (item, ran)
}

fn rest(queue: &Queue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| queue.try_get().map(|item| *item.key())).collect()
}

#[tokio::test(start_paused = true)]
async fn hurried_worker_runs_every_key_once_and_in_order() {
    let queue = full();
    let mut ran = Vec::new();
    let mut item = queue.try_get();
    while let Some(held) = item {
        ran.push(*held.key());
        item = next(held);
    }
    assert_eq!(ran, (0..KEYS).collect::<Vec<_>>());
    let stats = queue.stats();
    assert_eq!((stats.running, stats.known), (0, 0));
    assert_eq!(stats.work_duration.count(), u64::from(KEYS));
    assert_eq!(stats.queue_duration.count(), u64::from(KEYS));
}

#[tokio::test(start_paused = true)]
async fn keys_in_hand_are_nobody_elses() {
    let queue = full();
    let (item, ran) = hurried(&queue);
    let mine = *item.key();
    let theirs = rest(&queue);
    assert_eq!(mine, ran.len() as u32);
    assert!(theirs.first().is_some_and(|first| *first > mine + 1));
    assert_eq!(theirs.last(), Some(&(KEYS - 1)));
}

#[tokio::test(start_paused = true)]
async fn worker_with_keys_in_hand_counts_as_one() {
    let queue = full();
    let (item, _) = hurried(&queue);
    assert_eq!(queue.stats().running, 1);
    let item = next(item).expect("one is at hand");
    assert_eq!(queue.stats().running, 1);
    drop(item);
    assert_eq!(queue.stats().running, 0);
}

#[tokio::test(start_paused = true)]
async fn run_that_waits_puts_the_other_keys_back_in_their_places() {
    let queue = full();
    let (mut item, ran) = hurried(&queue);
    let mine = ran.len() as u32;
    let others = async {
        assert!(queue.is_empty() || queue.len() < (KEYS - mine) as usize);
        sleep(Duration::from_millis(1)).await;
        rest(&queue)
    };
    let theirs = item.during(others).await;
    assert_eq!(theirs, (mine + 1..KEYS).collect::<Vec<_>>());
    assert!(!item.has_next());
}

#[tokio::test(start_paused = true)]
async fn run_that_took_its_time_is_the_last_of_its_hand() {
    let queue = full();
    let (item, ran) = hurried(&queue);
    advance(Duration::from_millis(1)).await;
    let item = next(item).expect("there are keys");
    assert!(!item.has_next());
    assert_eq!(*item.key(), ran.len() as u32 + 1);
}

#[tokio::test(start_paused = true)]
async fn worker_that_is_cancelled_gives_back_all_it_has() {
    let queue = full();
    let (item, ran) = hurried(&queue);
    let (mine, item) = (*item.key(), next(item));
    drop(item);
    assert_eq!(queue.len(), KEYS as usize - ran.len() - 2);
    assert_eq!(rest(&queue).first(), Some(&(mine + 2)));
    let stats = queue.stats();
    assert_eq!((stats.running, stats.known), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn keys_that_go_back_wake_workers_that_sleep() {
    let queue = full();
    let (mut item, _) = hurried(&queue);
    let theirs = rest(&queue);
    let sleeper = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item.key()) }
    });
    tokio::task::yield_now().await;
    assert!(!theirs.is_empty() && !sleeper.is_finished());
    let woken = item.during(sleeper).await.expect("it does not panic");
    assert_eq!(woken, Some(*item.key() + 1));
}

#[tokio::test(start_paused = true)]
async fn key_added_while_in_hand_runs_again_unless_it_goes_back() {
    for (goes_back, expected) in [(true, 1), (false, 2)] {
        let queue = full();
        let (item, _) = hurried(&queue);
        let ahead = *item.key() + 1;
        queue.add(ahead);
        let mut runs = 0;
        let mut item = match goes_back {
            true => {
                drop(item);
                queue.try_get()
            }
            false => next(item),
        };
        while let Some(held) = item {
            runs += usize::from(*held.key() == ahead);
            item = next(held);
        }
        assert_eq!(runs, expected);
        assert_eq!(queue.stats().known, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_goes_back_is_as_urgent_as_it_was_made() {
    for (again, first) in [(Priority(5), true), (Priority::LOW, false)] {
        let queue = full();
        let (item, _) = hurried(&queue);
        let ahead = *item.key() + 2;
        queue.add_with(ahead, Add::now().priority(again));
        drop(item);
        let order = rest(&queue);
        let place = order.iter().position(|key| *key == ahead);
        assert_eq!(place, Some(if first { 0 } else { 1 }), "{again:?}");
        let stats = queue.stats();
        assert_eq!((stats.depth, stats.known), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn queue_that_does_not_measure_gives_keys_one_by_one() {
    let queue = Queue::default();
    (0..KEYS).for_each(|key| queue.add(key));
    let mut item = queue.try_get();
    while let Some(held) = item {
        assert!(!held.has_next());
        item = next(held);
    }
}

#[tokio::test(start_paused = true)]
async fn drain_hears_of_runs_that_are_over() {
    let queue = full();
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shut_down_with_drain().await }
    });
    tokio::task::yield_now().await;
    let mut item = queue.try_get();
    while let Some(held) = item {
        item = next(held);
    }
    assert_eq!(drain.await.ok(), Some(Drain::Finished));
}

/// How often each key is added while workers race for them.
const LAPS: u32 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_workers_run_every_add_and_no_key_twice_at_once() {
    let queue: Queue<u32> = Queue::new(Options::new().name("numbers"));
    let laps: Arc<Vec<Lap>> = Arc::new((0..KEYS).map(|_| Lap::default()).collect());
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let (queue, laps) = (queue.clone(), laps.clone());
        workers.spawn(async move {
            while let Some(mut item) = queue.get().await {
                loop {
                    laps[*item.key() as usize].run();
                    if item.key().is_multiple_of(16) {
                        item.during(tokio::task::yield_now()).await;
                    }
                    laps[*item.key() as usize].running.store(0, SeqCst);
                    item.stop_watch();
                    match item.finish_then_next(Finish::Succeeded) {
                        Some(next) => item = next,
                        None => break,
                    }
                }
            }
        });
    }
    for lap in 1..=LAPS {
        for key in 0..KEYS {
            laps[key as usize].added.store(lap, SeqCst);
            queue.add(key);
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(queue.shut_down_with_drain().await, Drain::Finished);
    workers.join_all().await;
    // The run that follows the last add sees it.
    assert!(laps.iter().all(|lap| lap.seen.load(SeqCst) == LAPS));
    assert_eq!(queue.stats().known, 0);
}

#[derive(Default)]
struct Lap {
    added: AtomicU32,
    seen: AtomicU32,
    running: AtomicU32,
}

impl Lap {
    fn run(&self) {
        assert_eq!(self.running.swap(1, SeqCst), 0, "it runs twice at once");
        self.seen.store(self.added.load(SeqCst), SeqCst);
    }
}
