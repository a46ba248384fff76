//! Structs and enums from a schema.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::model::{Definition, Enum, Field, Struct, Type};
use super::{marks, names};
use crate::fields::{
    MAX_DEPTH, is_int_or_string, is_required, items, preserves_unknown, properties, property,
    type_of, values,
};

/// Collects the types of a kind.
#[derive(Debug)]
pub(super) struct Builder {
    taken: BTreeSet<String>,
    pub(super) definitions: Vec<Definition>,
    /// What the Rust types could not express.
    pub(super) notes: Vec<String>,
}

/// Where a schema stands, and what a type for it would be called.
struct Place {
    path: String,
    name: String,
    depth: usize,
}

impl Builder {
    pub(super) fn new() -> Self {
        let taken = names::USED.iter().map(|name| (*name).to_owned()).collect();
        Self {
            taken,
            definitions: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Keeps a name from being given to something else.
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_owned());
    }

    /// The struct that stands for the kind. Types below it are called after the kind and their field.
    pub(super) fn root(
        &mut self,
        name: &str,
        schema: &JSONSchemaProps,
        kind: &str,
        path: &str,
    ) -> Struct {
        let place = Place {
            path: path.to_owned(),
            name: kind.to_owned(),
            depth: 1,
        };
        self.structure(name.to_owned(), schema, &place)
    }

    /// The struct of the status.
    pub(super) fn status(&mut self, name: &str, schema: &JSONSchemaProps, kind: &str) {
        let place = Place {
            path: ".status".to_owned(),
            name: format!("{kind}Status"),
            depth: 1,
        };
        let position = self.definitions.len();
        let status = self.structure(name.to_owned(), schema, &place);
        self.definitions
            .insert(position, Definition::Struct(status));
    }

    /// Rules on the whole object have no place on the struct of its spec.
    pub(super) fn note_root(&mut self, schema: &JSONSchemaProps) {
        for rule in schema.x_kubernetes_validations.iter().flatten() {
            let rule = rule.rule.split_whitespace().collect::<Vec<_>>().join(" ");
            self.notes
                .push(format!("the rule on the whole object: `{rule}`"));
        }
    }

    fn structure(&mut self, name: String, schema: &JSONSchemaProps, place: &Place) -> Struct {
        let mut fields: Vec<Field> = Vec::new();
        for (json, property) in properties(schema) {
            let snake = names::snake(json);
            let unused = names::unique(snake, |name| {
                fields.iter().any(|field| field.name == names::field(name))
            });
            let field = self.field(json, unused, property, is_required(schema, json), place);
            fields.push(field);
        }
        self.note_combinators(schema, &place.path);
        Struct {
            name,
            description: schema.description.clone().unwrap_or_default(),
            marks: marks::of_struct(schema),
            fields,
            open: preserves_unknown(schema),
        }
    }

    fn field(
        &mut self,
        json: &str,
        snake: String,
        schema: &JSONSchemaProps,
        required: bool,
        parent: &Place,
    ) -> Field {
        let place = Place {
            path: format!("{}.{json}", parent.path),
            name: format!("{}{}", parent.name, names::pascal(json)),
            depth: parent.depth + 1,
        };
        let ty = self.ty(schema, place);
        let mut marks = marks::of_value(schema, &ty);
        marks.extend(marks::of_field(schema));
        let name = names::field(&snake);
        let unraw = name.strip_prefix("r#").unwrap_or(&name);
        Field {
            rename: (names::camel(unraw) != json).then(|| json.to_owned()),
            name,
            description: schema.description.clone().unwrap_or_default(),
            marks,
            optional: !required || schema.nullable == Some(true),
            ty,
        }
    }

    fn ty(&mut self, schema: &JSONSchemaProps, place: Place) -> Type {
        if place.depth > MAX_DEPTH {
            self.notes
                .push(format!("`{}` is nested too deep", place.path));
            return Type::Any;
        }
        if is_int_or_string(schema) {
            return Type::IntOrString;
        }
        match type_of(schema) {
            "string" if is_text_enum(schema) => self.enumeration(schema, place),
            "string" => Type::Text,
            "integer" if schema.format.as_deref() == Some("int32") => Type::Integer("i32"),
            "integer" => Type::Integer("i64"),
            "number" => Type::Float,
            "boolean" => Type::Boolean,
            "array" => self.list(schema, place),
            "object" => self.object(schema, place),
            _ => Type::Any,
        }
    }

    fn list(&mut self, schema: &JSONSchemaProps, place: Place) -> Type {
        let Some(item) = items(schema) else {
            return Type::List(Box::new(Type::Any));
        };
        if is_condition(item) {
            return Type::List(Box::new(Type::Condition));
        }
        let place = Place {
            path: format!("{}[]", place.path),
            name: names::singular(&place.name),
            depth: place.depth + 1,
        };
        Type::List(Box::new(self.ty(item, place)))
    }

    fn object(&mut self, schema: &JSONSchemaProps, place: Place) -> Type {
        if properties(schema).next().is_some() {
            let name = self.name(&place.name);
            let position = self.definitions.len();
            let made = self.structure(name.clone(), schema, &place);
            self.definitions.insert(position, Definition::Struct(made));
            return Type::Named(name);
        }
        if let Some(value) = values(schema) {
            let path = format!("{}{{}}", place.path);
            let ty = self.ty(
                value,
                Place {
                    path: path.clone(),
                    name: names::singular(&place.name),
                    depth: place.depth + 1,
                },
            );
            if !marks::of_value(value, &ty).is_empty() {
                self.notes.push(format!("what `{path}` says about values"));
            }
            return Type::Map(Box::new(ty));
        }
        Type::Object
    }

    fn enumeration(&mut self, schema: &JSONSchemaProps, place: Place) -> Type {
        let name = self.name(&place.name);
        let mut variants: Vec<(String, String)> = Vec::new();
        let given = schema.default.as_ref().and_then(|value| value.0.as_str());
        let values = schema
            .enum_
            .iter()
            .flatten()
            .filter_map(|value| value.0.as_str());
        let (first, rest): (Vec<&str>, Vec<&str>) = values.partition(|value| Some(*value) == given);
        for value in first.into_iter().chain(rest) {
            if !variants.iter().any(|(_, known)| known == value) {
                let name = names::variant(value);
                let name =
                    names::unique(name, |name| variants.iter().any(|(taken, _)| taken == name));
                variants.push((name, value.to_owned()));
            }
        }
        let description = schema.description.clone().unwrap_or_default();
        self.definitions.push(Definition::Enum(Enum {
            name: name.clone(),
            description,
            variants,
        }));
        Type::Named(name)
    }

    fn name(&mut self, wanted: &str) -> String {
        let name = names::unique(wanted.to_owned(), |name| self.taken.contains(name));
        self.reserve(&name);
        name
    }

    fn note_combinators(&mut self, schema: &JSONSchemaProps, path: &str) {
        for (name, given) in [
            ("oneOf", schema.one_of.is_some()),
            ("anyOf", schema.any_of.is_some()),
            ("allOf", schema.all_of.is_some()),
            ("not", schema.not.is_some()),
        ] {
            if given {
                self.notes.push(format!("`{name}` of `{path}`"));
            }
        }
    }
}

fn is_text_enum(schema: &JSONSchemaProps) -> bool {
    let values = schema.enum_.as_deref().unwrap_or_default();
    !values.is_empty() && values.iter().all(|value| value.0.is_string())
}

/// Whether it is the condition that all kinds share.
pub(super) fn is_condition(schema: &JSONSchemaProps) -> bool {
    let fields = ["type", "status", "reason", "message", "lastTransitionTime"];
    let known = |name: &str| fields.contains(&name) || name == "observedGeneration";
    fields.iter().all(|name| property(schema, name).is_some())
        && properties(schema).all(|(name, _)| known(name))
}
