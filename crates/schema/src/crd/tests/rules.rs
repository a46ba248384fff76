//! Each rule of the schema, each way to prune and to default, as cases over `spec`.

use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(schema: Value, spec: Value, expect: &[&str]) {
    let version = compile_spec(schema);
    let object = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(
        lines(&validate(&version, &object, None, Vec::new())),
        expect
    );
}

#[track_caller]
fn check_prune(schema: Value, spec: Value, left: Value, dropped: &[&str]) {
    let version = compile_spec(schema);
    let mut object = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(prune(&version, &mut object), dropped);
    assert_eq!(object["spec"], left);
}

#[track_caller]
fn check_default(schema: Value, spec: Value, expect: Value) {
    let version = compile_spec(schema);
    let mut object = json!({"spec": spec});
    default(&version, &mut object);
    assert_eq!(object, json!({"spec": expect}));
}

#[test]
fn types_must_match() {
    let wrong = |ty: &str, found: &str| {
        format!("spec: Invalid value: {found:?}: spec in body must be of type {ty}: {found:?}")
    };
    let cases = [
        ("string", json!(1), "integer"),
        ("integer", json!(1.5), "number"),
        ("number", json!(true), "boolean"),
        ("boolean", json!("true"), "string"),
        ("array", json!({}), "object"),
        ("object", json!([]), "array"),
        ("object", json!(null), "null"),
    ];
    for (ty, value, found) in cases {
        let mut schema = json!({"type": ty});
        if ty == "array" {
            schema["items"] = json!({"type": "string"});
        }
        check(schema, value, &[&wrong(ty, found)]);
    }
    check(json!({"type": "integer"}), json!(1.0), &[]);
    check(json!({"type": "number"}), json!(1), &[]);
    check(
        json!({"type": "string", "nullable": true}),
        json!(null),
        &[],
    );
    check(json!({"x-kubernetes-int-or-string": true}), json!("1"), &[]);
    check(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &[&wrong("integer,string", "boolean")],
    );
    check(
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!([1]),
        &[],
    );
}

#[test]
fn formats_are_checked() {
    let date = json!({"type": "string", "format": "date"});
    check(date.clone(), json!("2024-01-31"), &[]);
    check(
        date.clone(),
        json!("x"),
        &["spec: Invalid value: \"x\": spec in body must be of type date: \"x\""],
    );
    check(
        date,
        json!(5),
        &["spec: Invalid value: \"int64\": spec in body must be of type date: \"int64\""],
    );
    check(
        json!({"type": "string", "format": "colour"}),
        json!("x"),
        &[],
    );
    check(
        json!({"type": "integer", "format": "int32"}),
        json!(3_000_000_000_i64),
        &[
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec",
        ],
    );
}

#[test]
fn numbers_keep_their_bounds() {
    check(
        json!({"type": "integer", "maximum": 3}),
        json!(4),
        &["spec: Invalid value: 4: spec in body should be less than or equal to 3"],
    );
    check(
        json!({"type": "number", "minimum": 0.5, "exclusiveMinimum": true}),
        json!(0.5),
        &["spec: Invalid value: 0.5: spec in body should be greater than 0.5"],
    );
    check(
        json!({"type": "number", "maximum": 1, "exclusiveMaximum": true}),
        json!(1),
        &["spec: Invalid value: 1: spec in body should be less than 1"],
    );
    check(
        json!({"type": "integer", "multipleOf": 3}),
        json!(4),
        &["spec: Invalid value: 4: spec in body should be a multiple of 3"],
    );
    check(
        json!({"type": "number", "multipleOf": 0.1}),
        json!(0.3),
        &[],
    );
}

#[test]
fn strings_keep_length_and_pattern() {
    check(
        json!({"type": "string", "minLength": 2}),
        json!("a"),
        &["spec: Invalid value: \"a\": spec in body should be at least 2 chars long"],
    );
    check(
        json!({"type": "string", "maxLength": 1}),
        json!("ab"),
        &["spec: Too long: may not be more than 1 byte"],
    );
    check(json!({"type": "string", "maxLength": 2}), json!("éé"), &[]);
    check(
        json!({"type": "string", "pattern": "^[a-z]+$"}),
        json!("A"),
        &["spec: Invalid value: \"A\": spec in body should match '^[a-z]+$'"],
    );
}

#[test]
fn lists_and_objects_keep_their_size() {
    let list = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2});
    check(
        list.clone(),
        json!([]),
        &["spec: Invalid value: 0: spec in body should have at least 1 items"],
    );
    check(
        list,
        json!(["a", "b", "c"]),
        &["spec: Too many: 3: must have at most 2 items"],
    );
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1, "maxProperties": 1});
    check(
        map.clone(),
        json!({}),
        &["spec: Invalid value: 0: spec in body should have at least 1 properties"],
    );
    check(
        map,
        json!({"a": "", "b": 1}),
        &[
            "spec: Too many: 2: must have at most 1 item",
            "spec.b: Invalid value: \"integer\": spec.b in body must be of type string: \"integer\"",
        ],
    );
    check(
        json!({"type": "object", "additionalProperties": false}),
        json!({"a": 1}),
        &["spec: Invalid value: \"a\": spec.a in body is a forbidden property"],
    );
}

#[test]
fn enums_hold_for_every_type() {
    check(
        json!({"type": "integer", "enum": [1, 2]}),
        json!(3),
        &["spec: Unsupported value: 3: supported values: \"1\", \"2\""],
    );
    check(json!({"type": "number", "enum": [1]}), json!(1.0), &[]);
    check(
        json!({"type": "string", "nullable": true, "enum": ["a"]}),
        json!(null),
        &["spec: Unsupported value: null: supported values: \"a\""],
    );
}

#[test]
fn combinators_tell_the_best_failure() {
    let object = |extra: Value| {
        let mut schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        schema
            .as_object_mut()
            .expect("an object")
            .extend(extra.as_object().expect("an object").clone());
        schema
    };
    let either = json!([{"required": ["a"]}, {"required": ["b"]}]);
    check(object(json!({"oneOf": either})), json!({"a": ""}), &[]);
    check(
        object(json!({"oneOf": either})),
        json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found none valid",
            "spec.a: Required value",
        ],
    );
    check(
        object(json!({"oneOf": either})),
        json!({"a": "", "b": ""}),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    check(
        object(
            json!({"anyOf": [{"required": ["a"]}, {"properties": {"b": {"minLength": 2}}, "required": ["b"]}]}),
        ),
        json!({"b": "x"}),
        &[
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            "spec.b: Invalid value: \"x\": spec.b in body should be at least 2 chars long",
        ],
    );
    check(
        object(json!({"allOf": [{"required": ["a"]}, {"maxProperties": 5}]})),
        json!({}),
        &[
            "spec.a: Required value",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf)",
        ],
    );
    check(
        object(json!({"not": {"required": ["a"]}})),
        json!({"a": ""}),
        &["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"],
    );
}

#[test]
fn branches_may_speak_of_values_that_nothing_specifies() {
    check(
        json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "not": {"properties": {"a": {"items": {"properties": {"b": {"enum": [1]}}}}}, "required": ["a"]},
        }),
        json!({"a": [{"b": 1}]}),
        &["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"],
    );
    check(
        json!({
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "allOf": [{"properties": {"a": {"items": {"minimum": 2}}}}],
        }),
        json!({"a": [1]}),
        &[
            "spec.a[0]: Invalid value: 1: spec.a[0] in body should be greater than or equal to 2",
            "<nil>: Invalid value: \"\": \"spec\" must validate all the schemas (allOf). None validated",
        ],
    );
}

#[test]
fn sets_and_maps_have_nothing_twice() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    check(
        set,
        json!(["a", "b", "a", "a"]),
        &["spec[2]: Duplicate value: \"a\""],
    );
    let two = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"],
        "items": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}},
    });
    check(
        two,
        json!([{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"b": 1, "a": "x"}]),
        &["spec[2]: Duplicate value: {\"a\":\"x\",\"b\":1}"],
    );
}

#[test]
fn embedded_resources_need_their_kind() {
    let schema = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    check(
        schema.clone(),
        json!({}),
        &[
            "spec.apiVersion: Required value",
            "spec.kind: Required value",
        ],
    );
    check(
        schema.clone(),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}}),
        &[],
    );
    check(
        schema,
        json!({"apiVersion": 1, "kind": ""}),
        &[
            "spec.apiVersion: Invalid value: 1: must be a string",
            "spec.kind: Invalid value: \"\": must not be empty",
        ],
    );
}

#[test]
fn rules_on_the_name_are_checked() {
    let schema = json!({
        "type": "object",
        "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 2}}}},
    });
    let version = compile(
        &json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}),
    );
    let object = json!({"metadata": {"name": "abc", "labels": {"a": "b"}}});
    assert_eq!(
        lines(&validate(&version, &object, None, Vec::new())),
        ["metadata.name: Too long: may not be more than 2 bytes"]
    );
}

#[test]
fn pruning_follows_the_schema() {
    let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    check_prune(
        object.clone(),
        json!({"a": {"x": 1}, "b": 1}),
        json!({"a": {}}),
        &["spec.a.x", "spec.b"],
    );
    check_prune(
        json!({"type": "array", "items": object}),
        json!([{"b": 1}, {"a": ""}]),
        json!([{}, {"a": ""}]),
        &["spec[0].b"],
    );
    check_prune(
        json!({"type": "object", "additionalProperties": object}),
        json!({"k": {"a": "", "b": 1}}),
        json!({"k": {"a": ""}}),
        &["spec.k.b"],
    );
    check_prune(
        json!({"type": "object", "additionalProperties": true}),
        json!({"k": {"a": ""}, "l": 1, "m": [[{"x": 1}]]}),
        json!({"k": {}, "l": 1, "m": [[{}]]}),
        &["spec.k.a", "spec.m[0][0].x"],
    );
    check_prune(
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": object}}),
        json!({"z": {"x": 1}, "a": {"b": 1}}),
        json!({"z": {"x": 1}, "a": {}}),
        &["spec.a.b"],
    );
}

#[test]
fn embedded_resources_keep_their_own_fields() {
    let schema = json!({"type": "object", "properties": {"template": {
        "type": "object", "x-kubernetes-embedded-resource": true,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }}});
    check_prune(
        schema,
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "foo": 1}, "spec": {"b": 1}, "z": 1}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {}}}),
        &[
            "spec.template.spec.b",
            "spec.template.z",
            "spec.template.metadata.foo",
        ],
    );
}

#[test]
fn metadata_is_pruned_below_its_first_level() {
    let version = compile_spec(json!({"type": "object"}));
    let mut object =
        json!({"metadata": {"labels": {"any": "x"}, "ownerReferences": [{"name": "a", "foo": 1}]}});
    assert_eq!(
        prune(&version, &mut object),
        ["metadata.ownerReferences[0].foo"]
    );
    assert_eq!(object["metadata"]["labels"], json!({"any": "x"}));
}

#[test]
fn defaults_fill_in_all_the_way_down() {
    let schema = json!({"type": "object", "properties": {
        "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 7}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "default": "d"}},
    }});
    check_default(schema.clone(), json!({}), json!({"a": {"b": 7}}));
    check_default(
        schema.clone(),
        json!({"a": {"b": 1}, "list": [{}, {"c": "y"}]}),
        json!({"a": {"b": 1}, "list": [{"c": "x"}, {"c": "y"}]}),
    );
    check_default(
        schema,
        json!({"a": null, "map": {"k": null}}),
        json!({"a": {"b": 7}, "map": {"k": "d"}}),
    );
}

#[test]
fn nulls_stay_only_where_they_are_allowed() {
    let schema = json!({"type": "object", "properties": {
        "kept": {"type": "string", "nullable": true, "default": "x"},
        "gone": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
    }});
    check_default(
        schema,
        json!({"kept": null, "gone": null, "list": [null]}),
        json!({"kept": null, "list": [null]}),
    );
}
