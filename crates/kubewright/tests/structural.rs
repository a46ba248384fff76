//! Whatever schema a Rust type has, a server takes the definition that is made of it.

use std::borrow::Cow;
use std::cell::RefCell;

use kubewright::manifests::definition::{self, Limits};
use kubewright_schema::crd::{default_definition, definition_warnings, validate_definition};
use proptest::prelude::*;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

thread_local! {
    static SCHEMA: RefCell<Value> = const { RefCell::new(Value::Null) };
}

/// A type with any schema at all.
struct Any;

impl JsonSchema for Any {
    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        // Types that contain themselves are found by their names.
        generator.subschema_for::<Tree>();
        let spec = SCHEMA.with_borrow(Clone::clone);
        let root = json!({"type": "object", "properties": {"spec": spec}, "required": ["spec"]});
        root.try_into().unwrap_or_default()
    }
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "it is here for its schema")]
struct Tree {
    children: Vec<Tree>,
    kind: Option<Kind>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "it is here for its schema")]
enum Kind {
    /// The node has no parent.
    Root,
    Leaf {
        value: Box<Tree>,
    },
}

fn leaf() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(true),
        json!({}),
        json!({"type": "string"}),
        json!({"type": ["string", "null"], "format": "made-up", "minLength": 1}),
        json!({"type": "string", "format": "ip"}),
        json!({"type": "integer", "format": "uint32", "minimum": 0.0}),
        json!({"type": ["integer", "null"], "format": "uint8", "exclusiveMinimum": 1}),
        json!({"type": "number", "format": "double"}),
        json!({"type": ["integer", "string"]}),
        json!({"type": ["boolean", "string", "null"]}),
        json!({"type": "null"}),
        json!({"const": "word"}),
        json!({"const": 3}),
        json!({"enum": ["a", "b", null]}),
        json!({"type": "string", "enum": ["a"], "description": "A word."}),
        json!({"$ref": "#/$defs/Tree"}),
        json!({"$ref": "#/$defs/Kind", "description": "Which."}),
        json!({"$ref": "#/$defs/io.k8s.apimachinery.pkg.api.resource.Quantity"}),
        json!({"$ref": "#/$defs/Missing"}),
        json!({"x-kubernetes-int-or-string": true, "type": "string"}),
    ])
}

fn schema() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 3, |inner| {
        let few = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            (few.clone(), any::<bool>()).prop_map(|(parts, wanted)| object(parts, wanted)),
            (few.clone(), any::<bool>()).prop_map(|(parts, wanted)| tagged(parts, wanted)),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|items| json!({"type": "array", "items": items, "uniqueItems": true})),
            inner
                .clone()
                .prop_map(|entry| json!({"type": "object", "additionalProperties": entry})),
            inner.clone().prop_map(
                |entry| json!({"anyOf": [entry, {"type": "null"}], "description": "Maybe."})
            ),
            few.clone().prop_map(|parts| json!({"oneOf": parts})),
            few.clone().prop_map(|parts| json!({"anyOf": parts})),
            few.clone().prop_map(|parts| json!({"allOf": parts})),
            few.clone()
                .prop_map(|parts| json!({"type": "array", "prefixItems": parts})),
            (few, inner).prop_map(|(parts, rest)| {
                let mut open = object(parts, true);
                open["additionalProperties"] = rest;
                open
            }),
        ]
    })
}

fn object(parts: Vec<Value>, wanted: bool) -> Value {
    let names: Vec<String> = (0..parts.len()).map(|at| format!("field{at}")).collect();
    let properties: serde_json::Map<_, _> = names.iter().cloned().zip(parts).collect();
    let mut object = json!({"type": "object", "properties": properties});
    if wanted {
        object["required"] = json!(names);
    }
    object
}

/// An enum of serde, whose variants have a tag or are fields themselves.
fn tagged(parts: Vec<Value>, inside: bool) -> Value {
    let variant = |(at, part): (usize, Value)| {
        let name = format!("Variant{at}");
        if inside {
            json!({"type": "object", "required": ["tag"],
                "properties": {"tag": {"type": "string", "const": name}, "value": part}})
        } else {
            json!({"type": "object", "required": [name.clone()], "properties": {name: part}})
        }
    };
    json!({"oneOf": parts.into_iter().enumerate().map(variant).collect::<Vec<_>>()})
}

fn definition(schema: Value) -> Value {
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "anythings.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Anything", "plural": "anythings"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    default_definition(&mut definition);
    definition
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_type_makes_a_definition_that_servers_take(spec in schema()) {
        SCHEMA.set(spec);
        let made = definition::schema::<Any>(&Limits::default());
        let definition = definition(made.clone());
        let problems: Vec<String> =
            validate_definition(&definition).iter().map(|problem| format!("{}: {}", problem.field, problem.message)).collect();
        prop_assert!(problems.is_empty(), "{problems:#?}\n{made:#}");
        prop_assert_eq!(definition_warnings(&definition, None), Vec::<String>::new());
    }
}
