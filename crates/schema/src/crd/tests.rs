//! Tests over whole CRDs: the captures of a real API server, and properties of the operations.

mod costs;
mod objects;
mod properties;
mod rules;
mod schemas;

use serde_json::{Value, json};

use super::*;
use crate::types::{Field, List, ListKind, Scalar, Shape, Struct, Table, Type, TypeId};

/// The CRD `bars.ex.io` of the captures.
pub(super) fn bars() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io",
            "scope": "Namespaced",
            "names": {"plural": "bars", "kind": "Bar"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [{"name": "Num", "type": "integer", "jsonPath": ".spec.num"}],
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.num", "statusReplicasPath": ".status.num"},
                },
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "required": ["num"],
                            "properties": {
                                "items": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["k"],
                                        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                                    },
                                    "x-kubernetes-list-map-keys": ["k"],
                                    "x-kubernetes-list-type": "map",
                                },
                                "mode": {"type": "string", "default": "a", "enum": ["a", "b"]},
                                "name": {"type": "string", "maxLength": 3, "pattern": "^x"},
                                "num": {"type": "integer", "minimum": 0},
                            },
                            "x-kubernetes-validations": [
                                {"rule": "self.num < 10", "message": "too big"},
                                {"rule": "self.num >= oldSelf.num"},
                            ],
                        },
                        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    },
                }},
            }],
        },
    })
}

/// A small `ObjectMeta`.
pub(super) fn object_meta() -> (Table, TypeId) {
    let mut table = Table::new();
    let text = table.add(Type::of(Shape::Scalar(Scalar::String)));
    let map = table.add(Type::of(Shape::Map {
        value: text,
        atomic: false,
    }));
    let owner = Struct::new(vec![Field::new("kind", text), Field::new("name", text)]);
    let owner = table.add(Type::of(Shape::Struct(owner)));
    let owners = table.add(Type::of(Shape::List(List {
        item: owner,
        kind: ListKind::Atomic,
    })));
    let fields = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ];
    let mut fields: Vec<Field> = fields.iter().map(|name| Field::new(name, text)).collect();
    fields.extend([
        Field::new("labels", map),
        Field::new("ownerReferences", owners),
    ]);
    let id = table.add(Type::of(Shape::Struct(Struct::new(fields))));
    (table, id)
}

/// Compiles the first version of a CRD.
pub(super) fn compile(crd: &Value) -> CompiledVersion {
    let (table, id) = object_meta();
    CompiledVersion::new(&Definition::parse(crd).versions[0], Some((&table, id)))
        .expect("schema compiles")
}

/// Compiles a schema of `spec` alone.
pub(super) fn compile_spec(spec: Value) -> CompiledVersion {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    compile(&json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}))
}

/// The errors as `path: message`.
pub(super) fn lines(errors: &[crate::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
