//! Configurations that follow the commit log and are compiled when they are first needed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;
use serde_json::Value;

use crate::storage::{Change, Event, Record};

/// What is made of the objects of one resource, by name.
pub(super) struct Cache<T> {
    /// The name of their collection.
    collection: String,
    read: fn(&Value) -> T,
    known: RwLock<BTreeMap<String, Arc<Entry<T>>>>,
}

/// One object. Compiling it takes milliseconds, so that is not done under the store's lock but by whoever needs it.
struct Entry<T> {
    record: Arc<Record>,
    compiled: OnceLock<Arc<T>>,
}

impl<T> Cache<T> {
    /// Of a resource in `admissionregistration.k8s.io`.
    pub(super) fn of(plural: &str, read: fn(&Value) -> T) -> Self {
        Self {
            collection: format!("admissionregistration.k8s.io/{plural}"),
            read,
            known: RwLock::default(),
        }
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        let entries: Vec<Arc<Entry<T>>> = self.known.read().values().cloned().collect();
        entries.iter().map(|entry| self.compile(entry)).collect()
    }

    fn compile(&self, entry: &Entry<T>) -> Arc<T> {
        let compiled = entry.compiled.get_or_init(|| {
            let object = serde_json::from_slice(entry.record.body()).unwrap_or_default();
            Arc::new((self.read)(&object))
        });
        compiled.clone()
    }
}

/// What all caches do, whatever they make of their objects.
pub(super) trait Follow: Sync {
    /// The name of the collection.
    fn collection(&self) -> &str;

    /// Takes up an object.
    fn put(&self, record: &Arc<Record>);

    /// Forgets an object.
    fn remove(&self, key: &str);

    /// Forgets all objects.
    fn clear(&self);

    /// The objects as they are known.
    fn records(&self) -> Vec<Arc<Record>>;

    /// Follows a change.
    fn apply(&self, event: &Event) {
        match event.change() {
            Change::Deleted { .. } => self.remove(event.record().key()),
            Change::Created | Change::Updated { .. } => self.put(event.record()),
        }
    }
}

impl<T: Send + Sync> Follow for Cache<T> {
    fn collection(&self) -> &str {
        &self.collection
    }

    fn put(&self, record: &Arc<Record>) {
        let entry = Entry {
            record: record.clone(),
            compiled: OnceLock::new(),
        };
        let mut known = self.known.write();
        known.insert(record.key().to_owned(), Arc::new(entry));
    }

    fn remove(&self, key: &str) {
        self.known.write().remove(key);
    }

    fn clear(&self) {
        self.known.write().clear();
    }

    fn records(&self) -> Vec<Arc<Record>> {
        let known = self.known.read();
        known.values().map(|entry| entry.record.clone()).collect()
    }
}

impl<T> fmt::Debug for Cache<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.known.read().len(), self.collection)
    }
}
