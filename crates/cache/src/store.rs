//! The store: objects by key and by index, with one writer and any number of readers.
//!
//! Guarantees
//! - A reader sees each change whole: the object and all its index values, a replacement of everything as one step.
//! - Reads copy no object, and hold the lock for one probe or one pointer for each block of 128 objects; a
//!   [`Snapshot`](crate::Snapshot) holds no lock at all.
//! - Index functions run outside of the lock that readers take, also while an index is back-filled.
//! - Iteration order follows from the history of changes and nothing else.
//!
//! Owner: the [`Writer`], which is not `Clone`. Deliberately absent: expiry, deep copies.

use std::sync::Arc;

use hashbrown::HashSet;
use parking_lot::{Mutex, RwLock};

use crate::Key;
use crate::cached::{Decoder, Kind};
use crate::index::{IndexExists, Indexer, Postings};
use crate::object::{Object, unchanged};
use crate::reader::Reader;
use crate::report::Reporter;
use crate::table::{Slot, Table};

/// Makes an empty store: one end to write, one to read.
pub fn new<K: Kind>() -> (Writer, Reader<K>) {
    with_reporter(Reporter::default())
}

/// Makes an empty store whose troubles are told to `reporter`.
pub fn with_reporter<K: Kind>(reporter: Reporter) -> (Writer, Reader<K>) {
    let decoder = Decoder::new(reporter.clone());
    let shared = Arc::new(Shared {
        state: RwLock::default(),
        writing: Mutex::default(),
        reporter,
    });
    let writer = Writer {
        shared: shared.clone(),
    };
    (writer, Reader::new(shared, decoder))
}

/// The only one who changes the store.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
}

/// What both ends share. Whoever changes `state` holds `writing`; whoever holds both took `writing` first.
pub(crate) struct Shared {
    pub(crate) state: RwLock<State>,
    writing: Mutex<()>,
    pub(crate) reporter: Reporter,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) indexes: Vec<Postings>,
    pub(crate) resource_version: String,
}

/// What a replacement of everything changed.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Replaced {
    /// Objects that are gone, in slot order.
    pub removed: Vec<Arc<Object>>,
    /// Objects that are new or changed, in the order they were given, with what they replace.
    pub put: Vec<(Option<Arc<Object>>, Arc<Object>)>,
}

/// The values of one object in each index, in the order of the indexes.
type Entries = Vec<Vec<String>>;

impl Writer {
    /// Puts an object and gives the one that it replaces.
    pub fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let _writing = self.shared.writing.lock();
        let entries = self.shared.entries(&object);
        let mut state = self.shared.state.write();
        state.advance(&object);
        state.put(object, &entries)
    }

    /// Removes an object and gives it back.
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let _writing = self.shared.writing.lock();
        self.shared.state.write().remove(key)
    }

    /// Replaces everything in one step. Objects whose state is the same stay as they are; of two with one key the
    /// last counts.
    pub fn replace(&mut self, objects: Vec<Arc<Object>>, resource_version: &str) -> Replaced {
        let _writing = self.shared.writing.lock();
        let plan = self.shared.plan(objects);
        let mut state = self.shared.state.write();
        state.resource_version = resource_version.to_owned();
        for object in &plan.removed {
            state.remove(object.key());
        }
        state.table.reserve(plan.put.len());
        let mut put = Vec::with_capacity(plan.put.len());
        for (object, entries) in plan.put {
            let old = state.put(object.clone(), &entries);
            put.push((old, object));
        }
        Replaced {
            removed: plan.removed,
            put,
        }
    }

    /// Notes that the store is as the server was at this version.
    pub fn bookmark(&mut self, resource_version: &str) {
        let _writing = self.shared.writing.lock();
        self.shared.state.write().resource_version = resource_version.to_owned();
    }
}

impl State {
    fn put(&mut self, object: Arc<Object>, entries: &[Vec<String>]) -> Option<Arc<Object>> {
        let (slot, old) = self.table.put(object);
        self.index(slot, entries);
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let (slot, object) = self.table.remove(key.as_str())?;
        for postings in &mut self.indexes {
            postings.set(slot, &[]);
        }
        Some(object)
    }

    fn index(&mut self, slot: Slot, entries: &[Vec<String>]) {
        for (postings, values) in self.indexes.iter_mut().zip(entries) {
            postings.set(slot, values);
        }
    }

    fn advance(&mut self, object: &Object) {
        let version = object.resource_version();
        if !version.is_empty() {
            self.resource_version.clear();
            self.resource_version.push_str(&version);
        }
    }
}

/// What a replacement will do.
struct Plan {
    removed: Vec<Arc<Object>>,
    put: Vec<(Arc<Object>, Entries)>,
}

impl Shared {
    fn entries(&self, object: &Arc<Object>) -> Entries {
        let indexers = self.indexers();
        let values = |indexer: &Indexer| indexer.values(object, &self.reporter);
        indexers.iter().map(values).collect()
    }

    fn indexers(&self) -> Vec<Indexer> {
        let state = self.state.read();
        state.indexes.iter().map(|p| p.indexer.clone()).collect()
    }

    /// Compares the new state of everything with the present one. `writing` is held.
    fn plan(&self, objects: Vec<Arc<Object>>) -> Plan {
        let objects = last_of_each_key(objects);
        let present = self.state.read().table.blocks();
        let listed: HashSet<&str> = objects.iter().map(|o| o.key().as_str()).collect();
        let is_gone = |object: &&Arc<Object>| !listed.contains(object.key().as_str());
        let removed = present
            .iter()
            .map(|(_, o)| o)
            .filter(is_gone)
            .cloned()
            .collect();
        drop(listed);
        let indexers = self.indexers();
        let mut put = Vec::new();
        for object in objects {
            let old = self.state.read().table.get(object.key().as_str()).cloned();
            if old.is_some_and(|old| unchanged(&old, &object)) {
                continue;
            }
            let values = |indexer: &Indexer| indexer.values(&object, &self.reporter);
            let entries = indexers.iter().map(values).collect();
            put.push((object, entries));
        }
        Plan { removed, put }
    }

    /// Adds an index and fills it: first from a snapshot, while writes go on, then once more for what changed
    /// meanwhile, while they wait.
    pub(crate) fn add_index(&self, indexer: Indexer) -> Result<(), IndexExists> {
        let exists = || IndexExists(indexer.name.to_string());
        if self.indexers().iter().any(|i| i.name == indexer.name) {
            return Err(exists());
        }
        let before = self.state.read().table.blocks();
        let mut postings = Postings::new(indexer.clone());
        for (slot, object) in before.iter() {
            postings.set(slot, &indexer.values(object, &self.reporter));
        }
        let _writing = self.writing.lock();
        if self.indexers().iter().any(|i| i.name == indexer.name) {
            return Err(exists());
        }
        let now = self.state.read().table.blocks();
        for (slot, _) in before.iter().filter(|(slot, _)| now.at(*slot).is_none()) {
            postings.set(slot, &[]);
        }
        for (slot, object) in now.iter() {
            if !before.at(slot).is_some_and(|old| Arc::ptr_eq(old, object)) {
                postings.set(slot, &indexer.values(object, &self.reporter));
            }
        }
        self.state.write().indexes.push(postings);
        Ok(())
    }
}

/// Keeps the last object of each key, at its place.
fn last_of_each_key(objects: Vec<Arc<Object>>) -> Vec<Arc<Object>> {
    let mut seen: HashSet<&str> = HashSet::with_capacity(objects.len());
    let mut doubled: Vec<usize> = Vec::new();
    for (place, object) in objects.iter().enumerate().rev() {
        if !seen.insert(object.key().as_str()) {
            doubled.push(place);
        }
    }
    drop(seen);
    if doubled.is_empty() {
        return objects;
    }
    let doubled: HashSet<usize> = doubled.into_iter().collect();
    let places = objects.into_iter().enumerate();
    places
        .filter(|(place, _)| !doubled.contains(place))
        .map(|(_, object)| object)
        .collect()
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} objects", self.state.read().table.len())
    }
}

#[cfg(test)]
mod tests;
