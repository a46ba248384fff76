//! Remembers what was written, so that reads from the cache never show an older state.
//!
//! A write is remembered by the version that the server answered with; a read waits until the cache has reached it.
//! Versions of one resource are numbers that grow, as Kubernetes promises since 1.35; where a server's versions are not
//! numbers, nothing is remembered.
//!
//! The guard is pure: it decides whether a view of the cache is good enough, and somebody else waits.

use std::collections::BTreeMap;

use std::sync::atomic::{AtomicUsize, Ordering};

use kubewright_cache::Key;
use parking_lot::Mutex;

/// Above this many remembered writes of one resource, those that the cache has reached are swept out.
const SWEEP: usize = 1024;

/// What one manager wrote to one resource and may not have seen in its cache yet.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    pending: BTreeMap<Key, Written>,
    sweep_at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    /// The cache must have reached this version.
    version: u64,
    /// The object with this UID must be gone, or be seen going.
    deleted: Option<String>,
}

/// What the cache shows of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The version that the cache has reached as a whole.
    pub(crate) reached: u64,
    pub(crate) object: Option<Seen>,
}

/// An object in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) terminating: bool,
}

/// A guard that many share. Mostly it remembers nothing, and to see that takes no lock.
#[derive(Debug, Default)]
pub(crate) struct SharedGuard {
    guard: Mutex<Guard>,
    /// How many writes it remembers, or did a moment ago. Whoever wrote has stored it before it reads.
    remembered: AtomicUsize,
}

impl SharedGuard {
    /// Whether no read can show the past.
    pub(crate) fn is_empty(&self) -> bool {
        self.remembered.load(Ordering::Acquire) == 0
    }

    /// Works with the guard while nobody else does.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Guard) -> R) -> R {
        let mut guard = self.guard.lock();
        let outcome = work(&mut guard);
        self.remembered
            .store(guard.pending.len(), Ordering::Release);
        outcome
    }
}

impl Guard {
    /// An object was created or changed; the answer had this version.
    pub(crate) fn wrote(&mut self, key: &Key, version: &str) {
        let Ok(version) = version.parse() else {
            return;
        };
        let deleted = None;
        // Answers of two writes may come in the wrong order.
        let newer = |written: &&Written| written.version > version;
        if self.pending.get(key).as_ref().is_none_or(|w| !newer(w)) {
            self.pending
                .insert(key.clone(), Written { version, deleted });
        }
    }

    /// The deletion of an object was accepted. With a version it was marked and lives on for a while.
    pub(crate) fn deleted(&mut self, key: &Key, uid: &str, version: Option<&str>) {
        let marked = version.and_then(|v| v.parse().ok()).unwrap_or_default();
        let before = self.pending.get(key).map_or(0, |w| w.version);
        let written = Written {
            version: before.max(marked),
            deleted: Some(uid.to_owned()),
        };
        self.pending.insert(key.clone(), written);
    }

    /// Whether a read of this key would show the past. Forgets what the cache has caught up with.
    pub(crate) fn is_behind(&mut self, key: &Key, view: impl FnOnce() -> View) -> bool {
        let Some(written) = self.pending.get(key) else {
            return false;
        };
        if !written.is_seen_in(&view()) {
            return true;
        }
        self.pending.remove(key);
        false
    }

    /// The keys whose reads would show the past, of those that `concerns`. Forgets what the cache has caught up with.
    pub(crate) fn behind(
        &mut self,
        concerns: impl Fn(&Key) -> bool,
        view: impl Fn(&Key) -> View,
    ) -> Option<Key> {
        let mut behind = None;
        self.pending.retain(|key, written| {
            if !concerns(key) {
                return true;
            }
            let seen = written.is_seen_in(&view(key));
            if !seen && behind.is_none() {
                behind = Some(key.clone());
            }
            !seen
        });
        behind
    }

    /// Whether it is time to [sweep](Guard::behind), so that writes that nobody reads back do not pile up.
    pub(crate) fn is_full(&mut self) -> bool {
        let full = self.pending.len() > self.sweep_at.max(SWEEP);
        if full {
            // A cache that stands still must not make each write walk over all of them.
            self.sweep_at = self.pending.len() * 2;
        }
        full
    }
}

impl Written {
    fn is_seen_in(&self, view: &View) -> bool {
        let newest = view.object.as_ref().map_or(0, |object| object.version);
        let reached = view.reached.max(newest) >= self.version;
        let gone = match (&self.deleted, &view.object) {
            (Some(uid), Some(object)) => object.uid != *uid || object.terminating,
            _ => true,
        };
        reached && gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(reached: u64, object: Option<(&str, u64)>) -> View {
        View {
            reached,
            object: object.map(|(uid, version)| Seen {
                uid: uid.trim_end_matches('!').to_owned(),
                version,
                terminating: uid.ends_with('!'),
            }),
        }
    }

    fn check(write: impl Fn(&mut Guard, &Key), cases: &[(View, bool)]) {
        let key = Key::new("default", "a");
        for (view, behind) in cases {
            let mut guard = Guard::default();
            write(&mut guard, &key);
            assert_eq!(
                guard.is_behind(&key, || view.clone()),
                *behind,
                "{guard:?} {view:?}"
            );
            assert!(!guard.is_behind(&Key::new("default", "b"), || view.clone()));
        }
    }

    #[test]
    fn write_is_seen_once_the_cache_has_reached_its_version() {
        check(
            |guard, key| guard.wrote(key, "7"),
            &[
                (view(6, None), true),
                (view(6, Some(("u", 6))), true),
                (view(7, Some(("u", 7))), false),
                (view(9, None), false),
                (view(0, Some(("u", 8))), false),
            ],
        );
    }

    #[test]
    fn deletion_is_seen_when_the_object_is_gone_or_going() {
        check(
            |guard, key| guard.deleted(key, "u", None),
            &[
                (view(9, Some(("u", 6))), true),
                (view(9, Some(("u!", 7))), false),
                (view(9, Some(("other", 9))), false),
                (view(9, None), false),
            ],
        );
    }

    #[test]
    fn deletion_right_after_creation_needs_both_to_be_seen() {
        check(
            |guard, key| {
                guard.wrote(key, "7");
                guard.deleted(key, "u", None);
            },
            &[
                (view(6, None), true),
                (view(7, Some(("u", 7))), true),
                (view(8, None), false),
            ],
        );
    }

    #[test]
    fn late_answer_of_an_earlier_write_lowers_nothing() {
        check(
            |guard, key| {
                guard.wrote(key, "9");
                guard.wrote(key, "7");
            },
            &[(view(8, Some(("u", 8))), true), (view(9, None), false)],
        );
    }

    #[test]
    fn creation_after_a_deletion_replaces_it() {
        check(
            |guard, key| {
                guard.deleted(key, "u", None);
                guard.wrote(key, "9");
            },
            &[(view(9, Some(("v", 9))), false), (view(8, None), true)],
        );
    }

    #[test]
    fn versions_that_are_not_numbers_are_not_waited_for() {
        check(
            |guard, key| guard.wrote(key, "abc"),
            &[(view(0, None), false)],
        );
    }

    #[test]
    fn writes_that_nobody_reads_are_swept_out() {
        let mut guard = Guard::default();
        for number in 0..=SWEEP {
            guard.wrote(&Key::new("default", &number.to_string()), "5");
        }
        assert!(guard.is_full());
        assert_eq!(guard.behind(|_| true, |_| view(5, None)), None);
        assert!(guard.pending.is_empty());
        assert!(!guard.is_full());
    }
}
