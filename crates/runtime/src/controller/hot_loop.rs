//! Finds hot loops: reconciles that run without end because each one's own write triggers the next.

use std::sync::atomic::{AtomicUsize, Ordering};

use hashbrown::HashMap;
use kubewright_cache::Key;
use parking_lot::Mutex;

use crate::cause::Reasons;
use crate::client::Write;

/// So many runs in a row, each caused by nothing but the writes of the one before, are a loop.
const LOOP: u32 = 10;
/// Keys that are remembered; more are forgotten all at once, and their count starts afresh.
const MOST: usize = 10_000;

/// What the last run of each key wrote, and for how long it has been running because of that.
#[derive(Debug, Default)]
pub(crate) struct HotLoops {
    keys: Mutex<HashMap<Key, Chain>>,
    /// As many keys as there are, or were a moment ago: those who write nothing need no lock.
    known: AtomicUsize,
}

#[derive(Debug, Default)]
struct Chain {
    writes: Vec<(Key, String)>,
    length: u32,
}

impl HotLoops {
    /// Whether these causes are all writes of the key's own last run.
    pub(crate) fn is_own_doing(&self, key: &Key, causes: &Reasons) -> bool {
        if self.known.load(Ordering::Acquire) == 0 {
            return false;
        }
        let keys = self.keys.lock();
        let Some(chain) = keys.get(key) else {
            return false;
        };
        causes.are_all_of(|_, object, version| {
            let is_it = |write: &(Key, String)| write.0 == *object && write.1 == version;
            chain.writes.iter().any(is_it)
        })
    }

    /// Takes in what a run wrote. Gives the length of a loop each time that it has doubled.
    pub(crate) fn ran(&self, key: &Key, own_doing: bool, writes: &[Write]) -> Option<u32> {
        // The key's own entry is made by its own runs, which follow one another: nobody else can be about to make it.
        if writes.is_empty() && self.known.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut keys = self.keys.lock();
        if writes.is_empty() {
            keys.remove(key);
            self.known.store(keys.len(), Ordering::Release);
            return None;
        }
        if keys.len() >= MOST {
            keys.clear();
        }
        let chain = keys.entry(key.clone()).or_default();
        chain.length = if own_doing { chain.length + 1 } else { 0 };
        let versions = writes
            .iter()
            .filter(|write| !write.resource_version.is_empty());
        chain.writes = versions
            .map(|write| (write.key.clone(), write.resource_version.clone()))
            .collect();
        let length = chain.length;
        self.known.store(keys.len(), Ordering::Release);
        let doubled = length.is_multiple_of(LOOP) && (length / LOOP).is_power_of_two();
        doubled.then_some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(version: u32) -> Write {
        Write {
            verb: "patch",
            resource: "foos".into(),
            cluster: None,
            key: Key::new("n", "a"),
            resource_version: version.to_string(),
        }
    }

    fn run(runs: impl Iterator<Item = bool>) -> Vec<u32> {
        let (loops, key) = (HotLoops::default(), Key::new("n", "a"));
        let named = runs.enumerate().filter_map(|(number, own)| {
            let number = u32::try_from(number).expect("few runs");
            loops.ran(&key, own, &[write(number)])
        });
        named.collect()
    }

    #[test]
    fn loop_is_named_at_ten_and_whenever_it_has_doubled() {
        assert_eq!(run((0..100).map(|_| true)), [10, 20, 40, 80]);
    }

    #[test]
    fn run_with_another_cause_breaks_the_loop() {
        assert_eq!(run((0..100).map(|n| n % 9 != 0)), [0; 0]);
    }

    #[test]
    fn run_that_writes_nothing_ends_the_loop() {
        let (loops, key) = (HotLoops::default(), Key::new("n", "a"));
        for _ in 0..50 {
            for _ in 0..9 {
                assert_eq!(loops.ran(&key, true, &[write(1)]), None);
            }
            assert_eq!(loops.ran(&key, true, &[]), None);
        }
    }
}
