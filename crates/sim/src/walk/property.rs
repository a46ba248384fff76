//! The properties of a schema that people can change, and where they are in an object.

use std::fmt;

use kubewright_manifests::sample;
use serde_json::{Map, Value};

/// Fields of every object that the walk leaves alone.
const KEPT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
/// More properties than these are not looked at.
const MAX_PROPERTIES: usize = 20_000;
/// The key of an entry that is made.
const ENTRY: &str = "walk";

/// A part of the way to a property.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Field(String),
    /// Any item of a list.
    Item,
    /// Any entry of a map.
    Entry,
}

/// A property of a schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Property {
    path: Vec<Part>,
    pub(crate) schema: Value,
    /// Whether an object may do without it.
    pub(crate) optional: bool,
}

/// What the value of a property is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Scalar,
    List,
    Map,
    Object,
}

impl Property {
    /// The form of its values.
    pub(crate) fn form(&self) -> Form {
        match self.schema["type"].as_str() {
            Some("array") => Form::List,
            Some("object") if has_fields(&self.schema) => Form::Object,
            Some("object") => Form::Map,
            _ => Form::Scalar,
        }
    }

    /// The name of the field, or of the one that it is an item or an entry of.
    pub(crate) fn name(&self) -> &str {
        let names = self.path.iter().rev().find_map(|part| match part {
            Part::Field(name) => Some(name.as_str()),
            Part::Item | Part::Entry => None,
        });
        names.unwrap_or_default()
    }

    /// Makes sure that an object has a place for the property, and gives the pointer to it. The property itself may be
    /// missing there.
    pub(crate) fn place(&self, root: &Value, object: &mut Value) -> Option<String> {
        let (mut schema, mut pointer) = (root, String::new());
        let last = self.path.len().checked_sub(1)?;
        for (at, part) in self.path.iter().enumerate() {
            let parent = object.pointer_mut(&pointer)?;
            match part {
                Part::Field(name) => {
                    schema = schema.get("properties")?.get(name)?;
                    let fields = parent.as_object_mut()?;
                    if at < last && fields.get(name).is_none_or(Value::is_null) {
                        fields.insert(name.clone(), first(schema, name)?);
                    }
                    pointer = format!("{pointer}/{}", escape(name));
                }
                Part::Item => {
                    schema = schema.get("items")?;
                    let items = parent.as_array_mut()?;
                    if items.is_empty() {
                        items.push(first(schema, "item")?);
                    }
                    pointer.push_str("/0");
                }
                Part::Entry => {
                    schema = schema.get("additionalProperties")?;
                    let entries = parent.as_object_mut()?;
                    if entries.is_empty() {
                        entries.insert(ENTRY.to_owned(), first(schema, ENTRY)?);
                    }
                    let (name, _) = entries.iter().next()?;
                    pointer = format!("{pointer}/{}", escape(name));
                }
            }
        }
        Some(pointer)
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.path.iter().enumerate() {
            match part {
                Part::Field(name) if at == 0 => f.write_str(name)?,
                Part::Field(name) => write!(f, ".{name}")?,
                Part::Item => f.write_str("[*]")?,
                Part::Entry => f.write_str(".*")?,
            }
        }
        Ok(())
    }
}

/// All properties that can be changed, parents before their fields. A required object is changed by its fields; a list or a
/// map of plain values is one property.
pub(crate) fn properties(root: &Value) -> Vec<Property> {
    let mut found = Vec::new();
    let fields = root["properties"].as_object().into_iter().flatten();
    for (name, schema) in fields.filter(|(name, _)| !KEPT.contains(&name.as_str())) {
        let mut path = vec![Part::Field(name.clone())];
        if has_fields(schema) {
            below(schema, &mut path, &mut found);
        } else {
            visit(schema, is_optional(root, name), &mut path, &mut found);
        }
    }
    found
}

fn visit(schema: &Value, optional: bool, path: &mut Vec<Part>, found: &mut Vec<Property>) {
    if found.len() >= MAX_PROPERTIES {
        return;
    }
    if optional || !has_fields(schema) {
        found.push(Property {
            path: path.clone(),
            schema: schema.clone(),
            optional,
        });
    }
    below(schema, path, found);
}

/// The properties within one.
fn below(schema: &Value, path: &mut Vec<Part>, found: &mut Vec<Property>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        path.push(Part::Field(name.clone()));
        visit(field, is_optional(schema, name), path, found);
        path.pop();
    }
    for (key, part) in [("items", Part::Item), ("additionalProperties", Part::Entry)] {
        let inner = &schema[key];
        let is_plain = !has_fields(inner) && inner["type"] != "array" && !has_entries(inner);
        if inner.is_object() && !is_plain {
            path.push(part);
            if has_fields(inner) {
                below(inner, path, found);
            } else {
                visit(inner, false, path, found);
            }
            path.pop();
        }
    }
}

fn has_fields(schema: &Value) -> bool {
    let fields = schema["properties"].as_object();
    fields.is_some_and(|fields| !fields.is_empty())
}

fn has_entries(schema: &Value) -> bool {
    schema["additionalProperties"].is_object()
}

fn is_optional(parent: &Value, name: &str) -> bool {
    let required = parent["required"].as_array();
    !required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn first(schema: &Value, name: &str) -> Option<Value> {
    let mut values = sample::values(schema, name).into_iter();
    let value = values.next()?;
    // An object without a single field would be no place for one.
    Some(if value.is_null() {
        Value::Object(Map::new())
    } else {
        value
    })
}

pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        let text = json!({"type": "string"});
        let port = json!({"type": "object", "required": ["port"], "properties": {
            "port": {"type": "integer"}, "name": text}});
        json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
            "spec": {"type": "object", "required": ["image", "main"], "properties": {
                "image": text,
                "main": port,
                "ports": {"type": "array", "items": port},
                "labels": {"type": "object", "additionalProperties": text},
                "pools": {"type": "object", "additionalProperties": port},
            }},
        }})
    }

    #[test]
    fn every_property_that_can_be_changed_is_found_once() {
        let found = properties(&schema());
        let mut names: Vec<String> = found.iter().map(Property::to_string).collect();
        names.sort();
        let expected = [
            "spec.image",
            "spec.labels",
            "spec.main.name",
            "spec.main.port",
            "spec.pools",
            "spec.pools.*.name",
            "spec.pools.*.port",
            "spec.ports",
            "spec.ports[*].name",
            "spec.ports[*].port",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn place_of_a_property_is_made_where_it_is_missing() {
        let schema = schema();
        for property in properties(&schema) {
            let mut object = json!({"spec": {}});
            let pointer = property.place(&schema, &mut object);
            let pointer = pointer.unwrap_or_else(|| panic!("{property} has no place"));
            let (parent, _) = pointer.rsplit_once('/').expect("it is within the spec");
            assert!(object.pointer(parent).is_some(), "{property}: {object}");
        }
    }
}
