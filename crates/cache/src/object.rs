//! One cached object: its JSON in one allocation, and where in it the metadata is.
//!
//! Guarantees: an object never changes; its key is known; its body is the object as the server sent it, less what the
//! [`Shape`](crate::Shape) cuts. Deliberately absent: proof that the body decodes as any type.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;

use crate::Key;
use crate::json;
use crate::value::Value;

/// An object of any kind, as the store keeps it.
pub struct Object {
    key: Key,
    body: Box<[u8]>,
    spans: Spans,
    value: Mutex<Value>,
}

/// Where things are in the body. An empty range means that there is no such field.
#[derive(Debug, Default, Clone)]
pub(crate) struct Spans {
    pub(crate) resource_version: Range<u32>,
    pub(crate) uid: Range<u32>,
    pub(crate) generation: Range<u32>,
    pub(crate) labels: Range<u32>,
    pub(crate) annotations: Range<u32>,
    pub(crate) owner_references: Range<u32>,
    pub(crate) deletion_timestamp: Range<u32>,
}

/// Who owns an object, as far as it matters for finding the owner.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Owner {
    /// Group and version of the owner's kind.
    #[serde(default)]
    pub api_version: String,
    /// The owner's kind, such as `ReplicaSet`.
    pub kind: String,
    /// The owner's name, in the namespace of the object.
    pub name: String,
    /// The owner's UID, which distinguishes it from a later object of the same name.
    #[serde(default)]
    pub uid: String,
    /// Whether the owner is the managing controller.
    #[serde(default)]
    pub controller: bool,
}

impl Owner {
    /// The API group of the owner. Owners are matched by group and kind: the version in a reference is the one that
    /// was current when it was written.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

impl Object {
    pub(crate) fn new(key: Key, body: Box<[u8]>, spans: Spans, value: Value) -> Self {
        Self {
            key,
            body,
            spans,
            value: Mutex::new(value),
        }
    }

    /// Returns the object's namespace and name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The JSON that is kept: the object, or its metadata alone where decoded values are kept.
    pub fn json(&self) -> &[u8] {
        &self.body
    }

    /// Returns the version that the server gave to this state: opaque, and empty if the object has no version.
    pub fn resource_version(&self) -> Cow<'_, str> {
        self.text(&self.spans.resource_version)
    }

    /// Returns the identity of the object over its life, empty if it has none.
    pub fn uid(&self) -> Cow<'_, str> {
        self.text(&self.spans.uid)
    }

    /// How often the specification changed, where the server counts that.
    pub fn generation(&self) -> Option<i64> {
        serde_json::from_slice(self.slice(&self.spans.generation)).ok()
    }

    /// Whether deletion has been asked for.
    pub fn is_terminating(&self) -> bool {
        !self.spans.deletion_timestamp.is_empty()
    }

    /// Returns all labels, parsed at each call.
    pub fn labels(&self) -> BTreeMap<String, String> {
        self.parsed(&self.spans.labels)
    }

    /// Returns the value of one label, if the object has it.
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
    /// let object = object("a");
    /// assert_eq!(object.label("app").as_deref(), Some("web"));
    /// assert_eq!(object.label("tier"), None);
    /// # writer.put(object);
    /// # drop(reader);
    /// ```
    pub fn label(&self, name: &str) -> Option<Cow<'_, str>> {
        self.entry(&self.spans.labels, name)
    }

    /// Returns all annotations, parsed at each call.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        self.parsed(&self.spans.annotations)
    }

    /// Returns the value of one annotation, if the object has it.
    pub fn annotation(&self, name: &str) -> Option<Cow<'_, str>> {
        self.entry(&self.spans.annotations, name)
    }

    /// Returns the owner references, parsed at each call.
    pub fn owners(&self) -> Vec<Owner> {
        self.parsed(&self.spans.owner_references)
    }

    /// Whether this is the very same state of the same object as `other`.
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        let version = self.slice(&self.spans.resource_version);
        !version.is_empty()
            && version == other.slice(&other.spans.resource_version)
            && self.is_same_object(other)
    }

    /// Whether `other` is a state of the same object: not another one of the same name.
    pub(crate) fn is_same_object(&self, other: &Self) -> bool {
        self.slice(&self.spans.uid) == other.slice(&other.spans.uid)
    }

    /// Whether this is a key and a version only, of a state that could not be read.
    pub(crate) fn is_identity(&self) -> bool {
        matches!(&*self.value.lock(), Value::Identity)
    }

    pub(crate) fn value(&self) -> &Mutex<Value> {
        &self.value
    }

    /// Bytes held on the heap by this object, the decoded value aside.
    pub fn heap_size(&self) -> usize {
        // The key is an `Arc<str>`: two counters and the text.
        size_of::<Self>() + self.body.len() + 16 + self.key.as_str().len() + 16
    }

    fn slice(&self, span: &Range<u32>) -> &[u8] {
        // Spans were made for this very body.
        self.body
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    fn text(&self, span: &Range<u32>) -> Cow<'_, str> {
        json::text(&self.body, span.start as usize..span.end as usize).unwrap_or_default()
    }

    fn parsed<T: Default + serde::de::DeserializeOwned>(&self, span: &Range<u32>) -> T {
        serde_json::from_slice(self.slice(span)).unwrap_or_default()
    }

    /// The text under `name` in the map at `span`, without parsing the others.
    fn entry(&self, span: &Range<u32>, name: &str) -> Option<Cow<'_, str>> {
        let span = span.start as usize..span.end as usize;
        let mut walk = json::Walk::new(&self.body, span, b'{').ok()?;
        while let Ok(Some(member)) = walk.member() {
            let quoted = member.name.start - 1..member.name.end + 1;
            if json::text(&self.body, quoted)? == name {
                return json::text(&self.body, member.value);
            }
        }
        None
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.resource_version())
    }
}

/// Two objects that may be the same state, without comparing their bytes.
pub(crate) fn unchanged(old: &Arc<Object>, new: &Arc<Object>) -> bool {
    Arc::ptr_eq(old, new) || old.is_same_state(new)
}
