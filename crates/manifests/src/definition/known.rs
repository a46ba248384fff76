//! Types of Kubernetes that are more than their schema in k8s-openapi says.

use serde_json::{Map, Value, json};

type Schema = Map<String, Value>;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const TOPOLOGY: &str = include_str!("topology.txt");

/// The numbers that a quantity can be.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
const CONDITION_TYPE: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";

/// Whether a type is one of Kubernetes' own.
pub(super) fn is_foreign(name: &str) -> bool {
    name.starts_with("io.k8s.")
}

/// Whether a type is a condition, a list of which is a map by type.
pub(super) fn is_condition(name: &str) -> bool {
    name.strip_prefix(META) == Some("Condition")
}

/// The whole schema of a type, where that of k8s-openapi is of no use.
pub(super) fn replaced(name: &str) -> Option<Schema> {
    let schema = match name {
        "io.k8s.apimachinery.pkg.api.resource.Quantity" => {
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY, "x-kubernetes-int-or-string": true})
        }
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => int_or_string(),
        "io.k8s.apimachinery.pkg.runtime.RawExtension" => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON" => anything(),
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
        | "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => {
            json!({"type": "string", "format": "date-time"})
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1" => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" => {
            json!({"type": "object", "properties": {
                "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
                "finalizers": {"type": "array", "items": {"type": "string"}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "name": {"type": "string"},
                "namespace": {"type": "string"},
            }})
        }
        _ => return None,
    };
    object(schema)
}

/// Anything at all.
pub(super) fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

/// A number or a text.
pub(super) fn int_or_string() -> Value {
    json!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
}

fn object(value: Value) -> Option<Schema> {
    match value {
        Value::Object(schema) => Some(schema),
        _ => None,
    }
}

/// Adds to the schema of a type what k8s-openapi leaves out.
pub(super) fn completed(name: &str, schema: &mut Schema) {
    if is_condition(name) {
        condition(schema);
    }
    for line in TOPOLOGY.lines() {
        let Some(rest) = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(' '))
        else {
            continue;
        };
        match rest.split_once(' ') {
            None => {
                schema.insert("x-kubernetes-map-type".into(), json!("atomic"));
            }
            Some((field, what)) => {
                let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
                let property = properties.and_then(|all| all.get_mut(field));
                if let Some(property) = property.and_then(Value::as_object_mut) {
                    complete_field(property, what);
                }
            }
        }
    }
}

fn complete_field(schema: &mut Schema, what: &str) {
    match what.split_once('=') {
        Some(("map", kind)) => {
            schema.insert("x-kubernetes-map-type".into(), json!(kind));
        }
        Some(("default", value)) => {
            schema.extend(
                serde_json::from_str(value)
                    .ok()
                    .map(|value| ("default".to_owned(), value)),
            );
        }
        Some(("list", list)) => match list.split_once(':') {
            None => {
                schema.insert("x-kubernetes-list-type".into(), json!(list));
            }
            Some((kind, keys)) => {
                let keys: Vec<&str> = keys.split(',').collect();
                if keys.iter().all(|key| is_key(schema, key)) {
                    schema.insert("x-kubernetes-list-type".into(), json!(kind));
                    schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
                }
            }
        },
        _ => {}
    }
}

/// A key of a list is required in its elements or has a default, or the server refuses the definition.
fn is_key(list: &Schema, key: &str) -> bool {
    let Some(items) = list.get("items") else {
        return false;
    };
    let required = items.get("required").and_then(Value::as_array);
    let required = required.is_some_and(|required| required.iter().any(|name| name == key));
    let property = items.get("properties").and_then(|all| all.get(key));
    required || property.is_some_and(|property| property.get("default").is_some())
}

fn condition(schema: &mut Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let more = [
        ("message", json!({"maxLength": 32_768})),
        ("observedGeneration", json!({"minimum": 0})),
        (
            "reason",
            json!({"maxLength": 1_024, "minLength": 1, "pattern": REASON}),
        ),
        ("status", json!({"enum": ["True", "False", "Unknown"]})),
        ("type", json!({"maxLength": 316, "pattern": CONDITION_TYPE})),
    ];
    for (name, limits) in more {
        if let (Some(Value::Object(property)), Some(limits)) =
            (properties.get_mut(name), object(limits))
        {
            property.extend(limits);
        }
    }
}
