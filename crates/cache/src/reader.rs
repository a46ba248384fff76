//! The reading end of the store, typed.

use std::any::Any;
use std::collections::BTreeSet;
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
/// when that is asked for. Methods that decode leave out what does not decode, which is reported.
pub struct Reader<K> {
    stores: Stores,
    decoder: Arc<Decoder>,
    /// Whatever must live as long as somebody reads: the informer that fills the store.
    keep_alive: Option<Arc<dyn Any + Send + Sync>>,
    kind: PhantomData<fn() -> K>,
}

/// What is read: mostly one store, or one for each of several namespaces. No two have a key in common.
#[derive(Clone)]
enum Stores {
    One(Arc<Shared>),
    Several(Arc<[Arc<Shared>]>),
}

impl Stores {
    fn as_slice(&self) -> &[Arc<Shared>] {
        match self {
            Self::One(store) => std::slice::from_ref(store),
            Self::Several(stores) => stores,
        }
    }
}

impl<K: Kind> Reader<K> {
    pub(crate) fn new(shared: Arc<Shared>, decoder: Arc<Decoder>) -> Self {
        Self {
            stores: Stores::One(shared),
            decoder,
            keep_alive: None,
            kind: PhantomData,
        }
    }

    /// One reader of several stores that have no key in common, those of different namespaces. It has no store of its
    /// own: what it shows is what the others show at that moment, each by itself.
    ///
    /// Returns nothing if no reader is given.
    pub fn joined(readers: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut readers: Vec<Self> = readers.into_iter().collect();
        if readers.len() == 1 {
            return readers.pop();
        }
        let decoder = readers.first()?.decoder.clone();
        let stores = readers.iter().flat_map(|reader| reader.stores.as_slice());
        let stores = Stores::Several(stores.cloned().collect());
        let alive: Vec<_> = readers
            .into_iter()
            .map(|reader| reader.keep_alive)
            .collect();
        Some(Self {
            stores,
            decoder,
            keep_alive: Some(Arc::new(alive)),
            kind: PhantomData,
        })
    }

    pub(crate) fn keeping_alive(mut self, what: Arc<dyn Any + Send + Sync>) -> Self {
        self.keep_alive = Some(what);
        self
    }

    pub(crate) fn decoder(&self) -> &Arc<Decoder> {
        &self.decoder
    }

    /// The store of a reader that was made for one.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.stores.as_slice()[0]
    }

    fn stores(&self) -> impl Iterator<Item = &Arc<Shared>> {
        self.stores.as_slice().iter()
    }

    /// The object under a key, decoded unless somebody is using it already.
    ///
    /// Nothing also when it does not decode: [`entry`](Reader::entry) tells the two apart.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// writer.put(object("a"));
    /// let map = reader.get(&Key::new("default", "a")).expect("it is there");
    /// assert_eq!(map.data.as_ref().unwrap()["owner"], "ann");
    /// ```
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.entry(key)?.value()
    }

    /// The object under a key, not decoded.
    pub fn entry(&self, key: &Key) -> Option<Cached<K>> {
        let find = |store: &Arc<Shared>| store.state.read().table.get(key.as_str()).cloned();
        Some(self.cached(self.stores().find_map(find)?))
    }

    /// Whether there is an object under this key.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// assert!(!reader.contains(&Key::new("default", "a")));
    /// writer.put(object("a"));
    /// assert!(reader.contains(&Key::new("default", "a")));
    /// ```
    pub fn contains(&self, key: &Key) -> bool {
        let has = |store: &Arc<Shared>| store.state.read().table.find(key.as_str()).is_some();
        self.stores().any(has)
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.stores()
            .map(|store| store.state.read().table.len())
            .sum()
    }

    /// Returns whether the store holds no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All objects at this moment, to be read at leisure: it blocks nobody.
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot {
            parts: self.blocks(),
            decoder: self.decoder.clone(),
            kind: PhantomData,
        }
    }

    /// All objects at this moment, decoded.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// writer.put(object("a"));
    /// writer.put(object("b"));
    /// assert_eq!(reader.list().len(), 2);
    /// ```
    pub fn list(&self) -> Vec<Arc<K>> {
        self.snapshot().iter().filter_map(|o| o.value()).collect()
    }

    /// Returns all keys, sorted as text.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// writer.put(object("a"));
    /// assert_eq!(reader.keys(), [Key::new("default", "a")]);
    /// ```
    pub fn keys(&self) -> Vec<Key> {
        let parts = self.blocks();
        sorted_keys(
            parts
                .iter()
                .flat_map(Blocks::iter)
                .map(|(_, object)| object),
        )
    }

    fn blocks(&self) -> Vec<Blocks> {
        let blocks = |store: &Arc<Shared>| store.state.read().table.blocks();
        self.stores().map(blocks).collect()
    }

    /// The version of the server's state that the store has reached; empty before the first, and of several stores unless
    /// all are at the same.
    pub fn resource_version(&self) -> String {
        let mut versions = self
            .stores()
            .map(|store| store.state.read().resource_version.clone());
        let first = versions.next().unwrap_or_default();
        if versions.all(|version| version == first) {
            first
        } else {
            String::new()
        }
    }

    /// Adds an index, also while the store is in use: what is there already is indexed before this returns.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// reader.add_index("by-app", Index::by_label("app")).unwrap();
    /// assert!(reader.add_index("by-app", Index::by_label("app")).is_err(), "the name is taken");
    /// # writer.put(object("a"));
    /// ```
    ///
    /// # Errors
    /// When the name is taken.
    pub fn add_index(&self, name: &str, index: Index<K>) -> Result<(), IndexExists> {
        for store in self.stores() {
            store.add_index(Indexer {
                name: name.into(),
                function: index.clone().erase(&self.decoder),
            })?;
        }
        Ok(())
    }

    /// The names of the indexes, in the order they were added.
    pub fn indexes(&self) -> Vec<String> {
        let Some(store) = self.stores().next() else {
            return Vec::new();
        };
        let state = store.state.read();
        state.shown().map(|p| p.indexer.name.to_string()).collect()
    }

    /// The objects that have this value, decoded.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// reader.add_index("by-app", Index::by_label("app")).unwrap();
    /// writer.put(object("a"));
    /// assert_eq!(reader.by_index("by-app", "web").unwrap().len(), 1);
    /// assert!(reader.by_index("by-colour", "red").is_err(), "there is no such index");
    /// ```
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
        let mut found = self.indexed(index, |state, postings| {
            postings.objects(value, &state.table)
        })?;
        let objects = match found.len() {
            1 => found.swap_remove(0),
            _ => found
                .iter()
                .flat_map(|objects| objects.iter().cloned())
                .collect(),
        };
        Ok(Entries {
            objects,
            decoder: self.decoder.clone(),
            kind: PhantomData,
        })
    }

    /// The keys of the objects that have this value, sorted.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// reader.add_index("by-namespace", Index::by_namespace()).unwrap();
    /// writer.put(object("a"));
    /// let keys = reader.keys_by_index("by-namespace", "default").unwrap();
    /// assert_eq!(keys, [Key::new("default", "a")]);
    /// ```
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
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kubewright_cache::{Index, Key, Object, Shape, store};
    /// # let object = |name: &str| {
    /// #     let meta = serde_json::json!({"name": name, "namespace": "default", "resourceVersion": "1", "labels": {"app": "web"}});
    /// #     let json = serde_json::json!({"metadata": meta, "data": {"owner": "ann"}}).to_string();
    /// #     Object::parse(json.as_bytes(), &Shape::default()).unwrap()
    /// # };
    /// let (mut writer, reader) = store::new::<ConfigMap>();
    /// reader.add_index("by-app", Index::by_label("app")).unwrap();
    /// writer.put(object("a"));
    /// assert_eq!(reader.index_values("by-app").unwrap(), ["web"]);
    /// ```
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, UnknownIndex> {
        let values = self.indexed(index, |_, postings| {
            let values = postings.values().map(|value| value.to_string());
            values.collect::<Vec<String>>()
        })?;
        let values: BTreeSet<String> = values.into_iter().flatten().collect();
        Ok(values.into_iter().collect())
    }

    fn indexed<T>(
        &self,
        name: &str,
        read: impl Fn(&State, &Postings) -> T,
    ) -> Result<Vec<T>, UnknownIndex> {
        let read = |store: &Arc<Shared>| {
            let state = store.state.read();
            let postings = state
                .index(name)
                .ok_or_else(|| UnknownIndex(name.to_owned()))?;
            Ok(read(&state, postings))
        };
        self.stores().map(read).collect()
    }

    fn cached(&self, object: Arc<Object>) -> Cached<K> {
        Cached::new(object, self.decoder.clone())
    }
}

impl<K> Clone for Reader<K> {
    fn clone(&self) -> Self {
        Self {
            stores: self.stores.clone(),
            decoder: self.decoder.clone(),
            keep_alive: self.keep_alive.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Reader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stores.as_slice()).finish()
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

    /// Returns whether the snapshot holds no objects.
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
    parts: Vec<Blocks>,
    decoder: Arc<Decoder>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Snapshot<K> {
    /// The objects, in an order that depends on the history of the store only.
    pub fn iter(&self) -> impl Iterator<Item = Cached<K>> + '_ {
        let objects = self.parts.iter().flat_map(Blocks::iter);
        let objects = objects.map(|(_, object)| object.clone());
        objects.map(|object| Cached::new(object, self.decoder.clone()))
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}
