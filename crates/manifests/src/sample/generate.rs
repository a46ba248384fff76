//! Makes a value from a schema, without regard to expressions.

use serde_json::{Map, Value, json};

use super::{branches, number, text};

/// The most items of a list, or entries of a map, that are made.
const MAX_ITEMS: u64 = 100;
/// Fields down to here are shown even when they are optional: those of `spec`.
const SHOWN_LEVEL: usize = 2;

/// How much of a schema an object shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    /// What is required, and the simple optional fields of `spec`.
    Generous,
    /// Only what is required.
    Required,
}

/// Makes values in one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Generator {
    extent: Extent,
    branch: usize,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// The name of the field, of which texts are made.
    name: &'a str,
    /// How deep: 0 is the object itself.
    level: usize,
    /// Which of its siblings in a list it is; no two may be equal.
    variant: usize,
}

impl Generator {
    /// Makes values of this extent, with this branch where there are several.
    pub(super) fn new(extent: Extent, branch: usize) -> Self {
        Self { extent, branch }
    }

    /// The whole object, without metadata; and without a status, unless it is required.
    pub(super) fn root(self, schema: &Value) -> Value {
        let place = Place {
            name: "",
            level: 0,
            variant: 0,
        };
        let schema = branches::take(schema, self.branch);
        let mut fields = Map::new();
        for (name, property) in properties(&schema) {
            let known = matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
            let wanted =
                is_required(&schema, name) || (name != "status" && self.shows(property, place));
            if !known && wanted {
                fields.insert(name.clone(), self.value(property, below(place, name)));
            }
        }
        Value::Object(fields)
    }

    /// The value of one field on its own.
    pub(super) fn field(self, schema: &Value, name: &str) -> Value {
        let level = SHOWN_LEVEL + 1;
        self.value(
            schema,
            Place {
                name,
                level,
                variant: 0,
            },
        )
    }

    /// One of several values of one field on its own.
    pub(super) fn variant(self, schema: &Value, name: &str, variant: usize) -> Value {
        let place = Place {
            name,
            level: SHOWN_LEVEL,
            variant,
        };
        self.value(schema, place)
    }

    fn value(self, schema: &Value, place: Place<'_>) -> Value {
        let schema = &*branches::take(schema, self.branch);
        if let Some(given) = given(schema, place.variant) {
            return given;
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return match schema.get("pattern") {
                Some(_) => text::make(schema, place.name, place.variant).into(),
                None => number::integer(schema, place.variant),
            };
        }
        match schema["type"].as_str() {
            Some("string") => text::make(schema, place.name, place.variant).into(),
            Some("integer") => number::integer(schema, place.variant),
            Some("number") => number::number(schema, place.variant),
            Some("boolean") => Value::Bool(place.variant % 2 == 1),
            Some("array") => self.list(schema, place),
            _ => self.object(schema, place),
        }
    }

    fn list(self, schema: &Value, place: Place<'_>) -> Value {
        let least = size(schema, "minItems").unwrap_or(0).max(1);
        let most = size(schema, "maxItems").unwrap_or(MAX_ITEMS).min(MAX_ITEMS);
        let name = singular(place.name);
        let item = |index: u64| {
            let variant = place.variant + usize::try_from(index).unwrap_or(0);
            self.value(
                &schema["items"],
                Place {
                    name,
                    level: place.level + 1,
                    variant,
                },
            )
        };
        (0..least.min(most)).map(item).collect()
    }

    fn object(self, schema: &Value, place: Place<'_>) -> Value {
        let mut fields = Map::new();
        if schema["x-kubernetes-embedded-resource"] == true {
            fields.insert("apiVersion".into(), json!("v1"));
            fields.insert("kind".into(), json!("ConfigMap"));
            fields.insert("metadata".into(), json!({ "name": "example" }));
        }
        for (name, property) in properties(schema) {
            let wanted = is_required(schema, name) || self.shows(property, place);
            if wanted && !fields.contains_key(name) {
                fields.insert(name.clone(), self.value(property, below(place, name)));
            }
        }
        self.fill(schema, place, &mut fields);
        Value::Object(fields)
    }

    /// Adds fields or entries until there are enough of them.
    fn fill(self, schema: &Value, place: Place<'_>, fields: &mut Map<String, Value>) {
        let least = size(schema, "minProperties").unwrap_or(0).min(MAX_ITEMS);
        let missing = |fields: &Map<String, Value>| (fields.len() as u64) < least;
        for (name, property) in properties(schema) {
            if missing(fields) && !fields.contains_key(name) {
                fields.insert(name.clone(), self.value(property, below(place, name)));
            }
        }
        let values = &schema["additionalProperties"];
        for index in 1..=least {
            if missing(fields) && !values.is_null() {
                let place = Place {
                    name: "value",
                    level: place.level + 1,
                    variant: 0,
                };
                fields.insert(format!("key-{index}"), self.value(values, place));
            }
        }
    }

    /// Whether an optional field is shown.
    fn shows(self, property: &Value, parent: Place<'_>) -> bool {
        let level = parent.level + 1;
        let simple = matches!(
            property["type"].as_str(),
            Some("string" | "integer" | "number" | "boolean")
        );
        let is_spec = level < SHOWN_LEVEL && property["type"] == "object";
        self.extent == Extent::Generous
            && level <= SHOWN_LEVEL
            && (simple
                || is_spec
                || property.get("default").is_some()
                || property.get("example").is_some())
    }
}

/// A value that the schema itself names.
fn given(schema: &Value, variant: usize) -> Option<Value> {
    if variant == 0
        && let Some(value) = ["example", "default"]
            .iter()
            .find_map(|key| schema.get(key))
    {
        return Some(value.clone());
    }
    let values = schema.get("enum")?.as_array()?;
    values.get(variant % values.len().max(1)).cloned()
}

fn below<'a>(place: Place<'_>, name: &'a str) -> Place<'a> {
    Place {
        name,
        level: place.level + 1,
        variant: place.variant,
    }
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
}

pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

fn size(schema: &Value, key: &str) -> Option<u64> {
    schema.get(key)?.as_u64()
}

/// What an item of a list of this name is called.
fn singular(name: &str) -> &str {
    if let Some(stem) = name
        .strip_suffix("ses")
        .or_else(|| name.strip_suffix("xes"))
    {
        return &name[..stem.len() + 1];
    }
    match name.strip_suffix('s') {
        Some(stem) if !stem.is_empty() && !stem.ends_with('s') => stem,
        _ => name,
    }
}
