//! How plans name writes and events: by what they are, so that a plan outlives small changes of the code.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::generated::Generated;

/// A write of the operator's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WriteId {
    /// The controller whose reconcile writes; `-` outside of reconciles.
    pub controller: String,
    /// `create`, `update`, `patch` or `delete`; any word for calls of an external system.
    pub verb: String,
    /// The resource, as `deployments.apps` or `foos.example.com/status`; `external` for calls of an external system.
    pub resource: String,
    /// Namespace and name. Of a name that the server makes only the prefix is given: `web-*` for one that is about to be made,
    /// `web-<2>` for the second one of the run.
    pub key: String,
    /// A hash of what is written, without what differs between runs.
    pub content: u16,
    /// The number of writes so far that are the same in all of this, this one included.
    pub occurrence: u32,
}

/// An event of a watch that the operator holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct EventId {
    /// The resource, as `deployments.apps`.
    pub resource: String,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: String,
    /// The object's namespace and name, as `default/web`; `default/web-<2>` for the second object whose name the server made
    /// from the prefix `web-`.
    pub key: String,
    /// The number of such events so far in all watches, this one included.
    pub occurrence: u32,
}

/// A text that is not part of a replay token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {what}; copy the token from the report as it is")]
pub struct TokenError {
    /// The text.
    pub(crate) text: String,
    /// What it should have been.
    pub(crate) what: &'static str,
}

impl TokenError {
    pub(crate) fn new(text: &str, what: &'static str) -> Self {
        let text = text.to_owned();
        Self { text, what }
    }
}

impl WriteId {
    /// Whether it is a write of a subresource `status`.
    pub fn is_status(&self) -> bool {
        self.resource.ends_with("/status")
    }
}

impl fmt::Display for WriteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            controller,
            verb,
            resource,
            content,
            occurrence,
            ..
        } = self;
        let (controller, key) = (escape(controller), escape(&self.key));
        write!(
            f,
            "{controller},{verb},{resource},{key},{content:04x}#{occurrence}"
        )
    }
}

impl FromStr for WriteId {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let bad = || TokenError::new(text, "a write");
        let (rest, occurrence) = text.rsplit_once('#').ok_or_else(bad)?;
        let parts: Vec<&str> = rest.split(',').collect();
        let [controller, verb, resource, key, content] = parts[..] else {
            return Err(bad());
        };
        Ok(Self {
            controller: unescape(controller),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            key: unescape(key),
            content: u16::from_str_radix(content, 16).map_err(|_| bad())?,
            occurrence: occurrence.parse().map_err(|_| bad())?,
        })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = escape(&self.key);
        write!(
            f,
            "{},{},{key}#{}",
            self.resource, self.kind, self.occurrence
        )
    }
}

impl FromStr for EventId {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let bad = || TokenError::new(text, "an event");
        let (rest, occurrence) = text.rsplit_once('#').ok_or_else(bad)?;
        let parts: Vec<&str> = rest.split(',').collect();
        let [resource, kind, key] = parts[..] else {
            return Err(bad());
        };
        Ok(Self {
            resource: resource.to_owned(),
            kind: kind.to_owned(),
            key: unescape(key),
            occurrence: occurrence.parse().map_err(|_| bad())?,
        })
    }
}

/// Names may have characters that tokens use.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '%' | ',' | ';' | ':' | '#' | ' ' | '\'' => {
                escaped.push_str(&format!("%{:02x}", u32::from(character)));
            }
            character => escaped.push(character),
        }
    }
    escaped
}

pub(crate) fn unescape(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[2..]);
            }
            None => {
                plain.push('%');
                plain.push_str(part);
            }
        }
    }
    plain
}

/// A hash of a request's body, without versions, uids, times and names that the server made: FNV-1a, the same in every process.
pub(crate) fn content(body: &[u8], generated: &Generated) -> u16 {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(mut value) => {
            steady(&mut value, generated);
            value.to_string().into_bytes()
        }
        Err(_) => body.to_vec(),
    };
    let hash = hash(&text);
    u16::try_from((hash >> 32 ^ hash) & 0xffff).unwrap_or_default()
}

/// FNV-1a with 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn steady(value: &mut Value, generated: &Generated) {
    match value {
        Value::Object(fields) => {
            for name in ["resourceVersion", "managedFields", "uid", "generation"] {
                fields.remove(name);
            }
            let values = fields.values_mut();
            values.for_each(|value| steady(value, generated));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| steady(item, generated)),
        Value::String(text) if is_time(text) => *text = "<time>".to_owned(),
        Value::String(text) => {
            if let Cow::Owned(alias) = generated.alias(text) {
                *text = alias;
            }
        }
        _ => {}
    }
}

/// Whether a text is a moment, as `2030-01-01T00:00:00Z`.
pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    bytes.len() >= 20
        && bytes.len() <= 35
        && bytes[4] == b'-'
        && bytes[10] == b'T'
        && digits(0..4)
        && digits(5..7)
        && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_read_as_they_are_written() {
        let write = WriteId {
            controller: "a,b".to_owned(),
            verb: "create".to_owned(),
            resource: "roles.rbac.authorization.k8s.io".to_owned(),
            key: "default/system:x".to_owned(),
            content: 0xa1,
            occurrence: 3,
        };
        assert_eq!(write.to_string().parse(), Ok(write));
        let event = EventId {
            resource: "pods".to_owned(),
            kind: "ADDED".to_owned(),
            key: "n/a#1".to_owned(),
            occurrence: 1,
        };
        assert_eq!(event.to_string().parse(), Ok(event));
        assert!("pods,ADDED#1".parse::<EventId>().is_err());
    }

    #[test]
    fn content_leaves_out_what_differs_between_runs() {
        let of = |text: &str| content(text.as_bytes(), &Generated::default());
        let first = r#"{"metadata":{"uid":"1","resourceVersion":"5"},"at":"2030-01-01T00:00:00Z"}"#;
        let second = r#"{"metadata":{"resourceVersion":"6"},"at":"2030-01-01T00:00:09.5Z"}"#;
        assert_eq!(of(first), of(second));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":2}"#));
    }
}
