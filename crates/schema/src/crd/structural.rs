//! What makes a schema structural: every value has a type outside of the combinators, which only refine it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::path::{child, index, key};
use super::schema::{AdditionalProperties, Schema};
use crate::field::FieldError;
use kubewright_cel::pattern::PatternBudget;

/// What keeps a schema from being structural, sorted by text. The size of the schema must have been checked.
pub(super) fn errors(schema: Schema<'_>, path: &str) -> Vec<FieldError> {
    let mut check = Check::default();
    check.invariants(schema, Level::Root, path);
    check.completeness(schema, Some(schema), path, path);
    check.errors.sort_by_key(ToString::to_string);
    check.errors
}

/// Why a schema cannot even be read as a structural one. Other checks report most of it better.
pub(super) fn unreadable(schema: Schema<'_>) -> Option<String> {
    let unsupported = [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("additionalItems", "additionalItems"),
        ("definitions", "definitions"),
    ];
    let found = unsupported
        .iter()
        .find(|(keyword, _)| schema.raw(keyword).is_some_and(|v| !is_zero(v)));
    if let Some((_, name)) = found {
        return Some(format!("OpenAPIV3Schema '{name}' is not supported"));
    }
    if !schema.list("items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    if schema.raw("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
                .to_owned(),
        );
    }
    schema.children().into_iter().find_map(unreadable)
}

/// Whether a keyword is as good as absent.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Keywords of the structure, which the branches of combinators may not have, and how to say so.
const FORBIDDEN_IN_BRANCHES: [(&str, &str); 11] = [
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (
        "x-kubernetes-preserve-unknown-fields",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-embedded-resource",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-int-or-string",
        "must be false to be structural",
    ),
    (
        "x-kubernetes-list-map-keys",
        "must be empty to be structural",
    ),
    (
        "x-kubernetes-list-type",
        "must be undefined to be structural",
    ),
    (
        "x-kubernetes-map-type",
        "must be undefined to be structural",
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What of the `x-kubernetes-int-or-string` idiom is exempt from the rules on branches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exempt {
    Nothing,
    AnyOf,
    FirstAllOf,
}

#[derive(Default)]
struct Check {
    errors: Vec<FieldError>,
    /// Patterns seen, with what is wrong with them.
    patterns: HashMap<String, Option<String>>,
    budget: PatternBudget,
}

impl Check {
    fn required(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn invalid(&mut self, path: String, value: impl Into<Value>, detail: &str) {
        self.errors
            .push(FieldError::invalid(path, &value.into(), detail));
    }

    fn invariants(&mut self, schema: Schema<'_>, level: Level, path: &str) {
        match schema.items() {
            Some(items) => self.invariants(items, Level::Item, &child(path, "items")),
            None if schema.ty() == "array" => {
                self.required(child(path, "items"), "must be specified")
            }
            None => {}
        }
        for (name, property) in schema.properties() {
            self.invariants(
                property,
                Level::Field,
                &key(&child(path, "properties"), name),
            );
        }
        let additional = schema.additional();
        let has_additional = !matches!(additional, AdditionalProperties::Absent);
        if has_additional && level == Level::Root {
            self.forbidden(
                child(path, "additionalProperties"),
                "must not be used at the root",
            );
        }
        if let AdditionalProperties::Schema(value) = additional {
            self.invariants(value, Level::Field, &child(path, "additionalProperties"));
        }
        self.extensions(schema, path);
        self.branches(schema, exempt(schema), path);
        self.type_given(schema, level, path);
        if schema.is_embedded() && has_additional {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbidden(child(path, "additionalProperties"), detail);
        }
        self.resource(schema, level, path);
    }

    fn extensions(&mut self, schema: Schema<'_>, path: &str) {
        if !schema.is_int_or_string() {
            return;
        }
        let others = [
            (
                "x-kubernetes-preserve-unknown-fields",
                schema.preserves_unknown(),
            ),
            ("x-kubernetes-embedded-resource", schema.is_embedded()),
        ];
        for (name, set) in others {
            if set {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                self.invalid(child(path, name), true, detail);
            }
        }
    }

    fn type_given(&mut self, schema: Schema<'_>, level: Level, path: &str) {
        let (ty, at) = (schema.ty(), child(path, "type"));
        let untyped = ty.is_empty() && !schema.is_int_or_string() && !schema.preserves_unknown();
        if schema.is_embedded() && ty != "object" {
            let detail = "must be object if x-kubernetes-embedded-resource is true";
            if ty.is_empty() {
                self.required(at.clone(), detail);
            } else {
                self.invalid(at.clone(), ty, detail);
            }
        } else if untyped {
            let detail = match level {
                Level::Root => "must not be empty at the root",
                Level::Item => "must not be empty for specified array items",
                Level::Field => "must not be empty for specified object fields",
            };
            self.required(at.clone(), detail);
        }
        if level == Level::Root && !ty.is_empty() && ty != "object" {
            self.invalid(at, ty, "must be object at the root");
        }
    }

    /// The fields that every Kubernetes object has are specified implicitly.
    fn resource(&mut self, schema: Schema<'_>, level: Level, path: &str) {
        let resource = level == Level::Root || schema.is_embedded();
        for (name, ty) in [
            ("kind", "string"),
            ("apiVersion", "string"),
            ("metadata", "object"),
        ] {
            if let Some(property) = schema.property(name).filter(|_| resource)
                && property.ty() != ty
            {
                let at = child(&key(&child(path, "properties"), name), "type");
                self.invalid(at, property.ty(), &format!("must be {ty}"));
            }
        }
        if let Some(metadata) = schema.property("metadata").filter(|_| level == Level::Root)
            && !restricts_names_only(metadata)
        {
            let detail = "must not specify anything other than name and generateName, \
                          but metadata is implicitly specified";
            self.forbidden(key(&child(path, "properties"), "metadata"), detail);
        }
        if schema.is_embedded() && !schema.preserves_unknown() && !schema.has_properties() {
            let detail = "must not be empty if x-kubernetes-embedded-resource is true \
                          without x-kubernetes-preserve-unknown-fields";
            self.required(child(path, "properties"), detail);
        }
    }

    fn branches(&mut self, schema: Schema<'_>, exempt: Exempt, path: &str) {
        for keyword in ["anyOf", "allOf", "oneOf"] {
            if keyword == "anyOf" && exempt == Exempt::AnyOf {
                continue;
            }
            for (i, branch) in schema.branches(keyword).enumerate() {
                let first = keyword == "allOf" && i == 0 && exempt == Exempt::FirstAllOf;
                let exempt = if first {
                    Exempt::AnyOf
                } else {
                    Exempt::Nothing
                };
                self.branch(branch, exempt, &index(&child(path, keyword), i));
            }
        }
        if let Some(not) = schema.not() {
            self.branch(not, Exempt::Nothing, &child(path, "not"));
        }
        self.pattern(schema.text("pattern"), path);
    }

    fn pattern(&mut self, pattern: &str, path: &str) {
        if pattern.is_empty() {
            return;
        }
        let budget = &mut self.budget;
        let fault = self
            .patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| budget.compile(pattern).err().map(|error| error.to_string()))
            .clone();
        if let Some(fault) = fault {
            let detail = format!("must be a valid regular expression, but isn't: {fault}");
            self.invalid(child(path, "pattern"), pattern, &detail);
        }
    }

    fn branch(&mut self, schema: Schema<'_>, exempt: Exempt, path: &str) {
        self.branches(schema, exempt, path);
        if let Some(items) = schema.items() {
            self.branch(items, Exempt::Nothing, &child(path, "items"));
        }
        for (name, property) in schema.properties() {
            self.branch(
                property,
                Exempt::Nothing,
                &key(&child(path, "properties"), name),
            );
        }
        for (keyword, detail) in FORBIDDEN_IN_BRANCHES {
            if schema
                .raw(keyword)
                .is_some_and(|v| keyword == "default" || !is_zero(v))
            {
                self.forbidden(child(path, keyword), detail);
            }
        }
        if matches!(
            schema.additional(),
            AdditionalProperties::Allowed | AdditionalProperties::Schema(_)
        ) {
            self.forbidden(
                child(path, "additionalProperties"),
                "must be undefined to be structural",
            );
        }
        if !schema.list("x-kubernetes-validations").is_empty() {
            self.forbidden(
                child(path, "x-kubernetes-validations"),
                "must be empty to be structural",
            );
        }
        if schema.property("metadata").is_some() {
            let at = key(&child(path, "properties"), "metadata");
            self.forbidden(at, "must not be specified in a nested context");
        }
    }

    /// What the branches of the root refine must be specified outside of them. The API server looks at the root's
    /// branches only, and so do we.
    fn completeness(
        &mut self,
        rules: Schema<'_>,
        schema: Option<Schema<'_>>,
        at: &str,
        from: &str,
    ) {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            for (i, branch) in rules.branches(keyword).enumerate() {
                self.branch_completeness(branch, schema, at, &index(&child(from, keyword), i));
            }
        }
        if let Some(not) = rules.not() {
            self.branch_completeness(not, schema, at, &child(from, "not"));
        }
    }

    fn branch_completeness(
        &mut self,
        rules: Schema<'_>,
        schema: Option<Schema<'_>>,
        at: &str,
        from: &str,
    ) {
        let Some(specified) = schema else {
            return self.required(at.to_owned(), &format!("because it is defined in {from}"));
        };
        self.completeness(rules, schema, at, from);
        if let Some(items) = rules.items() {
            self.branch_completeness(
                items,
                specified.items(),
                &child(at, "items"),
                &child(from, "items"),
            );
        }
        for (name, property) in rules.properties() {
            let at = key(&child(at, "properties"), name);
            let from = key(&child(from, "properties"), name);
            self.branch_completeness(property, specified.property(name), &at, &from);
        }
    }
}

fn exempt(schema: Schema<'_>) -> Exempt {
    let idiom =
        |branches: &[Value]| branches == [json!({"type": "integer"}), json!({"type": "string"})];
    let first = schema.branches("allOf").next();
    if idiom(schema.list("anyOf")) {
        Exempt::AnyOf
    } else if first.is_some_and(|first| idiom(first.list("anyOf"))) {
        Exempt::FirstAllOf
    } else {
        Exempt::Nothing
    }
}

fn restricts_names_only(metadata: Schema<'_>) -> bool {
    let names = metadata.properties();
    let allowed = |name: &str| matches!(name, "name" | "generateName");
    let other = |(keyword, value): (&String, &Value)| {
        !matches!(keyword.as_str(), "type" | "properties" | "default") && !is_zero(value)
    };
    let keywords = metadata.0.as_object();
    names.iter().all(|(name, _)| allowed(name))
        && !keywords.is_some_and(|map| map.iter().any(other))
}
