//! Compares an answer with a recorded one and lists where they disagree.

use std::collections::BTreeSet;
use std::fmt;

use http::HeaderMap;
use serde_json::{Map, Value};

use super::exchange::{Body, Exchange};
use super::normal::{same, same_generated, scrub};

/// Headers that depend on encoding and time, not on the answer.
const UNCOMPARED_HEADERS: [&str; 2] = ["content-length", "etag"];
/// How much of a value a difference shows.
const SHOWN: usize = 200;

/// What is overlooked besides identifiers, revisions, moments, addresses and generated names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rules<'a> {
    /// Places that are not compared: JSON pointers in which `*` is any one step. Headers are `/http/name`.
    pub(crate) ignored: &'a [&'a str],
    /// What becomes of `managedFields`.
    pub(crate) managed_fields: ManagedFields,
}

/// What becomes of `managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ManagedFields {
    /// They may differ or be missing.
    #[default]
    Ignored,
    /// They are compared like anything else.
    Compared,
}

/// One place where two answers disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Where: a JSON pointer into the body, `/http/status` or `/http/name` of a header.
    pub(crate) pointer: String,
    /// What the real server said; `None` for nothing.
    pub(crate) expected: Option<String>,
    /// What we said; `None` for nothing.
    pub(crate) actual: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |side: &Option<String>| match side {
            Some(text) if text.chars().count() > SHOWN => {
                text.chars().take(SHOWN).chain("…".chars()).collect()
            }
            Some(text) => text.clone(),
            None => "nothing".to_owned(),
        };
        write!(
            f,
            "{}: expected {}, got {}",
            self.pointer,
            side(&self.expected),
            side(&self.actual)
        )
    }
}

/// Lists where an answer disagrees with the recorded one. Key order and white space never matter.
pub(crate) fn compare(
    expected: &Exchange,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    rules: &Rules<'_>,
) -> Vec<Difference> {
    let mut comparison = Comparison {
        rules,
        found: Vec::new(),
    };
    if expected.status != status {
        comparison.differ("/http/status", Some(expected.status), Some(status));
    }
    comparison.headers(&expected.headers, headers);
    comparison.body(
        &expected.response,
        &Body::read(&String::from_utf8_lossy(body)),
    );
    comparison.found
}

/// One run of [`compare`].
struct Comparison<'a> {
    rules: &'a Rules<'a>,
    found: Vec<Difference>,
}

impl Comparison<'_> {
    fn differ<T: fmt::Display>(&mut self, pointer: &str, expected: Option<T>, actual: Option<T>) {
        if self.is_ignored(pointer) {
            return;
        }
        self.found.push(Difference {
            pointer: or_root(pointer),
            expected: expected.map(|side| side.to_string()),
            actual: actual.map(|side| side.to_string()),
        });
    }

    fn is_ignored(&self, pointer: &str) -> bool {
        let steps: Vec<&str> = pointer.split('/').collect();
        let managed = self.rules.managed_fields == ManagedFields::Ignored;
        (managed && steps.contains(&"managedFields"))
            || self.rules.ignored.iter().any(|pattern| {
                let pattern: Vec<&str> = pattern.split('/').collect();
                pattern.len() <= steps.len()
                    && pattern
                        .iter()
                        .zip(&steps)
                        .all(|(want, step)| *want == "*" || want == step)
            })
    }

    /// Ours may have more headers, but not more warnings.
    fn headers(&mut self, expected: &[(String, String)], actual: &HeaderMap) {
        let mut names: BTreeSet<&str> = expected.iter().map(|(name, _)| name.as_str()).collect();
        names.insert("warning");
        for name in names {
            let want: Vec<&str> = expected
                .iter()
                .filter(|(header, _)| header == name)
                .map(|(_, value)| value.as_str())
                .collect();
            let got: Vec<&str> = actual
                .get_all(name)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .collect();
            let equal = |(want, got): (&&str, &&str)| scrub(want) == scrub(got);
            let same = want.len() == got.len() && want.iter().zip(&got).all(equal);
            if !same && !UNCOMPARED_HEADERS.contains(&name) {
                let side = |values: Vec<&str>| (!values.is_empty()).then(|| values.join(" | "));
                self.differ(&format!("/http/{name}"), side(want), side(got));
            }
        }
    }

    fn body(&mut self, expected: &Body, actual: &Body) {
        match (expected, actual) {
            (Body::Json(want), Body::Json(got)) => self.value("", want, got),
            // A watch of one event looks the same as a document.
            (Body::Lines(want), Body::Json(got)) => self.list("", want, std::slice::from_ref(got)),
            (Body::Json(want), Body::Lines(got)) => self.list("", std::slice::from_ref(want), got),
            (Body::Lines(want), Body::Lines(got)) => self.list("", want, got),
            (Body::Empty, Body::Empty) => {}
            (Body::Text(want), Body::Text(got)) if scrub(want) == scrub(got) => {}
            (want, got) => self.differ("", describe(want), describe(got)),
        }
    }

    fn value(&mut self, pointer: &str, expected: &Value, actual: &Value) {
        if self.is_ignored(pointer) {
            return;
        }
        match (expected, actual) {
            (Value::Object(want), Value::Object(got)) => self.object(pointer, want, got),
            (Value::Array(want), Value::Array(got)) => self.list(pointer, want, got),
            (Value::String(want), Value::String(got)) if same(last_name(pointer), want, got) => {}
            (want, got) if want == got => {}
            (want, got) => self.differ(pointer, Some(want), Some(got)),
        }
    }

    fn object(
        &mut self,
        pointer: &str,
        expected: &Map<String, Value>,
        actual: &Map<String, Value>,
    ) {
        let keys: BTreeSet<&String> = expected.keys().chain(actual.keys()).collect();
        for key in keys {
            let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            match (expected.get(key), actual.get(key)) {
                (Some(want), Some(got)) if key == "name" && is_generated(expected, want, got) => {}
                (Some(want), Some(got)) => self.value(&below, want, got),
                (want, got) => self.differ(&below, want, got),
            }
        }
    }

    fn list(&mut self, pointer: &str, expected: &[Value], actual: &[Value]) {
        for index in 0..expected.len().max(actual.len()) {
            let below = format!("{pointer}/{index}");
            match (expected.get(index), actual.get(index)) {
                (Some(want), Some(got)) => self.value(&below, want, got),
                (want, got) => self.differ(&below, want, got),
            }
        }
    }
}

/// Whether both names were made up from the `generateName` beside them.
fn is_generated(metadata: &Map<String, Value>, expected: &Value, actual: &Value) -> bool {
    let prefix = metadata.get("generateName").and_then(Value::as_str);
    match (prefix, expected.as_str(), actual.as_str()) {
        (Some(prefix), Some(expected), Some(actual)) => same_generated(prefix, expected, actual),
        _ => false,
    }
}

/// The last step that is a name, not an index into a list.
fn last_name(pointer: &str) -> &str {
    pointer
        .rsplit('/')
        .find(|step| step.parse::<usize>().is_err())
        .unwrap_or_default()
}

fn or_root(pointer: &str) -> String {
    if pointer.is_empty() { "/" } else { pointer }.to_owned()
}

fn describe(body: &Body) -> Option<String> {
    match body {
        Body::Empty => None,
        Body::Json(document) => Some(document.to_string()),
        Body::Lines(lines) => Some(Value::from(lines.clone()).to_string()),
        Body::Text(text) => Some(text.clone()),
    }
}
