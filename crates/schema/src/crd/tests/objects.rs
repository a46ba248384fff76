//! Objects of `bars.ex.io`, as captured from a real API server.

use serde_json::{Value, json};

use super::*;
use crate::FieldError;

const UNCHECKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was \
                         invalid; correct the existing errors to complete validation";

fn bar(metadata: Value, spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": metadata, "spec": spec})
}

#[track_caller]
fn check_create(spec: Value, expect: &[&str]) {
    let version = compile(&bars());
    let mut object = bar(json!({"name": "b2"}), spec);
    prune(&version, &mut object);
    default(&version, &mut object);
    assert_eq!(
        lines(&validate(&version, &object, None, Vec::new())),
        expect
    );
}

#[test]
fn unspecified_fields_are_dropped_and_defaults_filled_in() {
    let version = compile(&bars());
    let mut object = bar(json!({"name": "b1"}), json!({"num": 5, "zz": 1}));
    object["status"] = json!({"num": 1});
    assert_eq!(prune(&version, &mut object), ["spec.zz"]);
    default(&version, &mut object);
    assert_eq!(object["spec"], json!({"mode": "a", "num": 5}));
    assert_eq!(
        object["status"],
        json!({"num": 1}),
        "unknown fields of the status are preserved"
    );
}

#[test]
fn unknown_fields_of_metadata_come_first() {
    let version = compile(&bars());
    let mut object = bar(json!({"name": "b2", "foo": 1}), json!({"num": 5, "zz": 1}));
    assert_eq!(prune(&version, &mut object), ["metadata.foo", "spec.zz"]);
    assert_eq!(object["metadata"], json!({"name": "b2"}));
}

/// The server walks properties in random order; ours is by name.
#[test]
fn many_schema_errors_are_all_reported() {
    check_create(
        json!({"num": -1, "mode": "z", "name": "yyyy", "items": [{"k": "a"}, {"k": "a"}, {"v": 1}]}),
        &[
            "spec.items[2].k: Required value",
            "spec.mode: Unsupported value: \"z\": supported values: \"a\", \"b\"",
            "spec.name: Too long: may not be more than 3 bytes",
            "spec.num: Invalid value: -1: spec.num in body should be greater than or equal to 0",
            ".spec.num: Invalid value: -1: should be a non-negative integer",
            "spec.items[1]: Duplicate value: {\"k\":\"a\"}",
            UNCHECKED,
        ],
    );
}

#[test]
fn wrong_type_is_reported_by_schema_and_scale() {
    check_create(
        json!({"num": "x"}),
        &[
            "spec.num: Invalid value: \"string\": spec.num in body must be of type integer: \"string\"",
            ".spec.num: Invalid value: 0: .spec.num accessor error: x is of the type string, expected int64",
            UNCHECKED,
        ],
    );
}

#[test]
fn required_field_is_reported() {
    check_create(json!({}), &["spec.num: Required value", UNCHECKED]);
}

#[test]
fn null_that_is_not_allowed_is_dropped() {
    let version = compile(&bars());
    let mut object = bar(json!({"name": "b2"}), Value::Null);
    prune(&version, &mut object);
    default(&version, &mut object);
    assert_eq!(
        object,
        json!({"apiVersion": "ex.io/v1", "kind": "Bar", "metadata": {"name": "b2"}})
    );
    assert!(validate(&version, &object, None, Vec::new()).is_empty());
}

#[test]
fn errors_of_metadata_come_first_and_block_expressions() {
    let version = compile(&bars());
    let object = bar(json!({}), json!({"num": 5}));
    let metadata = vec![FieldError::required(
        "metadata.name",
        "name or generateName is required",
    )];
    assert_eq!(
        lines(&validate(&version, &object, None, metadata)),
        [
            "metadata.name: Required value: name or generateName is required",
            UNCHECKED
        ]
    );
}

#[test]
fn captured_expression_is_evaluated() {
    check_create(json!({"num": 50}), &["spec: Invalid value: too big"]);
    let version = compile(&bars());
    assert!(version.has_expressions());
}

#[test]
fn broken_rule_alone_does_not_block_expressions() {
    check_create(
        json!({"num": 1, "name": "yy"}),
        &["spec.name: Invalid value: \"yy\": spec.name in body should match '^x'"],
    );
}

#[test]
fn fields_outside_of_the_schema_are_all_dropped() {
    let mut crd = bars();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "properties": {"false": {"type": "integer"}}});
    let version = compile(&crd);
    let mut object = bar(json!({"name": "g1"}), json!({"n": 1, "zz": 2}));
    assert_eq!(prune(&version, &mut object), ["spec.n", "spec.zz"]);
    assert_eq!(object["spec"], json!({}));
}

#[test]
fn unchanged_values_are_not_held_against_an_update() {
    let version = compile(&bars());
    let old = bar(
        json!({"name": "b"}),
        json!({"num": 1, "name": "yyyy", "mode": "z", "items": [{"k": "a", "v": "bad"}, {"k": "b"}]}),
    );
    let mut new = old.clone();
    new["spec"]["num"] = json!(2);
    new["spec"]["items"] = json!([{"k": "b"}, {"k": "a", "v": "bad"}]);
    assert_eq!(
        lines(&validate(&version, &new, Some(&old), Vec::new())),
        [""; 0]
    );
    new["spec"]["mode"] = json!("y");
    new["spec"]["items"][0]["v"] = json!("worse");
    assert_eq!(
        lines(&validate(&version, &new, Some(&old), Vec::new())),
        [
            "spec.items[0].v: Invalid value: \"string\": spec.items[0].v in body must be of type integer: \"string\"",
            "spec.mode: Unsupported value: \"y\": supported values: \"a\", \"b\"",
            UNCHECKED,
        ]
    );
}

#[test]
fn object_that_repeats_keys_may_go_on_doing_so() {
    let version = compile(&bars());
    let old = bar(
        json!({"name": "b"}),
        json!({"num": 1, "items": [{"k": "a"}, {"k": "a"}]}),
    );
    let mut new = old.clone();
    new["spec"]["num"] = json!(2);
    assert_eq!(
        lines(&validate(&version, &new, None, Vec::new())),
        ["spec.items[1]: Duplicate value: {\"k\":\"a\"}"]
    );
    assert!(validate(&version, &new, Some(&old), Vec::new()).is_empty());
}

#[test]
fn update_of_the_status_checks_the_status_and_the_expressions() {
    let version = compile(&bars());
    let old = bar(json!({"name": "b"}), json!({"num": "broken"}));
    let mut new = old.clone();
    new["status"] = json!({"num": 3_000_000_000_i64});
    assert_eq!(
        lines(&validate_status(&version, &new, &old, Vec::new())),
        [
            ".status.num: Invalid value: 3000000000: should be less than or equal to 2147483647",
            "spec: Invalid value: \"object\": invalid data, expected int, got string evaluating rule: too big",
            "spec: Invalid value: \"object\": invalid data, expected int, got string evaluating rule: self.num >= oldSelf.num",
        ]
    );
    new["status"] = json!("text");
    assert_eq!(
        lines(&validate_status(&version, &new, &old, Vec::new())),
        [
            "status: Invalid value: \"string\": status in body must be of type object: \"string\"",
            ".status.num: Invalid value: 0: .status.num accessor error: text is of the type string, expected map[string]interface{}",
            UNCHECKED,
        ]
    );
}
