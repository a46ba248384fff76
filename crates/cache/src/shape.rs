//! How objects are kept: what is cut out of them as they arrive, and whether they are decoded at once.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decode::decode;
use crate::selection::Selection;

/// A decoded value of some type.
pub(crate) type AnyValue = Arc<dyn Any + Send + Sync>;
type Decode = Arc<dyn Fn(&[u8]) -> Result<AnyValue, serde_json::Error> + Send + Sync>;
type Edit = Arc<dyn Fn(&mut Value) -> Result<(), String> + Send + Sync>;

/// What the store keeps of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Keep {
    /// The JSON bytes. A value is decoded when it is used and shared while it is in use; an object that turns out not
    /// to decode is reported then, and counts as absent. The least memory and the fastest start.
    #[default]
    Compact,
    /// The JSON bytes, after one decode to see that it works: what does not decode never gets into the store.
    Checked,
    /// The decoded value, and of the bytes the metadata only. For those who read everything all the time.
    Decoded,
}

/// What becomes of an object between the wire and the store.
///
/// By default `metadata.managedFields` is dropped, which nobody but the API server reads.
#[derive(Clone)]
pub struct Shape {
    pub(crate) top_level: Vec<String>,
    pub(crate) metadata: Vec<String>,
    pub(crate) edit: Option<Edit>,
    pub(crate) keep: Keep,
    pub(crate) decode: Option<Decode>,
    pub(crate) selection: Option<Selection>,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            top_level: Vec::new(),
            metadata: vec!["managedFields".to_owned()],
            edit: None,
            keep: Keep::Compact,
            decode: None,
            selection: None,
        }
    }
}

impl Shape {
    /// Keeps `metadata.managedFields`, which is dropped by default.
    #[must_use]
    pub fn with_managed_fields(mut self) -> Self {
        self.metadata.retain(|name| name != "managedFields");
        self
    }

    /// Drops a field, `status` or `metadata.annotations`, before anything is decoded. Fields further down need
    /// [`transform`](Shape::transform).
    #[must_use]
    pub fn without(mut self, field: &str) -> Self {
        match field.strip_prefix("metadata.") {
            Some(inner) => self.metadata.push(inner.to_owned()),
            None => self.top_level.push(field.to_owned()),
        }
        self
    }

    /// Changes each object as it arrives. An error is reported, and the object skipped.
    ///
    /// It sees an object before anybody else does, and costs a parse of the whole object; prefer
    /// [`without`](Shape::without) where that is enough. It must not change namespace and name.
    #[must_use]
    pub fn transform(
        mut self,
        edit: impl Fn(&mut Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.edit = Some(Arc::new(edit));
        self
    }

    /// Keeps only the objects that a selection holds for.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.selection = Some(selection);
        self
    }

    /// The fields that objects lack, as [`without`](Shape::without) takes them; `*` where a transform may drop any.
    /// Managed fields do not count: the server keeps account of them whatever is sent.
    pub fn dropped(&self) -> Vec<String> {
        let metadata = self.metadata.iter().filter(|name| *name != "managedFields");
        let metadata = metadata.map(|name| format!("metadata.{name}"));
        let transformed = self.edit.as_ref().map(|_| "*".to_owned());
        let top_level = self.top_level.iter().cloned();
        top_level.chain(metadata).chain(transformed).collect()
    }

    /// What is kept of each object.
    #[must_use]
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = keep;
        self
    }

    /// Fixes the type that objects are decoded as, where they are decoded on arrival.
    pub(crate) fn of<K: DeserializeOwned + Send + Sync + 'static>(mut self) -> Self {
        self.decode = Some(Arc::new(|bytes| {
            decode::<K>(bytes).map(|value| Arc::new(value) as AnyValue)
        }));
        self
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shape")
            .field("top_level", &self.top_level)
            .field("metadata", &self.metadata)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}
