//! Reading and changing the metadata of an object that is a JSON value.
//!
//! Values come from clients: every accessor copes with absent parts and wrong types.

use kubewright_schema::selector::Labels;
use serde_json::{Map, Value};

use crate::storage::Pairs;

/// The labels of a record, as a selector looks at them.
pub(crate) struct StoredLabels<'a>(pub(crate) &'a Pairs);

impl Labels for StoredLabels<'_> {
    fn value_of(&self, key: &str) -> Option<&str> {
        self.0.get(key)
    }
}

/// The metadata, if the object has any.
pub(crate) fn metadata(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// The metadata, made when it is absent. Nothing when the object is not an object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = object
        .as_object_mut()?
        .entry("metadata")
        .or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut()
}

/// A string of the metadata, empty when absent.
pub(crate) fn meta_str<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object)
        .and_then(|m| m.get(field))
        .and_then(Value::as_str)
        .unwrap_or("")
}

/// Sets a field of the metadata.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(metadata) = metadata_mut(object) {
        metadata.insert(field.to_owned(), value.into());
    }
}

/// Removes a field of the metadata.
pub(crate) fn remove_meta(object: &mut Value, field: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove(field);
    }
}

/// Gives `object` the value that `from` has for a metadata field, or none.
pub(crate) fn copy_meta(object: &mut Value, from: &Value, field: &str) {
    match metadata(from).and_then(|m| m.get(field)) {
        Some(value) => set_meta(object, field, value.clone()),
        None => remove_meta(object, field),
    }
}

/// `metadata.name`
pub(crate) fn name(object: &Value) -> &str {
    meta_str(object, "name")
}

/// `metadata.namespace`
pub(crate) fn namespace(object: &Value) -> &str {
    meta_str(object, "namespace")
}

/// `metadata.uid`
pub(crate) fn uid(object: &Value) -> &str {
    meta_str(object, "uid")
}

/// `metadata.resourceVersion`
pub(crate) fn resource_version(object: &Value) -> &str {
    meta_str(object, "resourceVersion")
}

/// `metadata.finalizers`
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let list = metadata(object)
        .and_then(|m| m.get("finalizers"))
        .and_then(Value::as_array);
    list.map(|l| l.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Replaces `metadata.finalizers`; an empty list is left out.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        remove_meta(object, "finalizers");
    } else {
        set_meta(object, "finalizers", finalizers);
    }
}

/// Whether the object is on its way out.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !meta_str(object, "deletionTimestamp").is_empty()
}

/// `metadata.generation`, 0 when absent.
pub(crate) fn generation(object: &Value) -> i64 {
    metadata(object)
        .and_then(|m| m.get("generation"))
        .and_then(Value::as_i64)
        .unwrap_or(0)
}

/// Labels, as the store wants them.
pub(crate) fn labels(object: &Value) -> Pairs {
    let labels = metadata(object)
        .and_then(|m| m.get("labels"))
        .and_then(Value::as_object);
    labels
        .into_iter()
        .flatten()
        .filter_map(|(k, v)| Some((k, v.as_str()?)))
        .collect()
}
