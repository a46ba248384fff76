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
    pending: BTreeMap<Key, Written>,
    /// Each informer, with the version that it has to reach before anything is read from it; 0 once it has.
    floors: BTreeMap<InformerId, u64>,
    /// The newest version that was written.
    newest: u64,
    sweep_at: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    /// An informer must have reached this version.
    version: u64,
    /// The object with this UID must be gone, or be seen going.
    deleted: Option<String>,
    /// The informers that have not been seen to show it; never empty.
    unseen: Vec<(InformerId, Absence)>,
}

/// What an informer shows of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The version that the informer has reached as a whole.
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

impl Guard {
    /// Counts what is remembered. At zero, no read can show the past.
    pub(crate) fn remembered(&self) -> usize {
        let floors = self.floors.values().filter(|floor| **floor > 0);
        self.pending.len() + floors.count()
    }

    /// A new informer. What was written before it began is older than the first state that it may show.
    pub(crate) fn join(&mut self, id: InformerId) {
        self.floors.insert(id, self.newest);
    }

    /// An informer has stopped: nobody reads from it any more.
    pub(crate) fn leave(&mut self, id: InformerId) {
        self.floors.remove(&id);
        self.pending.retain(|_, written| {
            written.unseen.retain(|(other, _)| *other != id);
            !written.unseen.is_empty()
        });
    }

    /// An object was created or changed; the answer had this version.
    pub(crate) fn wrote(&mut self, key: &Key, version: &str, unseen: Vec<(InformerId, Absence)>) {
        let Ok(version) = version.parse() else {
            return;
        };
        self.newest = self.newest.max(version);
        // Answers of two writes may come in the wrong order.
        let is_newer = |written: &Written| written.version > version;
        if !unseen.is_empty() && !self.pending.get(key).is_some_and(is_newer) {
            let deleted = None;
            let written = Written {
                version,
                deleted,
                unseen,
            };
            self.pending.insert(key.clone(), written);
        }
    }

    /// The deletion of an object was accepted. With a version it was marked and lives on for a while.
    pub(crate) fn deleted(
        &mut self,
        key: &Key,
        uid: &str,
        version: Option<&str>,
        mut unseen: Vec<(InformerId, Absence)>,
    ) {
        let marked = version.and_then(|v| v.parse().ok()).unwrap_or_default();
        self.newest = self.newest.max(marked);
        let before = self.pending.get(key);
        for (id, absence) in &mut unseen {
            // Whoever has to show the object before it goes has to have seen that first.
            let mut earlier = before.iter().flat_map(|written| &written.unseen);
            if earlier.any(|earlier| *earlier == (*id, Absence::Telling)) {
                *absence = Absence::Telling;
            }
        }
        let written = Written {
            version: before.map_or(0, |w| w.version).max(marked),
            deleted: Some(uid.to_owned()),
            unseen,
        };
        if !written.unseen.is_empty() {
            self.pending.insert(key.clone(), written);
        }
    }

    /// Whether a read of this key from this informer would show the past. Forgets what the informer has caught up with.
    pub(crate) fn is_behind(
        &mut self,
        id: InformerId,
        key: &Key,
        view: impl FnOnce() -> View,
    ) -> bool {
        let floor = self.floors.get(&id).copied().unwrap_or_default();
        if floor == 0 && !self.pending.contains_key(key) {
            return false;
        }
        let view = view();
        if view.reached < floor {
            return true;
        }
        self.floors.entry(id).and_modify(|floor| *floor = 0);
        let Some(written) = self.pending.get_mut(key) else {
            return false;
        };
        let is_behind = written.look(id, &view);
        if written.unseen.is_empty() {
            self.pending.remove(key);
        }
        is_behind
    }

    /// A key whose read from this informer would show the past, of those that `concerns`. Forgets what the informer has
    /// caught up with.
    pub(crate) fn behind(
        &mut self,
        id: InformerId,
        concerns: impl Fn(&Key) -> bool,
        view: impl Fn(&Key) -> View,
    ) -> Option<Key> {
        let mut behind = None;
        self.pending.retain(|key, written| {
            if concerns(key) && written.look(id, &view(key)) && behind.is_none() {
                behind = Some(key.clone());
            }
            !written.unseen.is_empty()
        });
        behind
    }

    /// Whether an informer has still to reach what was written before it began.
    pub(crate) fn is_below_floor(&mut self, id: InformerId, reached: u64) -> bool {
        let Some(floor) = self.floors.get_mut(&id) else {
            return false;
        };
        if reached >= *floor {
            *floor = 0;
        }
        *floor > 0
    }

    /// Whether it is time to [sweep](Guard::sweep), so that writes that nobody reads back do not pile up.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() > self.sweep_at.max(SWEEP)
    }

    /// Forgets what informers have caught up with. `view` gives nothing for one that has stopped.
    pub(crate) fn sweep(&mut self, view: impl Fn(InformerId, &Key) -> Option<View>) {
        self.pending.retain(|key, written| {
            let unseen = std::mem::take(&mut written.unseen);
            for (id, absence) in unseen {
                if let Some(view) = view(id, key)
                    && !written.is_seen_in(&view, absence)
                {
                    written.unseen.push((id, absence));
                }
            }
            !written.unseen.is_empty()
        });
        if self.pending.len() > MOST {
            self.raise_floors();
        }
        // Informers that stand still must not make each write walk over all of them.
        self.sweep_at = self.pending.len() * 2;
    }

    /// Remembers one version instead of very many keys. A deletion without a version is no longer waited for.
    fn raise_floors(&mut self) {
        for (_, written) in std::mem::take(&mut self.pending) {
            for (id, _) in written.unseen {
                let floor = self.floors.entry(id);
                floor.and_modify(|floor| *floor = written.version.max(*floor));
            }
        }
    }
}

impl Written {
    /// Whether an informer is behind this write. Notes it if it is not.
    fn look(&mut self, id: InformerId, view: &View) -> bool {
        let Some(at) = self.unseen.iter().position(|(other, _)| *other == id) else {
            return false;
        };
        let is_seen = self.is_seen_in(view, self.unseen[at].1);
        if is_seen {
            self.unseen.swap_remove(at);
        }
        !is_seen
    }

    fn is_seen_in(&self, view: &View, absence: Absence) -> bool {
        let Some(object) = &view.object else {
            return absence == Absence::Expected || view.reached >= self.version;
        };
        let is_gone = match &self.deleted {
            Some(uid) => object.uid != *uid || object.terminating,
            None => true,
        };
        view.reached.max(object.version) >= self.version && is_gone
    }
}

#[cfg(test)]
mod tests;
