//! The store: objects by key and by index, with one writer and any number of readers.
//!
//! Guarantees
//! - A reader sees each change whole: the object and all its index values, a replacement of everything as one step.
//! - Reads copy no object, and hold the lock for one probe or one pointer for each block of 128 objects; a
//!   [`Snapshot`](crate::Snapshot) holds no lock at all.
//! - Index functions run outside of every lock, also while an index is back-filled: they may use the store themselves.
//! - Iteration order follows from the history of changes and nothing else.
//!
//! Owner: the [`Writer`], which is not `Clone`. Deliberately absent: expiry, deep copies.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::Key;
use crate::cached::{Decoder, Kind};
use crate::index::{Indexers, Postings};
use crate::object::Object;
use crate::reader::Reader;
use crate::report::Reporter;
use crate::table::{Slot, Table};

mod back_fill;
mod prepare;
#[cfg(test)]
mod tests;

pub(crate) use prepare::{Entries, Plan, Stale};

/// Makes an empty store: one end to write, one to read.
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
pub fn new<K: Kind>() -> (Writer, Reader<K>) {
    with_reporter(Reporter::default())
}

/// Makes an empty store that reports its troubles to `reporter`.
pub fn with_reporter<K: Kind>(reporter: Reporter) -> (Writer, Reader<K>) {
    let decoder = Decoder::new(reporter.clone());
    let shared = Arc::new(Shared {
        state: RwLock::default(),
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

/// What both ends share. Only the writer changes the table and its version; indexes are added by anybody.
pub(crate) struct Shared {
    pub(crate) state: RwLock<State>,
    pub(crate) reporter: Reporter,
}

/// `indexers` are those of `indexes`, in the same order, and another `Arc` after every change of them.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) indexes: Vec<Postings>,
    pub(crate) indexers: Arc<Indexers>,
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

impl Writer {
    /// Puts an object and gives the one that it replaces.
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
    /// assert!(writer.put(object("a")).is_none());
    /// assert!(writer.put(object("a")).is_some(), "the one that it replaces");
    /// # drop(reader);
    /// ```
    pub fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        loop {
            let entries = self.shared.entries(&self.shared.indexers(), &object);
            if let Ok(old) = self.try_put(&object, &entries) {
                return old;
            }
        }
    }

    /// Removes an object and gives it back.
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
    /// assert!(writer.remove(&Key::new("default", "a")).is_some());
    /// assert!(reader.is_empty());
    /// ```
    pub fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        self.shared.write(|state| state.remove(key))
    }

    /// Replaces everything in one step. Objects whose state is the same stay as they are; of two with one key the
    /// last counts.
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
    /// let replaced = writer.replace(vec![object("b")], "7");
    /// assert_eq!((replaced.removed.len(), replaced.put.len()), (1, 1));
    /// assert_eq!(reader.resource_version(), "7");
    /// ```
    pub fn replace(&mut self, objects: Vec<Arc<Object>>, resource_version: &str) -> Replaced {
        let mut plan = self.shared.plan(&self.shared.indexers(), objects);
        loop {
            match self.try_replace(plan, resource_version) {
                Ok(replaced) => return replaced,
                Err(stale) => plan = self.shared.renew(stale),
            }
        }
    }

    /// Notes that the store is as the server was at this version.
    pub fn bookmark(&mut self, resource_version: &str) {
        let mut state = self.shared.state.write();
        state.resource_version.clear();
        state.resource_version.push_str(resource_version);
    }

    pub(crate) fn try_put(
        &mut self,
        object: &Arc<Object>,
        entries: &Entries,
    ) -> Result<Option<Arc<Object>>, Stale> {
        self.shared.write(|state| {
            if !entries.are_of(&state.indexers) {
                return Err(Stale);
            }
            state.advance(object);
            Ok(state.put(object.clone(), &entries.values))
        })
    }

    /// Carries out a plan, or gives it back when an index has come since it was made.
    pub(crate) fn try_replace(
        &mut self,
        plan: Plan,
        resource_version: &str,
    ) -> Result<Replaced, Plan> {
        self.shared.write(|state| {
            if !Arc::ptr_eq(&plan.indexers, &state.indexers) {
                return Err(plan);
            }
            state.resource_version = resource_version.to_owned();
            Ok(state.carry_out(plan))
        })
    }
}

impl Shared {
    /// Changes the state. Lists of objects that are out of date are dropped when nobody waits for that any more.
    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.write();
        let outcome = change(&mut state);
        let retired: Vec<_> = state
            .indexes
            .iter_mut()
            .map(Postings::take_retired)
            .collect();
        drop(state);
        drop(retired);
        outcome
    }
}

impl State {
    fn carry_out(&mut self, plan: Plan) -> Replaced {
        for object in &plan.removed {
            self.remove(object.key());
        }
        self.table.reserve(plan.put.len());
        let mut put = Vec::with_capacity(plan.put.len());
        for (object, values) in plan.put {
            let old = self.put(object.clone(), &values);
            put.push((old, object));
        }
        Replaced {
            removed: plan.removed,
            put,
        }
    }

    fn put(&mut self, object: Arc<Object>, entries: &[Vec<String>]) -> Option<Arc<Object>> {
        let (slot, old) = self.table.put(object);
        self.enter(slot, entries);
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Object>> {
        let (slot, object) = self.table.remove(key.as_str())?;
        for postings in &mut self.indexes {
            postings.set(slot, &[]);
        }
        Some(object)
    }

    fn enter(&mut self, slot: Slot, entries: &[Vec<String>]) {
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

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} objects", self.state.read().table.len())
    }
}
