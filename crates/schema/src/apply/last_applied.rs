//! The annotation of client-side apply, as far as server-side apply minds it.
//!
//! Objects that `kubectl apply` made are owned by an update of the same person. When that person goes over to
//! `kubectl apply --server-side`, what the annotation says was applied is not a conflict; and for going back, the
//! annotation is kept up to date.

use serde_json::{Map, Value};

use super::compare::compare;
use super::conflict::Conflicts;
use super::manager::FieldManager;
use super::set::Set;
use super::to_set::to_field_set;
use crate::encode;

/// The one manager that this is for.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Most bytes in all annotations of an object.
const MAX_ANNOTATIONS: usize = 256 * 1024;

impl FieldManager<'_> {
    /// The conflicts that the annotation of the live object does not settle.
    pub(super) fn conflicts_beyond_last_applied(
        &self,
        live: &Value,
        conflicts: Conflicts,
    ) -> Conflicts {
        let Some(allowed) = self.last_applied_fields(live) else {
            return conflicts;
        };
        if conflicts.fields().difference(&allowed).is_empty() {
            return Conflicts::default();
        }
        let left = conflicts.0.into_iter();
        Conflicts(left.filter(|c| !allowed.contains(&c.path)).collect())
    }

    /// Fields that were applied by the client and still have the value that was applied.
    fn last_applied_fields(&self, live: &Value) -> Option<Set> {
        let text = annotations(live)?.get(ANNOTATION)?.as_str()?;
        let config: Value = serde_json::from_str(text).ok()?;
        if config.get("apiVersion").and_then(Value::as_str) != Some(self.api_version) {
            return None;
        }
        let typed = self.home()?;
        let changes = compare(typed, &config, live);
        let fields = to_field_set(typed, &config)
            .difference(&changes.modified)
            .difference(&changes.added)
            .difference(&changes.removed);
        Some(fields)
    }
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("annotations")?.as_object()
}

/// Writes what was applied into the annotation, if the object has it.
pub(super) fn sync(object: &mut Value, config: &Value) {
    let has_it = annotations(object)
        .and_then(|annotations| annotations.get(ANNOTATION)?.as_str())
        .is_some_and(|text| !text.is_empty());
    if !has_it {
        return;
    }
    let text = applied_text(config);
    let Some(annotations) = object["metadata"]["annotations"].as_object_mut() else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

/// The configuration as the annotation has it: without the annotation itself, and with the line end of an encoder.
fn applied_text(config: &Value) -> String {
    let mut config = config.clone();
    if let Some(metadata) = config.get_mut("metadata").and_then(Value::as_object_mut)
        && let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
    {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let mut text = Vec::new();
    encode::write_untyped(&config, &mut text);
    text.push(b'\n');
    String::from_utf8(text).expect("encoded JSON is text")
}
