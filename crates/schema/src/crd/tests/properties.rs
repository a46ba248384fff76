//! Properties that hold for every object.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// A schema with every construct that changes how objects are walked.
fn rich() -> CompiledVersion {
    compile_spec(json!({
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "object", "default": {"b": 1}, "properties": {
                "b": {"type": "integer", "default": 2, "minimum": 0},
                "c": {"type": "string", "nullable": true, "pattern": "^x", "format": "date"},
            }},
            "b": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"], "items": {
                "type": "object", "required": ["a"],
                "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "d"}},
            }},
            "c": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.5}}}},
            "d": {"x-kubernetes-preserve-unknown-fields": true},
            "e": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
            "f": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "g": {"type": "object", "additionalProperties": true},
            "h": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        },
        "oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"items": {"required": ["b"]}}}}],
    }))
}

/// JSON whose keys are likely to be those of the schema.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[a-dx]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        let key = prop_oneof![
            "[a-h]",
            "[a-h]",
            Just("metadata".to_owned()),
            Just("apiVersion".to_owned())
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn pruning_twice_drops_nothing_more(spec in any_json(), metadata in any_json()) {
        let version = rich();
        let mut object = json!({"metadata": metadata, "spec": spec, "other": 1});
        prune(&version, &mut object);
        let once = object.clone();
        prop_assert_eq!(prune(&version, &mut object), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn defaulting_twice_changes_nothing_more(spec in any_json()) {
        let version = rich();
        let mut object = json!({"spec": spec});
        default(&version, &mut object);
        let once = object.clone();
        default(&version, &mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn validation_survives_any_json(new in any_json(), old in any_json(), root in any_json()) {
        let version = rich();
        validate(&version, &root, None, Vec::new());
        validate(&version, &root, Some(&old), Vec::new());
        let (new, old) = (json!({"spec": new}), json!({"spec": old}));
        validate(&version, &new, Some(&old), Vec::new());
        validate_status(&version, &new, &old, Vec::new());
    }

    /// Properties that are not specified, and items without their key, do not correlate; they are left out here.
    #[test]
    fn an_object_without_changes_is_forgiven_its_specified_parts(spec in any_json()) {
        let version = rich();
        let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
        prune(&version, &mut object);
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.retain(|key, _| matches!(key.as_str(), "a" | "c" | "f" | "h"));
        }
        let errors = validate(&version, &object, Some(&object), Vec::new());
        prop_assert_eq!(lines(&errors), Vec::<String>::new());
    }
}
