//! The objects of a collection at one revision, in order, with the number of them in each namespace.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::record::Record;

/// The objects of a collection at one revision. A clone costs nothing and never changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Root {
    /// By key.
    records: OrdMap<Arc<str>, Arc<Record>>,
    /// How many of them each namespace has, so that a first page need not walk over the rest to say how many follow.
    /// Namespaces without any are not in it.
    counts: OrdMap<Box<str>, usize>,
}

impl Root {
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Record>> {
        self.records.get(key)
    }

    /// How many objects a namespace has.
    pub(super) fn count(&self, namespace: &str) -> usize {
        self.counts.get(namespace).copied().unwrap_or_default()
    }

    /// Puts an object in, in place of one that has its key.
    pub(super) fn insert(&mut self, record: Arc<Record>) {
        let key = record.key.clone();
        if self.records.insert(key.clone(), record).is_none()
            && let Some(namespace) = namespace(&key)
        {
            match self.counts.get_mut(namespace) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(namespace.into(), 1)),
            }
        }
    }

    /// Takes an object out, if it is there.
    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Record>> {
        let removed = self.records.remove(key)?;
        if let Some(namespace) = namespace(key) {
            match self.counts.get_mut(namespace) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(self.counts.remove(namespace)),
            }
        }
        Some(removed)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<Record>> {
        self.records.values()
    }

    /// The objects from a key on.
    pub(super) fn from<'a>(
        &'a self,
        start: Bound<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Record>> {
        let range: (Bound<&str>, Bound<&str>) = (start, Bound::Unbounded);
        self.records
            .range::<_, str>(range)
            .map(|(_, record)| record)
    }
}

fn namespace(key: &str) -> Option<&str> {
    key.split_once('/').map(|(namespace, _)| namespace)
}
