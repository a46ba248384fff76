//! The pods that wait for a node: the most important first, and those that found none after a pause.
//!
//! Pure: time comes in as an argument. A key is in exactly one of the three places or nowhere.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kubewright_cache::Key;

/// The first pause of a pod that found no node; it doubles up to the last one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(10);
/// A pod that nothing happened for is tried again after this.
const PATIENCE: Duration = Duration::from_secs(300);

/// Most pods that one piece of news puts in line at once, so that news for many does not become a storm.
const ROUSED: usize = 64;

/// Pods without a node.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// To be tried now: by priority, then by arrival.
    ready: BTreeSet<(Reverse<i32>, u64, Key)>,
    /// To be tried at a time.
    paused: BTreeSet<(Timestamp, u64, Key)>,
    pods: BTreeMap<Key, Waiting>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiting {
    priority: i32,
    generation: i64,
    arrival: u64,
    attempts: u32,
    last_attempt: Timestamp,
    place: Spot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    Ready,
    Paused(Timestamp),
    /// It is being tried.
    Out,
}

impl Queue {
    /// Takes up a pod, or that its spec changed: it is tried soon. One that waits and is still the same goes on waiting.
    pub(crate) fn add(&mut self, key: &Key, priority: i32, generation: i64) {
        let waits = |waiting: &Waiting| {
            waiting.generation == generation && matches!(waiting.place, Spot::Paused(_))
        };
        if self.pods.get(key).is_some_and(waits) {
            return;
        }
        self.arrivals += 1;
        let arrival = self.arrivals;
        let fresh = || Waiting {
            priority,
            generation,
            arrival,
            attempts: 0,
            last_attempt: Timestamp::UNIX_EPOCH,
            place: Spot::Out,
        };
        let waiting = self.pods.entry(key.clone()).or_insert_with(fresh);
        let (old, arrival) = (waiting.place, waiting.arrival);
        let old_priority = std::mem::replace(&mut waiting.priority, priority);
        waiting.place = Spot::Ready;
        waiting.generation = generation;
        self.leave(key, old, old_priority, arrival);
        self.ready.insert((Reverse(priority), arrival, key.clone()));
    }

    /// Forgets a pod.
    pub(crate) fn remove(&mut self, key: &Key) {
        if let Some(waiting) = self.pods.remove(key) {
            self.leave(key, waiting.place, waiting.priority, waiting.arrival);
        }
    }

    /// The next pod to try.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<Key> {
        self.wake(now);
        let (_, _, key) = self.ready.pop_first()?;
        if let Some(waiting) = self.pods.get_mut(&key) {
            waiting.place = Spot::Out;
            waiting.attempts = waiting.attempts.saturating_add(1);
            waiting.last_attempt = now;
        }
        Some(key)
    }

    /// The pod that was tried found no node, or could not be put there.
    pub(crate) fn failed(&mut self, key: &Key, now: Timestamp) {
        self.pause(key, now + PATIENCE);
    }

    /// The pod that was tried ran into trouble that passes by itself.
    pub(crate) fn failed_for_now(&mut self, key: &Key) {
        let Some(waiting) = self.pods.get(key) else {
            return;
        };
        self.pause(key, waiting.last_attempt + waiting.pause());
    }

    /// Something happened that may help: those who wait are tried again, each after its pause.
    pub(crate) fn stir(&mut self, now: Timestamp) {
        let all: Vec<Key> = self.paused.iter().map(|(_, _, key)| key.clone()).collect();
        self.stir_these(&all, now);
    }

    /// Something happened that may help these.
    pub(crate) fn stir_these<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a Key>,
        now: Timestamp,
    ) {
        for key in keys {
            let Some(waiting) = self.pods.get(key) else {
                continue;
            };
            let due = (waiting.last_attempt + waiting.pause()).max(now);
            if let Spot::Paused(at) = waiting.place
                && due < at
            {
                self.pause(key, due);
            }
        }
        self.wake(now);
    }

    /// Something happened that is likely to help: the first in line are tried at once, the others after their pause.
    /// kube-scheduler does the same when it has nothing else to do.
    pub(crate) fn rouse(&mut self, now: Timestamp) {
        let mut all: Vec<_> = self.paused.iter().map(|(_, _, key)| key.clone()).collect();
        let rank = |key: &Key| self.pods.get(key).map(|w| (Reverse(w.priority), w.arrival));
        all.sort_by_key(rank);
        self.rouse_these(&all, now);
    }

    /// Something happened that is likely to help these, of which the first go first.
    pub(crate) fn rouse_these(&mut self, keys: &[Key], now: Timestamp) {
        let (first, others) = keys.split_at(keys.len().min(ROUSED));
        for key in first {
            let place = self.pods.get(key).map(|waiting| waiting.place);
            if matches!(place, Some(Spot::Paused(_))) {
                self.pause(key, now);
            }
        }
        self.stir_these(others, now);
    }

    /// When to look again if nothing happens before.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.paused.first().map(|(at, _, _)| *at)
    }

    /// Whether a pod can be tried now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    fn pause(&mut self, key: &Key, until: Timestamp) {
        let Some(waiting) = self.pods.get_mut(key) else {
            return;
        };
        let old = std::mem::replace(&mut waiting.place, Spot::Paused(until));
        let (priority, arrival) = (waiting.priority, waiting.arrival);
        self.leave(key, old, priority, arrival);
        self.paused.insert((until, arrival, key.clone()));
    }

    fn wake(&mut self, now: Timestamp) {
        while let Some((at, _, _)) = self.paused.first()
            && *at <= now
        {
            let Some((_, arrival, key)) = self.paused.pop_first() else {
                return;
            };
            if let Some(waiting) = self.pods.get_mut(&key) {
                waiting.place = Spot::Ready;
                let place = (Reverse(waiting.priority), arrival, key);
                self.ready.insert(place);
            }
        }
    }

    fn leave(&mut self, key: &Key, place: Spot, priority: i32, arrival: u64) {
        match place {
            Spot::Ready => {
                self.ready
                    .remove(&(Reverse(priority), arrival, key.clone()));
            }
            Spot::Paused(until) => {
                self.paused.remove(&(until, arrival, key.clone()));
            }
            Spot::Out => {}
        }
    }
}

impl Waiting {
    fn pause(&self) -> Duration {
        let doublings = self.attempts.saturating_sub(1).min(8);
        (FIRST_PAUSE * 2u32.pow(doublings)).min(LAST_PAUSE)
    }
}
