//! Remembers what was written, so that reads from the cache never show an older state.
//!
//! A write is remembered by the version that the server answered with, until every informer that can have the object shows
//! it: a resource may have several, of two versions, whole and metadata, one for each namespace. A read waits for the
//! informer that it reads from. Versions of one resource are numbers that grow, as Kubernetes promises since 1.35; where a
//! server's versions are not numbers, nothing is remembered.
//!
//! Of a resource that nobody reads only the newest version is remembered, which an informer that starts later has to reach.
//!
//! The guard is pure: it decides whether a view of the cache is good enough, and somebody else waits.

use std::collections::BTreeMap;

use kubewright_cache::Key;

/// Above this many remembered writes of one resource, those that all informers have reached are swept out.
const SWEEP: usize = 1024;
/// No more writes of one resource than this are remembered one by one. An informer that is further behind has to reach the
/// newest of them before it is read again.
const MOST: usize = 16 * 1024;

/// An informer of the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InformerId(pub(crate) u64);

/// What it means that an informer does not show an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It has to have it, unless it is past the write and the object has gone since.
    Telling,
    /// It need not have it: its selectors choose others. It must not show an older state.
    Expected,
}

/// What one manager wrote to one resource and some informer may not have shown yet.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    informers: BTreeMap<InformerId, Backlog>,
    /// The newest version that was written.
    newest: u64,
}

/// What one informer may not have shown yet. Each has its own, so that an informer that is often read never walks over what
/// only another one has not been seen to show.
#[derive(Debug, Default)]
struct Backlog {
    /// The version that the informer has to reach before anything is read from it; 0 once it has.
    floor: u64,
    writes: BTreeMap<Key, Written>,
    sweep_at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    /// The informer must have reached this version.
    version: u64,
    /// The object with this UID must be gone, or be seen going.
    deleted: Option<String>,
    absence: Absence,
}

/// What an informer shows.
pub(crate) trait View {
    /// The version that the informer has reached as a whole.
    fn reached(&self) -> u64;

    fn object(&self, key: &Key) -> Option<Seen>;
}

/// An object in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) version: u64,
    pub(crate) terminating: bool,
}

impl Guard {
    /// Counts what is remembered. At zero, no read can show the past.
    pub(crate) fn remembered(&self) -> usize {
        let backlogs = self.informers.values();
        let counts = backlogs.map(|backlog| backlog.writes.len() + usize::from(backlog.floor > 0));
        counts.sum()
    }

    /// A new informer. What was written before it began is older than the first state that it may show.
    pub(crate) fn join(&mut self, id: InformerId) {
        let floor = self.newest;
        let backlog = Backlog {
            floor,
            ..Backlog::default()
        };
        self.informers.insert(id, backlog);
    }

    /// An informer has stopped: nobody reads from it any more.
    pub(crate) fn leave(&mut self, id: InformerId) {
        self.informers.remove(&id);
    }

    /// An object was created or changed; the answer had this version.
    pub(crate) fn wrote(&mut self, key: &Key, version: &str, unseen: &[(InformerId, Absence)]) {
        let Ok(version) = version.parse() else {
            return;
        };
        self.newest = self.newest.max(version);
        for (id, absence) in unseen {
            let Some(backlog) = self.informers.get_mut(id) else {
                continue;
            };
            // Answers of two writes may come in the wrong order.
            let is_newer = |written: &Written| written.version > version;
            if !backlog.writes.get(key).is_some_and(is_newer) {
                let written = Written {
                    version,
                    deleted: None,
                    absence: *absence,
                };
                backlog.writes.insert(key.clone(), written);
            }
        }
    }

    /// The deletion of an object was accepted. With a version it was marked and lives on for a while.
    pub(crate) fn deleted(
        &mut self,
        key: &Key,
        uid: &str,
        version: Option<&str>,
        unseen: &[(InformerId, Absence)],
    ) {
        let marked = version.and_then(|v| v.parse().ok()).unwrap_or_default();
        self.newest = self.newest.max(marked);
        for (id, absence) in unseen {
            let Some(backlog) = self.informers.get_mut(id) else {
                continue;
            };
            let before = backlog.writes.get(key);
            // Whoever has to show the object before it goes has to have seen that first.
            let was_telling = before.is_some_and(|written| written.absence == Absence::Telling);
            let written = Written {
                version: before.map_or(0, |written| written.version).max(marked),
                deleted: Some(uid.to_owned()),
                absence: if was_telling {
                    Absence::Telling
                } else {
                    *absence
                },
            };
            backlog.writes.insert(key.clone(), written);
        }
    }

    /// Whether a read of this key from this informer would show the past. Forgets what the informer has caught up with.
    pub(crate) fn is_behind(&mut self, id: InformerId, key: &Key, view: &impl View) -> bool {
        let Some(backlog) = self.informers.get_mut(&id) else {
            return false;
        };
        if backlog.floor == 0 && !backlog.writes.contains_key(key) {
            return false;
        }
        let reached = view.reached();
        if backlog.is_below_floor(reached) {
            return true;
        }
        let is_seen = |written: &mut Written| written.is_seen(reached, || view.object(key));
        let written = backlog.writes.get_mut(key);
        if written.is_none_or(is_seen) {
            backlog.writes.remove(key);
            return false;
        }
        true
    }

    /// Whether a list from this informer would show the past, of the keys that `concerns`. Forgets what the informer has
    /// caught up with.
    pub(crate) fn behind(
        &mut self,
        id: InformerId,
        concerns: impl Fn(&Key) -> bool,
        view: &impl View,
    ) -> Option<Behind> {
        let backlog = self.informers.get_mut(&id)?;
        let reached = view.reached();
        if backlog.is_below_floor(reached) {
            return Some(Behind::All);
        }
        backlog.forget(reached, view);
        let behind = backlog.writes.keys().find(|key| concerns(key));
        behind.cloned().map(Behind::Key)
    }

    /// Whether it is time to [sweep](Guard::sweep), so that writes that nobody reads back do not pile up.
    pub(crate) fn is_full(&self) -> bool {
        self.informers.values().any(Backlog::is_full)
    }

    /// Forgets what informers have caught up with. `view` gives nothing for one that has stopped.
    pub(crate) fn sweep<V: View>(&mut self, view: impl Fn(InformerId) -> Option<V>) {
        for (id, backlog) in &mut self.informers {
            if !backlog.is_full() {
                continue;
            }
            match view(*id) {
                Some(view) => backlog.forget(view.reached(), &view),
                None => backlog.writes.clear(),
            }
            if backlog.writes.len() > MOST {
                backlog.raise_floor();
            }
            // An informer that stands still must not make each write walk over all of them.
            backlog.sweep_at = backlog.writes.len() * 2;
        }
    }
}

/// What a list would show the past of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The informer has not reached what was written before it began, or so much that it is not remembered by key.
    All,
    Key(Key),
}

impl Backlog {
    fn is_full(&self) -> bool {
        self.writes.len() > self.sweep_at.max(SWEEP)
    }

    fn is_below_floor(&mut self, reached: u64) -> bool {
        if reached >= self.floor {
            self.floor = 0;
        }
        self.floor > 0
    }

    fn forget(&mut self, reached: u64, view: &impl View) {
        let is_unseen =
            |key: &Key, written: &mut Written| !written.is_seen(reached, || view.object(key));
        self.writes.retain(is_unseen);
    }

    /// Remembers one version instead of very many keys. A deletion without a version is no longer waited for.
    fn raise_floor(&mut self) {
        for written in std::mem::take(&mut self.writes).into_values() {
            self.floor = self.floor.max(written.version);
        }
    }
}

impl Written {
    /// Whether the informer shows the write or what came after it. The object is only looked at where that decides.
    fn is_seen(&self, reached: u64, object: impl FnOnce() -> Option<Seen>) -> bool {
        let is_reached = reached >= self.version;
        if is_reached && self.deleted.is_none() {
            return true;
        }
        let Some(object) = object() else {
            return is_reached || self.absence == Absence::Expected;
        };
        let is_gone = match &self.deleted {
            Some(uid) => object.uid != *uid || object.terminating,
            None => true,
        };
        is_gone && (is_reached || object.version >= self.version)
    }
}

#[cfg(test)]
mod tests;
