//! JSON pointers (RFC 6901) of bounded length.

use std::fmt;

use serde_json::Value;

use super::OperationError;
use crate::patch::MAX_DEPTH;

/// Longest pointer that is read.
pub(super) const MAX_LENGTH: usize = 16 * 1024;

/// The value of an absent member of an object.
const ABSENT: Value = Value::Null;

/// A decoded pointer; no segment means the whole document.
pub(super) struct Pointer {
    segments: Vec<String>,
}

/// Reads the `path` or `from` of an operation.
pub(super) fn required(text: Option<&str>, name: &'static str) -> Result<Pointer, OperationError> {
    let text = text.ok_or(OperationError::NoPointer(name))?;
    if text.len() > MAX_LENGTH {
        return Err(OperationError::LongPointer(name));
    }
    if text.is_empty() {
        return Ok(Pointer {
            segments: Vec::new(),
        });
    }
    let Some(rest) = text.strip_prefix('/') else {
        let text = text.to_owned();
        return Err(OperationError::RelativePointer { name, text });
    };
    let segments: Option<Vec<String>> = rest.split('/').map(decode).collect();
    let Some(segments) = segments else {
        let text = text.to_owned();
        return Err(OperationError::Escape { name, text });
    };
    if segments.len() > MAX_DEPTH {
        return Err(OperationError::DeepPointer(name));
    }
    Ok(Pointer { segments })
}

/// `~0` is `~` and `~1` is `/`; nothing else may follow a `~`.
fn decode(segment: &str) -> Option<String> {
    let mut parts = segment.split('~');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (escape, rest) = part.split_at_checked(1)?;
        text.push(match escape {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        text.push_str(rest);
    }
    Some(text)
}

/// Reads an array index that must be below `length`. Signs are refused: nothing counts from the end.
pub(super) fn index(key: &str, length: usize) -> Result<usize, OperationError> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    let at: Option<usize> = digits.then(|| key.parse().ok()).flatten();
    at.filter(|at| *at < length)
        .ok_or_else(|| OperationError::Index(key.to_owned()))
}

impl Pointer {
    pub(super) fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// How deep the value it points to is nested.
    pub(super) fn depth(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn missing(&self) -> OperationError {
        OperationError::MissingPath(self.to_string())
    }

    /// The value it points to; an absent member of an object counts as `null`.
    pub(super) fn get<'a>(&self, document: &'a Value) -> Result<&'a Value, OperationError> {
        let (key, parents) = self.segments.split_last().ok_or_else(|| self.missing())?;
        let mut parent = document;
        for segment in parents {
            parent = child(parent, segment).ok_or_else(|| self.missing())?;
        }
        match parent {
            Value::Object(members) => Ok(members.get(key).unwrap_or(&ABSENT)),
            Value::Array(items) => index(key, items.len()).map(|at| &items[at]),
            _ => Err(self.missing()),
        }
    }

    /// The object or array around the value it points to, and the last segment.
    pub(super) fn parent_mut<'a, 'p>(
        &'p self,
        document: &'a mut Value,
    ) -> Result<(&'a mut Value, &'p str), OperationError> {
        let (key, parents) = self.segments.split_last().ok_or_else(|| self.missing())?;
        let mut parent = document;
        for segment in parents {
            parent = child_mut(parent, segment).ok_or_else(|| self.missing())?;
        }
        Ok((parent, key))
    }
}

fn child<'a>(parent: &'a Value, key: &str) -> Option<&'a Value> {
    match parent {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(index(key, items.len()).ok()?),
        _ => None,
    }
}

fn child_mut<'a>(parent: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match parent {
        Value::Object(members) => members.get_mut(key),
        Value::Array(items) => {
            let at = index(key, items.len()).ok()?;
            items.get_mut(at)
        }
        _ => None,
    }
}

/// Writes the pointer with its escapes.
impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1"))?;
        }
        Ok(())
    }
}
