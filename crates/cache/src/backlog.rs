//! The events that one handler has not received yet.
//!
//! Up to a capacity every change is kept, in order. What comes on top is merged by key: a slow handler skips states in
//! between, never the last one, and its backlog is bounded by the number of objects. The order of changes of one
//! key is kept always. The initial state and resyncs are walks over a snapshot, which cost nothing while they wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hashbrown::HashMap;

use crate::Key;
use crate::event::Change;
use crate::object::Object;
use crate::table::Blocks;

/// What a handler gets next.
#[derive(Debug)]
pub(crate) enum Next {
    Change(Change),
    /// Everything that was there when the handler began to listen has been delivered.
    Synced,
}

/// The backlog of one handler. `merged` is used only when `queue` is full, and is delivered after it: while there is
/// anything in it, everything new goes there.
#[derive(Debug)]
pub(crate) struct Backlog {
    queue: VecDeque<Item>,
    merged: Merged,
    capacity: usize,
}

#[derive(Debug)]
enum Item {
    Change(Change),
    Walk(Walk),
    Synced,
}

/// The objects of a snapshot, as far as they are not delivered yet.
#[derive(Debug)]
struct Walk {
    blocks: Blocks,
    at: usize,
    /// How many objects are not delivered yet.
    left: usize,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Purpose {
    Initial,
    Resync,
}

/// Changes merged by key, in the order of the first change of each. Each key in `places` is at that place in `entries`.
#[derive(Debug, Default)]
struct Merged {
    entries: BTreeMap<u64, Entry>,
    places: HashMap<Key, u64>,
    next: u64,
}

#[derive(Debug)]
enum Entry {
    Object(Pending),
    Synced,
}

/// What became of one object since the handler's last event about it.
#[derive(Debug)]
struct Pending {
    /// What the handler knows.
    seen: Option<Arc<Object>>,
    /// The deletion of what it knows, if that happened.
    deleted: Option<(Arc<Object>, bool)>,
    /// What is there now, and whether it was from the beginning.
    now: Option<(Arc<Object>, bool)>,
}

impl Backlog {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            merged: Merged::default(),
            capacity: capacity.max(1),
        }
    }

    pub(crate) fn push(&mut self, change: Change) {
        if self.merged.entries.is_empty() && self.queue.len() < self.capacity {
            self.queue.push_back(Item::Change(change));
        } else {
            self.merged.push(change);
        }
    }

    /// Everything in the snapshot, before anything else that comes from now on.
    pub(crate) fn push_initial(&mut self, blocks: Blocks) {
        self.walk(blocks, Purpose::Initial);
    }

    /// Everything in the snapshot once more, unless the handler is far behind or at it already.
    pub(crate) fn push_resync(&mut self, blocks: Blocks) {
        let resyncs =
            |item: &Item| matches!(item, Item::Walk(walk) if walk.purpose == Purpose::Resync);
        if self.merged.entries.is_empty() && !self.queue.iter().any(resyncs) {
            self.walk(blocks, Purpose::Resync);
        }
    }

    pub(crate) fn push_synced(&mut self) {
        if self.merged.entries.is_empty() {
            self.queue.push_back(Item::Synced);
        } else {
            self.merged.append(Entry::Synced);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Next> {
        loop {
            match self.queue.front_mut() {
                None => return self.pop_merged(),
                Some(Item::Walk(walk)) => match walk.next() {
                    Some(change) => return Some(Next::Change(change)),
                    None => self.queue.pop_front(),
                },
                Some(_) => match self.queue.pop_front() {
                    Some(Item::Change(change)) => return Some(Next::Change(change)),
                    _ => return Some(Next::Synced),
                },
            };
        }
    }

    /// How many events wait: changes, and the objects that are left of walks.
    pub(crate) fn len(&self) -> usize {
        let waiting = |item: &Item| match item {
            Item::Change(_) => 1,
            Item::Walk(walk) => walk.left,
            Item::Synced => 0,
        };
        self.queue.iter().map(waiting).sum::<usize>() + self.merged.places.len()
    }

    fn walk(&mut self, blocks: Blocks, purpose: Purpose) {
        self.queue.push_back(Item::Walk(Walk {
            left: blocks.len(),
            blocks,
            at: 0,
            purpose,
        }));
    }

    fn pop_merged(&mut self) -> Option<Next> {
        let pending = match self.merged.pop()? {
            Entry::Synced => return Some(Next::Synced),
            Entry::Object(pending) => pending,
        };
        let (first, second) = pending.changes();
        // A deletion and what came after it stay together: nothing else is in the queue now.
        self.queue.extend(second.map(Item::Change));
        Some(Next::Change(first))
    }
}

impl Walk {
    fn next(&mut self) -> Option<Change> {
        let (at, object) = self.blocks.next_from(self.at)?;
        self.at = at;
        self.left = self.left.saturating_sub(1);
        Some(match self.purpose {
            Purpose::Initial => Change::Added {
                object: object.clone(),
                initial: true,
            },
            Purpose::Resync => Change::Updated {
                old: object.clone(),
                new: object.clone(),
            },
        })
    }
}

impl Merged {
    fn push(&mut self, change: Change) {
        let key = change.object().key().clone();
        let Some(place) = self.places.get(&key).copied() else {
            let place = self.append(Entry::Object(Pending::of(change)));
            self.places.insert(key, place);
            return;
        };
        let Some(Entry::Object(pending)) = self.entries.get_mut(&place) else {
            return;
        };
        pending.merge(change);
        if pending.is_nothing() {
            self.entries.remove(&place);
            self.places.remove(&key);
        }
    }

    fn append(&mut self, entry: Entry) -> u64 {
        let place = self.next;
        self.next += 1;
        self.entries.insert(place, entry);
        place
    }

    fn pop(&mut self) -> Option<Entry> {
        let (_, entry) = self.entries.pop_first()?;
        if let Entry::Object(pending) = &entry {
            self.places.remove(pending.key());
        }
        Some(entry)
    }
}

impl Pending {
    fn of(change: Change) -> Self {
        let mut pending = Self {
            seen: match &change {
                Change::Added { .. } => None,
                Change::Updated { old, .. } => Some(old.clone()),
                Change::Deleted { last, .. } => Some(last.clone()),
            },
            deleted: None,
            now: None,
        };
        pending.merge(change);
        pending
    }

    fn merge(&mut self, change: Change) {
        match change {
            Change::Added { object, initial } => self.now = Some((object, initial)),
            Change::Updated { new, .. } => {
                let initial = self.now.as_ref().is_some_and(|(_, initial)| *initial);
                self.now = Some((new, initial));
            }
            Change::Deleted { last, observed } => {
                self.now = None;
                // Of several objects with one name the handler hears of the one that it knows.
                if self
                    .seen
                    .as_ref()
                    .is_some_and(|seen| seen.is_same_object(&last))
                {
                    self.deleted = Some((last, observed));
                }
            }
        }
    }

    fn is_nothing(&self) -> bool {
        self.seen.is_none() && self.now.is_none()
    }

    fn key(&self) -> &Key {
        let now = self.now.as_ref().map(|(object, _)| object);
        now.or(self.seen.as_ref())
            .expect("something that is nothing was removed")
            .key()
    }

    /// What to tell: one change, or a deletion and an addition.
    fn changes(self) -> (Change, Option<Change>) {
        let added = |(object, initial)| Change::Added { object, initial };
        match (self.seen, self.now) {
            (Some(seen), Some((now, _))) if self.deleted.is_none() && seen.is_same_object(&now) => {
                (
                    Change::Updated {
                        old: seen,
                        new: now,
                    },
                    None,
                )
            }
            (Some(seen), now) => {
                let (last, observed) = self.deleted.unwrap_or((seen, false));
                (Change::Deleted { last, observed }, now.map(added))
            }
            (None, Some(now)) => (added(now), None),
            (None, None) => unreachable!("something that is nothing was removed"),
        }
    }
}

#[cfg(test)]
mod tests;
