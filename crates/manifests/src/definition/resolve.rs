//! From the schema that schemars makes to a structural one: references followed, nulls and booleans gone.

use serde_json::{Map, Value, json};

use super::description::Limits;
use super::settle::{finish, int_or_string, settle_default, without_null};
use super::{choice, known, overlay, scalar, settle};

type Schema = Map<String, Value>;

/// How deep types may be nested. A definition could not be larger than a server takes long before.
const DEPTH: usize = 64;

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
        settle::keep_known(schema);
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
            if contradict(schema, &part) {
                // Nothing is both; whatever was meant is not validated.
                schema.retain(|key, _| ["description", "title"].contains(&key.as_str()));
                schema.extend(object(known::anything()));
                return;
            }
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
            // A structural schema cannot describe a list whose elements differ; one whose elements are all alike it can.
            Some(Value::Array(items)) => {
                if items.windows(2).all(|pair| pair[0] == pair[1]) {
                    items.into_iter().next()
                } else {
                    Some(json!(true))
                }
            }
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
        if fields.is_some_and(|fields| !fields.is_empty()) {
            // A schema has either fields or entries; the rest of a flattened map is what is not known.
            schema.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
        } else {
            schema.remove("properties");
            schema.insert(
                "additionalProperties".into(),
                Value::Object(self.schema(entries)),
            );
        }
    }
}

fn object(value: Value) -> Schema {
    match value {
        Value::Object(schema) => schema,
        _ => Schema::new(),
    }
}

/// Whether values of one cannot be values of the other, or nobody can tell.
fn contradict(left: &Schema, right: &Schema) -> bool {
    let sort = |schema: &Schema| {
        let ty = schema
            .get("type")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let either = schema
            .contains_key("x-kubernetes-int-or-string")
            .then(|| "either".to_owned());
        let open = schema.contains_key("x-kubernetes-preserve-unknown-fields");
        ty.or(either).or(open.then(|| "anything".to_owned()))
    };
    matches!((sort(left), sort(right)), (Some(left), Some(right)) if left != right)
}

/// The name of a type in a reference to it.
fn name_of(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or_default()
}

fn is_null(branch: &Value) -> bool {
    branch.get("type") == Some(&json!("null")) || branch.get("const") == Some(&Value::Null)
}
