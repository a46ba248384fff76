//! All objects of a collection at one revision.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::collection::Collection;
use super::cursor::Expired;
use super::event::{Change, Event};
use super::record::Record;
use super::root::Root;

/// Events undone per hold of the lock.
const CHUNK: u64 = 1024;

/// The objects of a collection at one revision, by key in byte order. Never changes and never blocks a writer.
#[derive(Clone)]
pub struct Snapshot {
    collection: Collection,
    revision: u64,
    root: Root,
}

/// Which revision to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The present revision, when the read begins.
    Latest,
    /// Exactly this revision, if it is not compacted.
    Revision(u64),
}

/// Why a revision cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It is not known any more.
    #[error("the history begins at revision {oldest}")]
    Expired {
        /// The oldest revision that can be read.
        oldest: u64,
    },
    /// It has not been reached.
    #[error("the present revision is {current}")]
    Future {
        /// The present revision.
        current: u64,
    },
}

impl From<Expired> for SnapshotError {
    fn from(Expired { oldest }: Expired) -> Self {
        Self::Expired { oldest }
    }
}

/// Either the state itself, or a later one and the positions of the events to undo.
enum Base {
    Exact(Root),
    Later(Root, std::ops::Range<u64>),
}

impl Snapshot {
    pub(super) fn take(collection: &Collection, at: At) -> Result<Self, SnapshotError> {
        let At::Revision(revision) = at else {
            let state = collection.inner.state.read();
            let root = state.tables[collection.table].root.clone();
            return Ok(Self::new(collection, state.revision, root));
        };
        Ok(match find_base(collection, revision)? {
            Base::Exact(root) => Self::new(collection, revision, root),
            Base::Later(root, events) => {
                let root = undo(collection, root, events)?;
                let snapshot = Self::new(collection, revision, root);
                snapshot.pin();
                snapshot
            }
        })
    }

    fn new(collection: &Collection, revision: u64, root: Root) -> Self {
        Self {
            collection: collection.clone(),
            revision,
            root,
        }
    }

    /// The revision. A watch from here sees exactly what came later.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.root.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Returns one object, if the snapshot has it.
    pub fn get(&self, key: &str) -> Option<&Arc<Record>> {
        self.root.get(key)
    }

    /// The objects whose keys begin with `prefix` (`namespace/`, or empty for all) and come after `start_after`.
    pub fn range<'a>(
        &'a self,
        prefix: &'a str,
        start_after: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Record>> {
        let start = match start_after {
            Some(key) if key >= prefix => Bound::Excluded(key),
            _ => Bound::Included(prefix),
        };
        self.root
            .from(start)
            .take_while(move |record| record.key.starts_with(prefix))
    }

    /// How many objects [`Snapshot::range`] gives from the start of a prefix on. Walks over none of them.
    pub fn count(&self, prefix: &str) -> usize {
        match prefix.strip_suffix('/') {
            Some(namespace) => self.root.count(namespace),
            None => self.len(),
        }
    }

    /// Keeps this state at hand for the reader of the next page, as long as its revision is known. Without it the
    /// next page rebuilds it once.
    pub fn pin(&self) {
        let state = self.collection.inner.state.read();
        let table = self.collection.table;
        if self.revision >= state.floor(table) {
            let root = self.root.clone();
            state.pins.lock().put(table, self.revision, root);
        }
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("collection", &self.collection.name())
            .field("revision", &self.revision)
            .field("len", &self.len())
            .finish()
    }
}

fn find_base(collection: &Collection, revision: u64) -> Result<Base, SnapshotError> {
    let state = collection.inner.state.read();
    if revision > state.revision {
        let current = state.revision;
        return Err(SnapshotError::Future { current });
    }
    state.check_known(collection.table, revision)?;
    let table = &state.tables[collection.table];
    let events = table.log.position_after(revision)..table.log.end();
    if events.is_empty() {
        return Ok(Base::Exact(table.root.clone()));
    }
    let pinned = state.pins.lock().get(collection.table, revision);
    Ok(match pinned {
        Some(root) => Base::Exact(root),
        None => Base::Later(table.root.clone(), events),
    })
}

/// Takes events back, the newest first, a chunk per hold of the lock.
fn undo(
    collection: &Collection,
    mut root: Root,
    mut events: std::ops::Range<u64>,
) -> Result<Root, Expired> {
    while !events.is_empty() {
        let start = events.end.saturating_sub(CHUNK).max(events.start);
        let chunk = read_chunk(collection, start..events.end)?;
        for event in chunk.iter().rev() {
            undo_one(&mut root, event);
        }
        events.end = start;
    }
    Ok(root)
}

fn read_chunk(
    collection: &Collection,
    positions: std::ops::Range<u64>,
) -> Result<Vec<Arc<Event>>, Expired> {
    let state = collection.inner.state.read();
    let oldest = state.floor(collection.table);
    let events = state.tables[collection.table].log.slice(positions);
    Ok(events.ok_or(Expired { oldest })?.cloned().collect())
}

fn undo_one(root: &mut Root, event: &Event) {
    match event.change() {
        Change::Created => drop(root.remove(event.record().key())),
        Change::Updated { previous } | Change::Deleted { previous } => {
            root.insert(previous.clone())
        }
    }
}
