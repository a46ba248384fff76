//! The reading end of the store, typed.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Key;
use crate::cached::{Cached, Decoder, Kind};
use crate::index::{Index, IndexExists, Indexer, Objects, Postings, UnknownIndex, sorted_keys};
use crate::object::Object;
use crate::store::{Shared, State};
use crate::table::Blocks;

/// Reads the store. Cheap to clone; clones read the same store.
///
/// Values come as `Arc`s that nobody may change. Methods named `entries` give [`Cached`] objects, which are decoded only
/// when that is asked for.
pub struct Reader<K> {
    shared: Arc<Shared>,
    decoder: Arc<Decoder>,
    /// Whatever must live as long as somebody reads: the informer that fills the store.
    keep_alive: Option<Arc<dyn Any + Send + Sync>>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Reader<K> {
    pub(crate) fn new(shared: Arc<Shared>, decoder: Arc<Decoder>) -> Self {
        Self {
            shared,
            decoder,
            keep_alive: None,
            kind: PhantomData,
        }
    }

    pub(crate) fn keeping_alive(mut self, what: Arc<dyn Any + Send + Sync>) -> Self {
        self.keep_alive = Some(what);
        self
    }

    pub(crate) fn decoder(&self) -> &Arc<Decoder> {
        &self.decoder
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The object under a key, decoded unless somebody is using it already.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.entry(key)?.value()
    }

    /// The object under a key, not decoded.
    pub fn entry(&self, key: &Key) -> Option<Cached<K>> {
        let object = self.shared.state.read().table.get(key.as_str()).cloned()?;
        Some(self.cached(object))
    }

    /// Whether there is an object under this key.
    pub fn contains(&self, key: &Key) -> bool {
        self.shared.state.read().table.find(key.as_str()).is_some()
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.read().table.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects at this moment, to be read at leisure: it blocks nobody.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot {
            blocks: self.shared.state.read().table.blocks(),
            decoder: self.decoder.clone(),
            kind: PhantomData,
        }
    }

    /// All objects at this moment, decoded.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.snapshot().iter().filter_map(|o| o.value()).collect()
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<Key> {
        let blocks = self.shared.state.read().table.blocks();
        sorted_keys(blocks.iter().map(|(_, object)| object))
    }

    /// The version of the server's state that the store has reached; empty before the first.
    pub fn resource_version(&self) -> String {
        self.shared.state.read().resource_version.clone()
    }

    /// Adds an index, also while the store is in use: what is there already is indexed before this returns.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn add_index(&self, name: &str, index: Index<K>) -> Result<(), IndexExists> {
        self.shared.add_index(Indexer {
            name: name.into(),
            function: index.erase(&self.decoder),
        })
    }

    /// The names of the indexes, in the order they were added.
    pub fn indexes(&self) -> Vec<String> {
        let state = self.shared.state.read();
        state.shown().map(|p| p.indexer.name.to_string()).collect()
    }

    /// The objects that have this value, decoded.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, UnknownIndex> {
        let entries = self.entries_by_index(index, value)?;
        Ok(entries.iter().filter_map(|entry| entry.value()).collect())
    }

    /// The objects that have this value, not decoded. The list is shared with all who ask for it until one of its
    /// objects changes.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn entries_by_index(&self, index: &str, value: &str) -> Result<Entries<K>, UnknownIndex> {
        let objects = self.indexed(index, |state, postings| {
            postings.objects(value, &state.table)
        })?;
        Ok(Entries {
            objects,
            decoder: self.decoder.clone(),
            kind: PhantomData,
        })
    }

    /// The keys of the objects that have this value, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn keys_by_index(&self, index: &str, value: &str) -> Result<Vec<Key>, UnknownIndex> {
        Ok(sorted_keys(
            self.entries_by_index(index, value)?.objects.iter(),
        ))
    }

    /// All values that some object has, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, UnknownIndex> {
        self.indexed(index, |_, postings| {
            postings.values().map(|value| value.to_string()).collect()
        })
    }

    fn indexed<T>(
        &self,
        name: &str,
        read: impl FnOnce(&State, &Postings) -> T,
    ) -> Result<T, UnknownIndex> {
        let state = self.shared.state.read();
        let postings = state
            .index(name)
            .ok_or_else(|| UnknownIndex(name.to_owned()))?;
        Ok(read(&state, postings))
    }

    fn cached(&self, object: Arc<Object>) -> Cached<K> {
        Cached::new(object, self.decoder.clone())
    }
}

impl<K> Clone for Reader<K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            decoder: self.decoder.clone(),
            keep_alive: self.keep_alive.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.shared).finish()
    }
}

/// The objects of a store that have one value of an index, at one moment.
pub struct Entries<K> {
    objects: Objects,
    decoder: Arc<Decoder>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Entries<K> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects without a type.
    pub fn objects(&self) -> &[Arc<Object>] {
        &self.objects
    }

    /// The objects, in an order that depends on the history of the store only.
    pub fn iter(&self) -> impl Iterator<Item = Cached<K>> + '_ {
        let cached = |object: &Arc<Object>| Cached::new(object.clone(), self.decoder.clone());
        self.objects.iter().map(cached)
    }
}

impl<K> fmt::Debug for Entries<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.objects.iter()).finish()
    }
}

/// All objects of a store at one moment.
pub struct Snapshot<K> {
    blocks: Blocks,
    decoder: Arc<Decoder>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Snapshot<K> {
    /// The objects, in an order that depends on the history of the store only.
    pub fn iter(&self) -> impl Iterator<Item = Cached<K>> + '_ {
        let objects = self.blocks.iter().map(|(_, object)| object.clone());
        objects.map(|object| Cached::new(object, self.decoder.clone()))
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}
