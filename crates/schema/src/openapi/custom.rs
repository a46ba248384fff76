//! Publishes the schema of a CRD: adds what every Kubernetes object has, and drops what version 2 cannot say.

use serde_json::{Map, Value, json};

use super::Dialect;
use super::descriptions::Common;
use super::names::custom_definition;
use crate::catalog::Resource;

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// Schemas nested deeper than this are published as they are. JSON that deep does not come through a parser.
const MAX_DEPTH: usize = 256;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The definition of a custom kind, by name.
pub(super) fn object(resource: &Resource, schema: &Value, dialect: Dialect) -> (String, Value) {
    let mut schema = schema.clone();
    // Clients of version 2 take listed properties as the only ones.
    let open = dialect == Dialect::V2 && is_true(&schema, PRESERVE);
    if open {
        schema = any_object();
    }
    if dialect == Dialect::V2 {
        restrict(&mut schema, 0);
    }
    complete(&mut schema, dialect, 0);
    if let Value::Object(fields) = &mut schema {
        if !open {
            add_properties(fields, type_meta());
            add_properties(fields, [metadata(OBJECT_META, dialect)]);
        }
        add_kind(fields, resource, &resource.kind);
    }
    (definition_name(resource, &resource.kind), schema)
}

/// The definition of a custom kind's list, by name.
pub(super) fn list(resource: &Resource, dialect: Dialect) -> (String, Value) {
    let item = reference(&definition_name(resource, &resource.kind), dialect);
    let mut fields = Map::new();
    fields.insert("type".into(), "object".into());
    fields.insert(
        "description".into(),
        format!("{} is a list of {}", resource.list_kind, resource.kind).into(),
    );
    fields.insert("required".into(), json!(["items"]));
    add_properties(&mut fields, type_meta());
    add_properties(
        &mut fields,
        [
            ("items", json!({"type": "array", "items": item})),
            metadata(LIST_META, dialect),
        ],
    );
    add_kind(&mut fields, resource, &resource.list_kind);
    let name = definition_name(resource, &resource.list_kind);
    (name, Value::Object(fields))
}

/// The schema that says least.
pub(super) fn any_object() -> Value {
    json!({"type": "object"})
}

fn definition_name(resource: &Resource, kind: &str) -> String {
    custom_definition(&resource.group, &resource.version, kind)
}

fn reference(name: &str, dialect: Dialect) -> Value {
    json!({"$ref": format!("{}{name}", dialect.prefix())})
}

/// A property with a `$ref`: version 3 wraps it, because nothing may stand beside it.
fn metadata(name: &str, dialect: Dialect) -> (&'static str, Value) {
    let reference = reference(name, dialect);
    let property = match dialect {
        Dialect::V2 => reference,
        Dialect::V3 => json!({"allOf": [reference], "description": Common::get().metadata}),
    };
    ("metadata", property)
}

fn type_meta() -> [(&'static str, Value); 2] {
    let common = Common::get();
    let text = |description: &str| json!({"type": "string", "description": description});
    [
        ("apiVersion", text(&common.api_version)),
        ("kind", text(&common.kind)),
    ]
}

fn add_properties(
    fields: &mut Map<String, Value>,
    properties: impl IntoIterator<Item = (&'static str, Value)>,
) {
    let existing = fields
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(existing) = existing {
        existing.extend(properties.into_iter().map(|(name, v)| (name.to_owned(), v)));
    }
}

fn add_kind(fields: &mut Map<String, Value>, resource: &Resource, kind: &str) {
    let kinds = json!([{"group": resource.group, "version": resource.version, "kind": kind}]);
    fields.insert("x-kubernetes-group-version-kind".into(), kinds);
}

fn is_true(schema: &Value, name: &str) -> bool {
    schema.get(name) == Some(&Value::Bool(true))
}

/// Gives embedded objects their metadata and integers-or-strings their alternatives, at every depth.
fn complete(schema: &mut Value, dialect: Dialect, depth: usize) {
    for child in children(schema, depth) {
        complete(child, dialect, depth + 1);
    }
    let open = is_true(schema, PRESERVE);
    let embedded = is_true(schema, "x-kubernetes-embedded-resource");
    let either = is_true(schema, "x-kubernetes-int-or-string");
    let Value::Object(fields) = schema else {
        return;
    };
    if embedded && !(open && dialect == Dialect::V2) {
        add_properties(fields, type_meta());
        add_properties(fields, [metadata(OBJECT_META, dialect)]);
        require(fields, ["apiVersion", "kind"]);
    }
    let refined = ["anyOf", "allOf"]
        .iter()
        .any(|key| fields.contains_key(*key));
    if either && dialect == Dialect::V3 && !refined {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        fields.insert("anyOf".into(), types);
    }
}

fn require(fields: &mut Map<String, Value>, names: [&str; 2]) {
    let required = fields.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        for name in names {
            if !required.iter().any(|r| r == name) {
                required.push(name.into());
            }
        }
    }
}

/// Drops what version 2 cannot say or its clients misread: combinators, `nullable`, and the properties and items
/// of values that may be something else too.
fn restrict(schema: &mut Value, depth: usize) {
    drop_nullable_requirements(schema);
    for child in children(schema, depth) {
        restrict(child, depth + 1);
    }
    let nullable = is_true(schema, "nullable");
    let open = is_true(schema, PRESERVE);
    let Value::Object(fields) = schema else {
        return;
    };
    for key in ["allOf", "anyOf", "not", "nullable", "oneOf"] {
        fields.remove(key);
    }
    if nullable || open {
        fields.remove("items");
        fields.remove("properties");
    }
    let untyped = match fields.get("type").and_then(Value::as_str) {
        Some("array") => !fields.contains_key("items"),
        Some("object") => open,
        _ => false,
    };
    if nullable || untyped {
        fields.remove("type");
    }
}

/// A property that may be null is about to lose its type, and clients take null as absent.
fn drop_nullable_requirements(schema: &mut Value) {
    let Some(Value::Array(required)) = schema.get("required") else {
        return;
    };
    let nullable = |name: &&Value| {
        let property = schema.get("properties").and_then(|p| p.get(name.as_str()?));
        property.is_some_and(|p| is_true(p, "nullable"))
    };
    let kept: Vec<Value> = required
        .iter()
        .filter(|name| !nullable(name))
        .cloned()
        .collect();
    if let Value::Object(fields) = schema {
        if kept.is_empty() {
            fields.remove("required");
        } else {
            fields.insert("required".into(), Value::Array(kept));
        }
    }
}

/// The schemas directly below a schema, without those in combinators.
fn children(schema: &mut Value, depth: usize) -> Vec<&mut Value> {
    let Value::Object(fields) = schema else {
        return Vec::new();
    };
    if depth >= MAX_DEPTH {
        return Vec::new();
    }
    let mut children = Vec::new();
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => children.extend(properties.values_mut()),
            ("items" | "additionalProperties", schema @ Value::Object(_)) => children.push(schema),
            _ => {}
        }
    }
    children
}
