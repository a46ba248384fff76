//! Reading an object the way a printer does: what is missing, null or of another type is empty.

use jiff::Timestamp;
use kubewright_schema::duration;
use serde_json::{Map, Value};

/// An object and the moment it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> View<'a> {
    pub(super) fn name(&self) -> &'a str {
        text(self.object, "metadata.name")
    }

    /// Time since creation.
    pub(super) fn age(&self) -> String {
        self.since("metadata.creationTimestamp")
    }

    /// Time since the moment at `path`.
    pub(super) fn since(&self, path: &str) -> String {
        since(text(self.object, path), self.now)
    }

    pub(super) fn text(&self, path: &str) -> &'a str {
        text(self.object, path)
    }

    pub(super) fn int(&self, path: &str) -> i64 {
        int(self.object, path)
    }

    pub(super) fn list(&self, path: &str) -> &'a [Value] {
        list(self.object, path)
    }

    pub(super) fn at(&self, path: &str) -> Option<&'a Value> {
        at(self.object, path)
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.at("metadata.annotations")?.get(key)?.as_str()
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }
}

/// The value at a dotted path; null counts as missing.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(value, |value, key| value.get(key))
        .filter(|found| !found.is_null())
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn int(value: &Value, path: &str) -> i64 {
    at(value, path).and_then(Value::as_i64).unwrap_or_default()
}

pub(super) fn flag(value: &Value, path: &str) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

pub(super) fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    at(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn map<'a>(value: &'a Value, path: &str) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// A quantity or an int-or-string as it is stored; `None` when it is missing.
pub(super) fn scalar(value: &Value, path: &str) -> Option<String> {
    at(value, path).and_then(as_scalar)
}

/// A quantity or an int-or-string as it is stored.
pub(super) fn as_scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A quantity as it is stored; a missing one is zero.
pub(super) fn quantity(value: &Value, path: &str) -> String {
    scalar(value, path).unwrap_or_else(|| "0".to_owned())
}

/// `value`, or what stands for it when it is empty.
pub(super) fn or<'a>(value: &'a str, instead: &'a str) -> &'a str {
    if value.is_empty() { instead } else { value }
}

/// The first condition of a type.
pub(super) fn condition<'a>(conditions: &'a [Value], type_: &str) -> Option<&'a Value> {
    conditions
        .iter()
        .find(|condition| text(condition, "type") == type_)
}

/// Whether the first condition of a type says `True`.
pub(super) fn is_true(conditions: &[Value], type_: &str) -> bool {
    condition(conditions, type_).is_some_and(|found| text(found, "status") == "True")
}

/// Strings of a list, or one string field of each of its elements, joined.
pub(super) fn join(items: &[Value], field: Option<&str>, separator: &str) -> String {
    let texts: Vec<&str> = items
        .iter()
        .map(|item| match field {
            Some(field) => text(item, field),
            None => item.as_str().unwrap_or_default(),
        })
        .collect();
    texts.join(separator)
}

/// At most `limit` of `total` entries, then how many are left out.
pub(super) fn with_more(shown: &[String], separator: &str, limit: usize, total: usize) -> String {
    let text = shown[..shown.len().min(limit)].join(separator);
    if total > limit {
        format!("{text} + {} more...", total - limit)
    } else {
        text
    }
}

/// Time between a moment of the wire and now; `<unknown>` without one.
pub(crate) fn since(moment: &str, now: Timestamp) -> String {
    match moment.parse::<Timestamp>() {
        Ok(moment) => duration::human(now.duration_since(moment).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}
