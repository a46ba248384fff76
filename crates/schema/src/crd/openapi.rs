//! Checks of a CRD's schema node by node: keywords that are not supported, list and map types, expressions.

mod containers;

use serde_json::{Value, json};

use self::containers::{atomic_set_error, list_key_errors};

use super::field_path::{self, Brackets};
use super::path::{child, index, key};
use super::schema::{AdditionalProperties, Schema};
use crate::field::FieldError;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// Old objects that break a rule that came later may go on breaking it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strictness {
    /// Types must be ones of OpenAPI.
    pub(super) valid_types: bool,
    /// Items of sets must be atomic.
    pub(super) atomic_sets: bool,
    /// Keys of map lists must be required or have a default.
    pub(super) list_keys: bool,
}

impl Strictness {
    /// As strict as for a new CRD, except for what the old schemas break already.
    pub(super) fn after<'a>(old: impl Iterator<Item = Schema<'a>> + Clone) -> Self {
        let any = |found: &dyn Fn(Schema<'a>) -> bool| old.clone().any(|schema| schema.any(found));
        Self {
            valid_types: !any(&|s| !s.ty().is_empty() && !TYPES.contains(&s.ty())),
            atomic_sets: !any(&|s| atomic_set_error(s, "").is_some()),
            list_keys: !any(&|s| !list_key_errors(s, "").is_empty()),
        }
    }

    pub(super) const ALL: Self = Self {
        valid_types: true,
        atomic_sets: true,
        list_keys: true,
    };
}

/// What is wrong with a schema. Its size must have been checked.
pub(super) fn errors(schema: Schema<'_>, path: &str, strictness: Strictness) -> Vec<FieldError> {
    let mut check = Check {
        strictness,
        errors: Vec::new(),
    };
    check.node(
        schema,
        path,
        &Surroundings {
            root: true,
            ..Surroundings::default()
        },
    );
    check.errors
}

/// What a node inherits from where it is.
#[derive(Clone, Default)]
struct Surroundings {
    root: bool,
    inside_metadata: bool,
    /// Why defaults may not be set here.
    no_defaults: Option<String>,
}

struct Check {
    strictness: Strictness,
    errors: Vec<FieldError>,
}

impl Check {
    fn forbidden(&mut self, path: String, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn node(&mut self, schema: Schema<'_>, path: &str, here: &Surroundings) {
        self.keywords(schema, path, here);
        if schema.flag("uniqueItems") {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(child(path, "uniqueItems"), detail);
        }
        let inner = Surroundings {
            root: false,
            ..here.clone()
        };
        self.additional(schema, path, &inner);
        self.properties(schema, path, here);
        self.branches(schema, path, &inner);
        if let Some(items) = schema.items() {
            self.node(items, &child(path, "items"), &inner);
        }
        for (i, items) in schema.branches("items").enumerate() {
            self.node(items, &index(&child(path, "items"), i), &inner);
        }
        if schema.raw("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let at = child(path, "x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(
                at,
                &json!(false),
                "must be true or undefined",
            ));
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        if self.strictness.list_keys {
            self.errors.extend(list_key_errors(schema, path));
        }
        for (i, rule) in schema.list("x-kubernetes-validations").iter().enumerate() {
            let at = index(&child(path, "x-kubernetes-validations"), i);
            self.expression(schema, rule, &at);
        }
    }

    fn keywords(&mut self, schema: Schema<'_>, path: &str, here: &Surroundings) {
        let (ty, at) = (schema.ty(), child(path, "type"));
        if self.strictness.valid_types && !ty.is_empty() && !TYPES.contains(&ty) {
            self.errors
                .push(FieldError::not_supported(at.clone(), &json!(ty), &TYPES));
        }
        if let Some(reason) = here
            .no_defaults
            .as_ref()
            .filter(|_| schema.raw("default").is_some())
        {
            self.forbidden(child(path, "default"), &format!("must not be set {reason}"));
        }
        for keyword in [
            "id",
            "additionalItems",
            "patternProperties",
            "definitions",
            "dependencies",
            "$ref",
        ] {
            let set = match schema.raw(keyword) {
                Some(Value::String(text)) => keyword == "$ref" || !text.is_empty(),
                Some(Value::Object(map)) => {
                    matches!(keyword, "dependencies" | "additionalItems") || !map.is_empty()
                }
                other => other.is_some(),
            };
            if set {
                self.forbidden(child(path, keyword), &format!("{keyword} is not supported"));
            }
        }
        if ty == "null" {
            self.forbidden(
                at,
                "type cannot be set to null, use nullable as an alternative",
            );
        }
        if !schema.list("items").is_empty() {
            self.forbidden(
                child(path, "items"),
                "items must be a schema object and not an array",
            );
        }
        if here.inside_metadata && schema.is_embedded() {
            let at = child(path, "x-kubernetes-embedded-resource");
            self.forbidden(at, "must not be used inside of resource meta");
        }
    }

    fn additional(&mut self, schema: Schema<'_>, path: &str, inner: &Surroundings) {
        let additional = schema.additional();
        let at = child(path, "additionalProperties");
        let closes = matches!(
            additional,
            AdditionalProperties::Forbidden | AdditionalProperties::Schema(_)
        );
        if closes && schema.has_properties() {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.forbidden(at.clone(), detail);
        }
        if let AdditionalProperties::Schema(value) = additional {
            let mut inner = inner.clone();
            if inner.inside_metadata {
                let reason = "inside additionalProperties applying to object metadata";
                inner.no_defaults = Some(reason.to_owned());
            }
            self.node(value, &at, &inner);
        }
    }

    fn properties(&mut self, schema: Schema<'_>, path: &str, here: &Surroundings) {
        for (name, property) in schema.properties() {
            let mut inner = Surroundings {
                root: false,
                ..here.clone()
            };
            let of_resource = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if of_resource && (here.root || schema.is_embedded()) {
                inner.inside_metadata = true;
                if here.root {
                    inner.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.node(property, &key(&child(path, "properties"), name), &inner);
        }
    }

    fn branches(&mut self, schema: Schema<'_>, path: &str, inner: &Surroundings) {
        if let Some(not) = schema.not() {
            self.node(not, &child(path, "not"), inner);
        }
        for keyword in ["allOf", "oneOf", "anyOf"] {
            for (i, branch) in schema.branches(keyword).enumerate() {
                self.node(branch, &index(&child(path, keyword), i), inner);
            }
        }
        for (name, definition) in schema.members("definitions") {
            self.node(definition, &key(&child(path, "definitions"), name), inner);
        }
        for (name, dependency) in schema.members("dependencies") {
            if dependency.0.is_object() {
                self.node(dependency, &key(&child(path, "dependencies"), name), inner);
            }
        }
    }

    /// The parts of an expression that can be judged without compiling it.
    fn expression(&mut self, schema: Schema<'_>, rule: &Value, at: &str) {
        let text = |name: &str| rule[name].as_str().unwrap_or("");
        let broken = |text: &str| text.contains(['\n', '\r']);
        let (source, message) = (text("rule").trim(), text("message"));
        let invalid = |name: &str, detail: &str| {
            FieldError::invalid(child(at, name), &json!(text(name)), detail)
        };
        if source.is_empty() {
            self.errors.push(FieldError::required(
                child(at, "rule"),
                "rule is not specified",
            ));
        } else if !message.is_empty() && message.trim().is_empty() {
            self.errors
                .push(invalid("message", "must be non-empty if specified"));
        } else if broken(message.trim()) {
            self.errors
                .push(invalid("message", "must not contain line breaks"));
        } else if broken(source) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.errors
                .push(FieldError::required(child(at, "message"), detail));
        }
        let computed = text("messageExpression");
        if !computed.is_empty() && computed.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.errors
                .push(FieldError::required(child(at, "messageExpression"), detail));
        }
        if let Some(reason) = rule["reason"]
            .as_str()
            .filter(|reason| !REASONS.contains(reason))
        {
            self.errors.push(FieldError::not_supported(
                child(at, "reason"),
                &json!(reason),
                &REASONS,
            ));
        }
        let field_path = text("fieldPath");
        if field_path.is_empty() {
            return;
        }
        if field_path.trim().is_empty() {
            self.errors
                .push(invalid("fieldPath", "must be non-empty if specified"));
        }
        if broken(field_path) {
            self.errors
                .push(invalid("fieldPath", "must not contain line breaks"));
        }
        if field_path::resolve(field_path, schema, Brackets::Allowed).is_err() {
            self.errors
                .push(invalid("fieldPath", "must be a valid path"));
        }
    }
}
