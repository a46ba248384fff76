//! Indexes: which objects have which value, under a name, computed by a function of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use crate::Key;
use crate::cached::{Decoder, Kind, Stay};
use crate::object::Object;
use crate::report::{Report, Reporter};
use crate::table::{Slot, Table};

/// The name of the index by namespace, which informers of a factory have.
pub const NAMESPACE_INDEX: &str = "namespace";

type TypedFunction<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;
type Function = Arc<dyn Fn(&Arc<Object>) -> Vec<String> + Send + Sync>;

/// A function from an object to the values that it is found by. It may give none or many.
///
/// It should depend on nothing but the object. A function that panics is reported, and the object has no values.
pub struct Index<K>(Source<K>);

enum Source<K> {
    Value(TypedFunction<K>, PhantomData<fn() -> K>),
    Metadata(Function),
}

impl<K: Kind> Index<K> {
    /// An index over the decoded object. Each change of an object costs one decode.
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
    /// let by_owner = Index::of(|map: &ConfigMap| {
    ///     let owner = map.data.as_ref().and_then(|data| data.get("owner"));
    ///     owner.cloned().into_iter().collect()
    /// });
    /// reader.add_index("by-owner", by_owner).unwrap();
    /// writer.put(object("a"));
    /// assert_eq!(reader.keys_by_index("by-owner", "ann").unwrap().len(), 1);
    /// ```
    pub fn of(values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Source::Value(Arc::new(values), PhantomData))
    }

    /// An index over key, labels, annotations or owners, which needs no decode.
    pub fn of_metadata(values: impl Fn(&Object) -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Source::Metadata(Arc::new(move |object| values(object))))
    }

    /// The index by namespace.
    pub fn by_namespace() -> Self {
        Self::of_metadata(|object| {
            object
                .key()
                .namespace()
                .map(str::to_owned)
                .into_iter()
                .collect()
        })
    }

    /// By the value of an annotation. Objects without it are not in the index.
    pub fn by_annotation(name: &str) -> Self {
        let name = name.to_owned();
        Self::of_metadata(move |object| Vec::from_iter(object.annotation(&name).map(String::from)))
    }

    /// The index by the value of a label.
    pub fn by_label(name: &str) -> Self {
        let name = name.to_owned();
        Self::of_metadata(move |object| {
            object
                .label(&name)
                .map(|v| v.into_owned())
                .into_iter()
                .collect()
        })
    }

    /// The function without the type.
    pub(crate) fn erase(self, decoder: &Arc<Decoder>) -> Function {
        match self.0 {
            Source::Metadata(function) => function,
            Source::Value(function, _) => {
                let decoder = decoder.clone();
                Arc::new(move |object| {
                    // Handlers are about to receive the same object.
                    let value = decoder.value::<K>(object, Stay::ForAWhile);
                    value.map_or_else(|_| Vec::new(), |value| function(&value))
                })
            }
        }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Source::Value(function, kind) => Source::Value(function.clone(), *kind),
            Source::Metadata(function) => Source::Metadata(function.clone()),
        })
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Index")
    }
}

/// The name of an index is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is an index {0:?} already{whose}", whose = whose(.0))]
pub struct IndexExists(pub String);

/// What to say of a name that is taken without anybody having added an index.
fn whose(name: &str) -> &'static str {
    if name == NAMESPACE_INDEX {
        ": every kind has it"
    } else {
        ""
    }
}

/// A query named an index that was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no index {0:?}")]
pub struct UnknownIndex(pub String);

/// The function of an index and its name, as the writer calls it.
#[derive(Clone)]
pub(crate) struct Indexer {
    pub(crate) name: Arc<str>,
    pub(crate) function: Function,
}

impl Indexer {
    /// Whether this is the very same index, not another one of the same name.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name, &other.name)
    }

    /// The values of an object, each once, in order.
    pub(crate) fn values(&self, object: &Arc<Object>, reporter: &Reporter) -> Vec<String> {
        let Ok(mut values) = catch_unwind(AssertUnwindSafe(|| (self.function)(object))) else {
            reporter.report(&Report::IndexPanicked {
                index: self.name.to_string(),
                key: object.key().clone(),
            });
            return Vec::new();
        };
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// The functions of all indexes of a store.
#[derive(Default)]
pub(crate) struct Indexers(pub(crate) Vec<Indexer>);

impl Indexers {
    /// The values of an object in each index. Functions of users are called: nothing may be locked.
    pub(crate) fn values(&self, object: &Arc<Object>, reporter: &Reporter) -> Vec<Vec<String>> {
        let values = |indexer: &Indexer| indexer.values(object, reporter);
        self.0.iter().map(values).collect()
    }
}

impl fmt::Debug for Indexers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|i| &i.name))
            .finish()
    }
}

/// Whether readers see an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// It is kept up to date and still being filled.
    Hidden,
    Shown,
}

/// Objects that share a value, at one moment.
pub(crate) type Objects = Arc<[Arc<Object>]>;

/// One index: `postings[v]` has slot `s` exactly if `of_slot[s]` has `v`. No posting is empty.
pub(crate) struct Postings {
    pub(crate) indexer: Indexer,
    pub(crate) visibility: Visibility,
    postings: BTreeMap<Arc<str>, Posting>,
    of_slot: Vec<Values>,
    /// Lists that are out of date, to be dropped where it does not matter how long that takes.
    retired: Vec<Objects>,
}

/// The slots that have one value, in order. The list of their objects is made by the first who reads it, and there until
/// one of them changes: who asks again gets the same.
#[derive(Default)]
struct Posting {
    slots: BTreeSet<Slot>,
    objects: OnceLock<Objects>,
}

/// The values of one slot. One is by far the most common number.
#[derive(Clone, Default, PartialEq)]
enum Values {
    #[default]
    None,
    One(Arc<str>),
    Many(Box<[Arc<str>]>),
}

impl Values {
    fn as_slice(&self) -> &[Arc<str>] {
        match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

impl Postings {
    pub(crate) fn new(indexer: Indexer) -> Self {
        Self {
            indexer,
            visibility: Visibility::Hidden,
            postings: BTreeMap::new(),
            of_slot: Vec::new(),
            retired: Vec::new(),
        }
    }

    /// Sets the values of a slot whose object has changed. They must be sorted and without duplicates.
    pub(crate) fn set(&mut self, slot: Slot, values: &[String]) {
        let place = slot as usize;
        if self.of_slot.len() <= place {
            if values.is_empty() {
                return;
            }
            self.of_slot.resize(place + 1, Values::None);
        }
        let old = self.of_slot[place].as_slice();
        if old
            .iter()
            .map(|v| &**v)
            .eq(values.iter().map(String::as_str))
        {
            for value in old {
                let listed = self.postings.get_mut(value).map(|p| p.objects.take());
                self.retired.extend(listed.flatten());
            }
            return;
        }
        let old = std::mem::take(&mut self.of_slot[place]);
        for value in old.as_slice() {
            self.leave(value, slot);
        }
        let mut entered: Vec<Arc<str>> = values.iter().map(|v| self.enter(v, slot)).collect();
        self.of_slot[place] = match entered.len() {
            0 => Values::None,
            1 => Values::One(entered.remove(0)),
            _ => Values::Many(entered.into_boxed_slice()),
        };
    }

    /// The objects that have a value, in the order of their slots.
    pub(crate) fn objects(&self, value: &str, table: &Table) -> Objects {
        let Some(posting) = self.postings.get(value) else {
            return Arc::default();
        };
        let listed = posting.objects.get_or_init(|| {
            let objects = posting.slots.iter().filter_map(|slot| table.at(*slot));
            objects.cloned().collect()
        });
        listed.clone()
    }

    /// Takes the lists that are out of date.
    pub(crate) fn take_retired(&mut self) -> Vec<Objects> {
        std::mem::take(&mut self.retired)
    }

    /// All values, sorted.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<str>> {
        self.postings.keys()
    }

    fn enter(&mut self, value: &str, slot: Slot) -> Arc<str> {
        let shared = match self.postings.get_key_value(value) {
            Some((shared, _)) => shared.clone(),
            None => value.into(),
        };
        let posting = self.postings.entry(shared.clone()).or_default();
        posting.slots.insert(slot);
        self.retired.extend(posting.objects.take());
        shared
    }

    fn leave(&mut self, value: &str, slot: Slot) {
        let Some(posting) = self.postings.get_mut(value) else {
            return;
        };
        posting.slots.remove(&slot);
        self.retired.extend(posting.objects.take());
        if posting.slots.is_empty() {
            self.postings.remove(value);
        }
    }
}

/// The keys of some objects, sorted.
pub(crate) fn sorted_keys<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> Vec<Key> {
    let mut keys: Vec<Key> = objects.map(|object| object.key().clone()).collect();
    keys.sort_unstable();
    keys
}
