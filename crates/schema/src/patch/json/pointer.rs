//! JSON pointers (RFC 6901) of bounded length.

use std::fmt;

use serde_json::Value;

use crate::patch::MAX_DEPTH;

/// Longest pointer that is read.
const MAX_LENGTH: usize = 16 * 1024;

/// The value of an absent member of an object.
const ABSENT: Value = Value::Null;

/// A decoded pointer; no segment means the whole document.
pub(super) struct Pointer {
    segments: Vec<String>,
}

/// Reads the `path` or `from` of an operation.
pub(super) fn required(text: Option<&str>, name: &str) -> Result<Pointer, String> {
    let text = text.ok_or_else(|| format!("operation missing {name} field: missing value"))?;
    if text.len() > MAX_LENGTH {
        return Err(format!("{name} is longer than {MAX_LENGTH} bytes"));
    }
    if text.is_empty() {
        return Ok(Pointer {
            segments: Vec::new(),
        });
    }
    let rest = text
        .strip_prefix('/')
        .ok_or_else(|| format!("{name} does not start with '/': \"{text}\""))?;
    let segments: Option<Vec<String>> = rest.split('/').map(decode).collect();
    let segments = segments.ok_or_else(|| format!("{name} has a bad escape: \"{text}\""))?;
    if segments.len() > MAX_DEPTH {
        return Err(format!("{name} is deeper than {MAX_DEPTH} levels"));
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
pub(super) fn index(key: &str, length: usize) -> Result<usize, String> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    let at: Option<usize> = digits.then(|| key.parse().ok()).flatten();
    at.filter(|at| *at < length)
        .ok_or_else(|| format!("Unable to access invalid index: {key}: invalid index referenced"))
}

impl Pointer {
    pub(super) fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// How deep the value it points to is nested.
    pub(super) fn depth(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn missing(&self) -> String {
        format!("operation does not apply: doc is missing path: \"{self}\": missing value")
    }

    /// The value it points to; an absent member of an object counts as `null`.
    pub(super) fn get<'a>(&self, document: &'a Value) -> Result<&'a Value, String> {
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
    ) -> Result<(&'a mut Value, &'p str), String> {
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
