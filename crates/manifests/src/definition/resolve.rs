//! From the schema that schemars makes to a structural one: references followed, nulls and booleans gone.

use serde_json::{Map, Value, json};

use super::description::Limits;
use super::marks::EXPLICIT_DEFAULT;
use super::{choice, known, overlay, scalar};

type Schema = Map<String, Value>;

/// How deep types may be nested. A definition could not be larger than a server takes long before.
const DEPTH: usize = 64;

/// Keys of a schema in the API.
const KEYS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// The structural schema of what schemars made.
pub(super) fn resolved(mut root: Value, limits: &Limits) -> Schema {
    let definitions = root.as_object_mut().and_then(|root| root.remove("$defs"));
    let definitions = match definitions {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let mut resolver = Resolver {
        definitions: &definitions,
        limits,
        within: Vec::new(),
    };
    resolver.schema(root)
}

struct Resolver<'a> {
    definitions: &'a Map<String, Value>,
    limits: &'a Limits,
    /// The types that are being resolved, outermost first.
    within: Vec<String>,
}

impl Resolver<'_> {
    fn schema(&mut self, value: Value) -> Schema {
        let Value::Object(mut schema) = value else {
            return object(known::anything());
        };
        settle_default(&mut schema);
        let foreign = self.is_foreign();
        let limit = self.limits.begin(&mut schema, foreign);
        match schema.remove("$ref") {
            Some(Value::String(reference)) => {
                let inner = self.reference(name_of(&reference));
                self.finish_over(&mut schema, inner);
            }
            _ => {
                without_null(&mut schema);
                // Parts that are still to be merged are resolved by themselves: what is done is not done again.
                self.children(&mut schema);
                self.all_of(&mut schema);
                self.choices(&mut schema);
                finish(&mut schema);
            }
        }
        Limits::end(&mut schema, limit);
        schema
    }

    fn is_foreign(&self) -> bool {
        self.within
            .last()
            .is_some_and(|name| known::is_foreign(name))
    }

    /// The schema of a type by its name.
    fn reference(&mut self, name: &str) -> Schema {
        if let Some(schema) = known::replaced(name) {
            return schema;
        }
        let recursive = self.within.iter().any(|outer| outer == name) || self.within.len() >= DEPTH;
        let found = self.definitions.get(name).filter(|_| !recursive);
        let Some(found) = found.cloned() else {
            return object(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        };
        self.within.push(name.to_owned());
        let mut schema = self.schema(found);
        self.within.pop();
        known::completed(name, &mut schema);
        schema
    }

    /// Keys of a field over the schema of its type.
    fn finish_over(&mut self, schema: &mut Schema, inner: Schema) {
        self.items_over(schema, &inner);
        scalar::bounds(schema);
        schema.retain(|key, _| KEYS.contains(&key.as_str()));
        let number_or_text = schema.contains_key("x-kubernetes-int-or-string");
        overlay::along(schema, inner);
        if number_or_text {
            int_or_string(schema);
        }
        scalar::format(schema);
    }

    /// `items(..)` on a field whose type is a list by another name.
    fn items_over(&mut self, schema: &mut Schema, inner: &Schema) {
        let (Some(own), Some(Value::Object(theirs))) = (schema.remove("items"), inner.get("items"))
        else {
            return;
        };
        let Value::Object(mut own) = own else { return };
        settle_default(&mut own);
        self.finish_over(&mut own, theirs.clone());
        schema.insert("items".into(), Value::Object(own));
    }

    fn all_of(&mut self, schema: &mut Schema) {
        let Some(Value::Array(all)) = schema.remove("allOf") else {
            return;
        };
        for part in all {
            let part = self.schema(part);
            overlay::along(schema, part);
        }
    }

    fn choices(&mut self, schema: &mut Schema) {
        for key in ["oneOf", "anyOf"] {
            let Some(Value::Array(branches)) = schema.remove(key) else {
                continue;
            };
            let branches = branches.into_iter().filter(|branch| !is_null(branch));
            let mut branches: Vec<Schema> = branches.map(|branch| self.schema(branch)).collect();
            match branches.len() {
                0 => {}
                1 => {
                    let only = branches.remove(0);
                    self.finish_over(schema, only);
                }
                _ => choice::flattened(schema, key, branches),
            }
        }
    }

    fn children(&mut self, schema: &mut Schema) {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for property in properties.values_mut() {
                *property = Value::Object(self.schema(property.take()));
            }
        }
        self.elements(schema);
        self.entries(schema);
    }

    fn elements(&mut self, schema: &mut Schema) {
        let composed = ["allOf", "anyOf", "oneOf"]
            .iter()
            .any(|key| schema.contains_key(*key));
        if composed && !schema.contains_key("type") {
            // Only limits on the elements of a list that is described elsewhere.
            return;
        }
        let tuple = schema.remove("prefixItems");
        let items = match tuple {
            // A list whose elements differ cannot be told; one whose elements are all alike can.
            Some(Value::Array(items)) => match items.windows(2).all(|pair| pair[0] == pair[1]) {
                true => items.into_iter().next(),
                false => Some(json!(true)),
            },
            _ => schema.remove("items"),
        };
        let Some(items) = items else { return };
        let conditions = items.get("$ref").and_then(Value::as_str);
        let conditions =
            conditions.is_some_and(|reference| known::is_condition(name_of(reference)));
        if conditions && !schema.contains_key("x-kubernetes-list-type") {
            schema.insert("x-kubernetes-list-type".into(), json!("map"));
            schema.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
        }
        schema.insert("items".into(), Value::Object(self.schema(items)));
    }

    /// Maps: keys are texts, whatever they were.
    fn entries(&mut self, schema: &mut Schema) {
        let patterns = schema.remove("patternProperties");
        let additional = schema.remove("additionalProperties");
        let pattern = match patterns {
            Some(Value::Object(patterns)) => patterns.into_iter().next().map(|(_, schema)| schema),
            _ => None,
        };
        let entries = pattern.or(additional.filter(|value| *value != Value::Bool(false)));
        let Some(entries) = entries else { return };
        let fields = schema.get("properties").and_then(Value::as_object);
        match fields.is_some_and(|fields| !fields.is_empty()) {
            // A schema has either fields or entries; the rest of a flattened map is what is not known.
            true => {
                schema.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
            }
            false => {
                schema.remove("properties");
                schema.insert(
                    "additionalProperties".into(),
                    Value::Object(self.schema(entries)),
                );
            }
        }
    }
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(schema) => schema,
        _ => Schema::new(),
    }
}

/// The name of a type in a reference to it.
fn name_of(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or_default()
}

fn is_null(branch: &Value) -> bool {
    branch.get("type") == Some(&json!("null")) || branch.get("const") == Some(&Value::Null)
}

/// An `Option` says that there may be a null; in the API it says that it may be left out.
fn without_null(schema: &mut Schema) {
    if schema.get("type") == Some(&json!("null")) {
        schema.remove("type");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|ty| ty != "null");
        match types.as_slice() {
            [only] => {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
            several => {
                let mut kinds: Vec<_> = several.iter().filter_map(Value::as_str).collect();
                kinds.sort_unstable();
                let number_or_text = kinds == ["integer", "string"];
                schema.remove("type");
                let key = match number_or_text {
                    true => "x-kubernetes-int-or-string",
                    false => "x-kubernetes-preserve-unknown-fields",
                };
                schema.insert(key.into(), json!(true));
            }
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(value) = schema.remove("const").filter(|value| !value.is_null()) {
        let ty = match &value {
            Value::String(_) => Some("string"),
            Value::Bool(_) => Some("boolean"),
            Value::Number(number) if number.is_f64() => Some("number"),
            Value::Number(_) => Some("integer"),
            _ => None,
        };
        if let Some(ty) = ty {
            schema.entry("type").or_insert_with(|| json!(ty));
        }
        schema.insert("enum".into(), json!([value]));
    }
}

/// The last touches to a schema whose parts are done.
fn finish(schema: &mut Schema) {
    if let Some(Value::Array(examples)) = schema.remove("examples") {
        let first = examples.into_iter().next();
        schema.extend(first.map(|first| ("example".to_owned(), first)));
    }
    scalar::bounds(schema);
    scalar::format(schema);
    scalar::unique(schema);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
        if required.is_empty() {
            schema.remove("required");
        }
    }
    if schema.contains_key("x-kubernetes-int-or-string") {
        int_or_string(schema);
    }
    typed(schema);
    schema.retain(|key, _| KEYS.contains(&key.as_str()));
}

fn int_or_string(schema: &mut Schema) {
    schema.remove("type");
    schema.remove("format");
    schema.insert(
        "anyOf".into(),
        json!([{"type": "integer"}, {"type": "string"}]),
    );
}

/// Every part of a structural schema says its type, or that it does not know.
fn typed(schema: &mut Schema) {
    let said = [
        "type",
        "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields",
    ];
    if said.iter().any(|key| schema.contains_key(*key)) {
        return;
    }
    let words = schema.get("enum").and_then(Value::as_array);
    let words =
        words.is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string));
    let ty = match () {
        () if schema.contains_key("properties") || schema.contains_key("additionalProperties") => {
            "object"
        }
        () if schema.contains_key("items") => "array",
        () if words => "string",
        () => {
            schema.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
            return;
        }
    };
    schema.insert("type".into(), json!(ty));
}

/// Keeps a default that was asked for, and of others those that say something: what is empty anyway need not be written into
/// every object, and an object's parts have defaults of their own.
fn settle_default(schema: &mut Schema) {
    if schema.remove(EXPLICIT_DEFAULT).is_some() {
        return;
    }
    let idle = schema.get("default").is_some_and(|default| match default {
        Value::Null | Value::Object(_) | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(true) => false,
    });
    if idle {
        schema.remove("default");
    }
}
