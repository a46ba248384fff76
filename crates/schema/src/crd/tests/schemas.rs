//! Properties that hold for every schema, sensible or not.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(&'static str, Value)> {
    let schemas = prop::collection::btree_map("[a-c]", inner.clone(), 0..3);
    let list = prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
    let flag = any::<bool>().prop_map(Value::from);
    let pick = |values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(Value::from).boxed()
    };
    let pair = |keys: &'static [&'static str], value: BoxedStrategy<Value>| {
        (prop::sample::select(keys), value).boxed()
    };
    prop_oneof![
        4 => pair(&["type"], pick(&["object", "array", "string", "integer", "number", "boolean", "null", ""])),
        3 => pair(&["properties"], schemas.prop_map(|map| Value::Object(map.into_iter().collect())).boxed()),
        2 => pair(&["items", "additionalProperties", "not"], inner.clone()),
        1 => pair(&["anyOf", "oneOf", "allOf", "items", "enum"], list.boxed()),
        1 => pair(&["nullable", "additionalProperties", "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-int-or-string", "x-kubernetes-embedded-resource", "exclusiveMinimum"], flag.boxed()),
        1 => pair(&["x-kubernetes-list-type"], pick(&["set", "map", "atomic", "odd"])),
        1 => pair(&["required", "x-kubernetes-list-map-keys"], Just(json!(["a", "b"])).boxed()),
        1 => pair(&["minimum", "maximum", "multipleOf", "maxLength", "minItems", "maxProperties"], (-2..5_i64).prop_map(Value::from).boxed()),
        1 => pair(&["pattern"], pick(&["^a", "[", "\\d+", "a{2}"])),
        1 => pair(&["format"], pick(&["date", "int32", "email", "nope"])),
        1 => pair(&["default"], prop_oneof![Just(json!("a")), Just(json!({"a": 1})), Just(json!(3)), Just(json!([{}]))].boxed()),
        1 => pair(&["x-kubernetes-validations"], Just(json!([{"rule": "true", "fieldPath": ".a"}])).boxed()),
    ]
    .boxed()
}

fn any_schema() -> BoxedStrategy<Value> {
    let leaf = prop::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({}),
        json!(7),
    ]);
    leaf.prop_recursive(4, 32, 4, |inner| {
        let entries = prop::collection::vec(keyword(inner.boxed()), 0..5);
        entries.prop_map(|entries| {
            let map: Map<String, Value> = entries
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect();
            Value::Object(map)
        })
    })
    .boxed()
}

fn any_object() -> BoxedStrategy<Value> {
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(1),
        json!("a"),
        json!(true),
        json!(1.5),
    ]);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn accepted_schemas_compile_and_work(spec in any_schema(), object in any_object()) {
        let mut crd = bars();
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema;
        default_definition(&mut crd);
        reset_status(&mut crd);
        let errors = validate_definition(&crd);
        validate_definition_update(&crd, &crd);
        let compiled = CompiledVersion::new(&Definition::parse(&crd).versions[0], None);
        if errors.is_empty() {
            prop_assert!(compiled.is_ok(), "an accepted schema compiles");
        }
        if let Ok(version) = compiled {
            let mut object = json!({"metadata": {"name": "a"}, "spec": object});
            prune(&version, &mut object);
            prop_assert_eq!(prune(&version, &mut object), Vec::<String>::new());
            default(&version, &mut object);
            validate(&version, &object, Some(&object), Vec::new());
        }
    }

    #[test]
    fn any_json_is_judged_without_panic(crd in any_object(), spec in any_object()) {
        for mut crd in [crd, json!({"metadata": {}, "spec": spec}), json!({"spec": {"versions": [spec], "conversion": spec}})] {
            default_definition(&mut crd);
            reset_status(&mut crd);
            let old = crd.clone();
            carry_status(&mut crd, &old);
            validate_definition(&crd);
            validate_definition_update(&crd, &old);
            validate_definition_status(&crd);
            for version in Definition::parse(&crd).versions {
                Columns::new(&version).cells(&crd, jiff::Timestamp::UNIX_EPOCH);
            }
        }
    }
}
