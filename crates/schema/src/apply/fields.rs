//! Sets of fields as JSON: the `fieldsV1` of a `managedFields` entry.
//!
//! Every field is a key of its parent's object: `f:name`, `k:{"name":"a"}`, `v:"a"` or `i:0`. A field without anything
//! below it is in the set; one with fields below it is when it also has the key `.`.

use serde_json::{Map, Value};

use super::path::PathElement;
use super::set::{Node, Set};
use crate::encode;

/// Deeper fields are not distinguished: `fieldsV1` itself lies four levels deep in an object of limited depth.
const MAX_DEPTH: usize = 110;

/// Why JSON is not a set of fields.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FieldsError {
    /// Something that should be an object is not.
    #[error("a set of fields is an object")]
    NotAnObject,
    /// A key is not an element of a path.
    #[error("{0:?} is not an element of a path")]
    Element(String),
    /// The fields are nested too deeply.
    #[error("fields are nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// A set of fields as JSON.
pub fn to_fields(set: &Set) -> Value {
    let mut map = Map::new();
    write(set, MAX_DEPTH, &mut map);
    Value::Object(map)
}

fn write(set: &Set, depth: usize, map: &mut Map<String, Value>) {
    for node in set.nodes() {
        let mut below = Map::new();
        if depth > 1 && !node.below.is_empty() {
            if node.member {
                below.insert(".".into(), Value::Object(Map::new()));
            }
            write(&node.below, depth - 1, &mut below);
        }
        map.insert(key(&node.element), Value::Object(below));
    }
}

fn key(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => {
            let mut key = String::with_capacity(name.len() + 2);
            key.push_str("f:");
            key.push_str(name);
            key
        }
        PathElement::Key(keys) => {
            let fields = keys.iter().map(|(k, v)| (k.to_string(), v.clone()));
            json_key(b"k:", &Value::Object(fields.collect()))
        }
        PathElement::Value(value) => json_key(b"v:", value),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

fn json_key(prefix: &[u8], value: &Value) -> String {
    let mut key = prefix.to_vec();
    encode::write_untyped(value, &mut key);
    String::from_utf8(key).expect("encoded JSON is text")
}

/// Reads a set of fields.
///
/// # Errors
/// When the JSON is not one. Kinds of elements that are not known are left out, as a later version may have them.
pub fn from_fields(value: &Value) -> Result<Set, FieldsError> {
    read(value, MAX_DEPTH).map(|(set, _)| set)
}

/// The fields below a field, and whether it is in the set itself.
fn read(value: &Value, depth: usize) -> Result<(Set, bool), FieldsError> {
    let map = match value {
        Value::Null => return Ok((Set::new(), true)),
        Value::Object(map) => map,
        _ => return Err(FieldsError::NotAnObject),
    };
    if depth == 0 && !map.is_empty() {
        return Err(FieldsError::TooDeep);
    }
    let mut nodes = Vec::with_capacity(map.len());
    let mut member = false;
    for (key, value) in map {
        if key == "." {
            member = true;
        } else if let Some(element) = element(key)? {
            let (below, member) = read(value, depth - 1)?;
            nodes.push(Node {
                element,
                member,
                below,
            });
        }
    }
    member |= nodes.is_empty();
    Ok((Set::from_nodes(nodes), member))
}

/// Reads one key; nothing when its kind is not known.
fn element(key: &str) -> Result<Option<PathElement>, FieldsError> {
    let wrong = || FieldsError::Element(key.chars().take(100).collect());
    let (kind, text) = key.split_once(':').ok_or_else(wrong)?;
    Ok(Some(match kind {
        "f" => PathElement::field(text),
        "v" => PathElement::Value(serde_json::from_str(text).map_err(|_| wrong())?),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(text).map_err(|_| wrong())?;
            PathElement::key(keys.iter().map(|(k, v)| (k.as_str(), v.clone())))
        }
        "i" => PathElement::Index(text.parse().map_err(|_| wrong())?),
        _ if kind.len() == 1 => return Ok(None),
        _ => return Err(wrong()),
    }))
}
