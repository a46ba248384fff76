//! Follows the JSON path of a column into a schema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use crate::fields::{items, preserves_unknown, property, type_of, values};

/// Where a path leads.
#[derive(Debug, PartialEq)]
pub(super) enum Target<'a> {
    /// The path leads to this field.
    Field(&'a JSONSchemaProps),
    /// Somewhere that the schema says nothing of.
    Unknown,
    /// Nowhere: there is no such field.
    Missing(String),
}

enum Step {
    Name(String),
    Items,
}

/// Follows a path such as `.status.conditions[?(@.type=="Ready")].status`.
pub(super) fn follow<'a>(schema: &'a JSONSchemaProps, path: &str) -> Target<'a> {
    let mut schema = schema;
    for (position, step) in steps(path).into_iter().enumerate() {
        let below = match &step {
            // What is in the metadata is the same for all kinds.
            Step::Name(name)
                if position == 0 && matches!(name.as_str(), "metadata" | "apiVersion" | "kind") =>
            {
                return Target::Unknown;
            }
            Step::Name(name) => property(schema, name).or_else(|| values(schema)),
            Step::Items => items(schema).or_else(|| values(schema)),
        };
        schema = match below {
            Some(below) => below,
            None if preserves_unknown(schema) || type_of(schema).is_empty() => {
                return Target::Unknown;
            }
            None => return Target::Missing(shown(&step)),
        };
    }
    Target::Field(schema)
}

fn shown(step: &Step) -> String {
    match step {
        Step::Name(name) => format!("there is no field {name:?}"),
        Step::Items => "there is no list".to_owned(),
    }
}

fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '[' => {
                let end = rest.find(']').unwrap_or(rest.len());
                let inside = rest[..end].trim();
                let quoted = inside.starts_with(['\'', '"']);
                steps.push(if quoted {
                    Step::Name(inside.trim_matches(['\'', '"']).to_owned())
                } else {
                    Step::Items
                });
                rest = rest.get(end + 1..).unwrap_or("");
            }
            '.' => {
                let (name, length) = name(rest);
                if !name.is_empty() {
                    steps.push(Step::Name(name));
                }
                rest = &rest[length..];
            }
            _ => {}
        }
    }
    steps
}

/// The name at the beginning, in which a backslash hides the meaning of a dot.
fn name(text: &str) -> (String, usize) {
    let mut name = String::new();
    let mut escaped = false;
    for (position, c) in text.char_indices() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            '.' | '[' if !escaped => return (name, position),
            c => name.push(c),
        }
        escaped = false;
    }
    (name, text.len())
}
