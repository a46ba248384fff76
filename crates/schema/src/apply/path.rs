//! Paths to fields: each step names a field, an item by its keys, an item by its value, or an item by its place.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use super::value;

/// One step of a [`Path`].
///
/// Steps are ordered as they are written in `managedFields`: names first, then keys, values and indexes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PathElement {
    /// A field of an object: `.spec`.
    Field(Box<str>),
    /// The item of a list that has these values in its key fields, sorted by name: `[name="a"]`.
    Key(Box<[(Box<str>, Value)]>),
    /// The item of a set that has this value: `[="a"]`.
    Value(Value),
    /// The item of a list at an index: `[0]`.
    Index(i64),
}

/// The way to a field from the root of an object.
pub type Path = Vec<PathElement>;

impl PathElement {
    /// The step to a field of an object.
    pub fn field(name: &str) -> Self {
        PathElement::Field(name.into())
    }

    /// The step to an item of a list with keys.
    pub fn key<'a>(keys: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let mut keys: Vec<(Box<str>, Value)> =
            keys.into_iter().map(|(k, v)| (k.into(), v)).collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(keys.into())
    }

    /// The name when the step is a field of an object.
    pub fn as_field(&self) -> Option<&str> {
        match self {
            PathElement::Field(name) => Some(name),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                let fields = a
                    .iter()
                    .zip(b)
                    .map(|(a, b)| a.0.cmp(&b.0).then_with(|| value::compare(&a.1, &b.1)));
                let mut differences = fields.filter(|order| order.is_ne());
                differences.next().unwrap_or(a.len().cmp(&b.len()))
            }
            (PathElement::Value(a), PathElement::Value(b)) => value::compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Key(keys) => {
                f.write_str("[")?;
                for (i, (name, value)) in keys.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={value}")?;
                }
                f.write_str("]")
            }
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// A path as conflicts show it: `.spec.containers[name="a"].image`.
pub(super) fn display(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
