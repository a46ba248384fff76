//! A table of changes: old, new, and what is found.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::compare;

fn definition(field: Value) -> Value {
    let spec = json!({"type": "object", "properties": {"f": field}});
    with_spec(spec)
}

fn with_spec(spec: Value) -> Value {
    json!({
        "metadata": {"name": "bars.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "bars", "kind": "Bar", "shortNames": ["br"], "categories": ["all"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn found(old: &Value, new: &Value) -> Vec<String> {
    let read = |value: &Value| -> Vec<CustomResourceDefinition> {
        let values = value
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![value.clone()]);
        values
            .into_iter()
            .map(|value| serde_json::from_value(value).expect("a definition"))
            .collect()
    };
    let findings = compare(&read(old), &read(new));
    assert!(findings.iter().all(|finding| !finding.advice.is_empty()));
    let shown = |finding: &crate::Finding| {
        format!(
            "{}: {}: {}",
            finding.severity, finding.path, finding.message
        )
    };
    findings.iter().map(shown).collect()
}

#[track_caller]
fn check(old: &Value, new: &Value, expected: &[&str]) {
    assert_eq!(found(old, new), expected);
}

/// The schema of `.spec.f` before and after; the findings without their place, which is this field.
#[track_caller]
fn check_field(old: Value, new: Value, expected: &[&str]) {
    let place = |line: &&str| line.replacen(": ", ": bars.ex.io v1 .spec.f: ", 1);
    let expected: Vec<String> = expected.iter().map(place).collect();
    assert_eq!(found(&definition(old), &definition(new)), expected);
}

/// Changes a whole definition at a pointer.
#[track_caller]
fn check_change(pointer: &str, value: Value, expected: &[&str]) {
    let old = definition(json!({"type": "string"}));
    let mut new = old.clone();
    *new.pointer_mut(pointer).expect("a place") = value;
    check(&old, &new, expected);
}

#[test]
fn nothing_is_found_where_nothing_changed_or_something_was_added() {
    let old = definition(json!({"type": "string"}));
    check(&old, &old, &[]);
    let new = with_spec(
        json!({"type": "object", "properties": {"f": {"type": "string"}, "g": {"type": "string"}}}),
    );
    check(&old, &new, &[]);
    check(&json!([]), &old, &[]);
}

#[test]
fn kinds_do_not_go_away() {
    let old = definition(json!({"type": "string"}));
    check(
        &old,
        &json!([]),
        &["error: bars.ex.io: the kind Bar is gone"],
    );
    let mut moved = old.clone();
    moved["spec"]["group"] = "other.io".into();
    check(
        &old,
        &moved,
        &["error: bars.ex.io: the group of Bar has become other.io"],
    );
    let mut renamed = old.clone();
    renamed["spec"]["names"]["plural"] = "barz".into();
    check(
        &old,
        &renamed,
        &["error: bars.ex.io: the plural of Bar has become barz"],
    );
}

#[test]
fn names_and_scope_stay() {
    check_change(
        "/spec/scope",
        json!("Cluster"),
        &["error: bars.ex.io spec.scope: the scope has become Cluster"],
    );
    check_change(
        "/spec/names",
        json!({"plural": "bars", "kind": "Baz", "shortNames": [], "singular": "bar", "listKind": "BarList"}),
        &[
            "error: bars.ex.io spec.names.kind: the kind has become Baz",
            "warning: bars.ex.io spec.names.shortNames: the short name br is gone",
            "hint: bars.ex.io spec.names.categories: the category all is gone",
        ],
    );
    check_change(
        "/spec/names",
        json!({"plural": "bars", "kind": "Bar", "shortNames": ["br"], "categories": ["all"], "singular": "b", "listKind": "Bs"}),
        &[
            "error: bars.ex.io spec.names.listKind: the kind of lists has become Bs",
            "warning: bars.ex.io spec.names.singular: the singular has become b",
        ],
    );
}

#[test]
fn versions_do_not_go_away() {
    let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
    let versions = |versions: Value| {
        let mut definition = definition(json!({"type": "string"}));
        definition["spec"]["versions"] = versions;
        definition
    };
    let both = versions(json!([
        version("v1", true, true),
        version("v2", true, false)
    ]));
    let first = versions(json!([version("v1", true, true)]));
    check(
        &both,
        &first,
        &["error: bars.ex.io v2: the version is gone"],
    );
    let second = versions(json!([version("v2", true, true)]));
    check(
        &both,
        &second,
        &["error: bars.ex.io v1: the version that objects are stored in is gone"],
    );
    let moved = versions(json!([
        version("v1", true, false),
        version("v2", true, true)
    ]));
    check(
        &both,
        &moved,
        &["hint: bars.ex.io: objects are now stored in v2"],
    );
    let unserved = versions(json!([
        version("v1", true, true),
        version("v2", false, false)
    ]));
    check(
        &both,
        &unserved,
        &["error: bars.ex.io v2: the version is no longer served"],
    );
    check(
        &unserved,
        &first,
        &[
            "warning: bars.ex.io v2: a version that was not served is gone; objects may be stored in it",
        ],
    );
    let mut deprecated = both.clone();
    deprecated["spec"]["versions"][1]["deprecated"] = true.into();
    check(
        &both,
        &deprecated,
        &["hint: bars.ex.io v2: the version is now deprecated"],
    );
}

#[test]
fn subresources_columns_and_selectable_fields_stay() {
    let mut old = definition(json!({"type": "string"}));
    let new = old.clone();
    let version = &mut old["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.f", "statusReplicasPath": ".status.f"});
    version["additionalPrinterColumns"] =
        json!([{"name": "F", "type": "string", "jsonPath": ".spec.f"}]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.f"}]);
    check(
        &old,
        &new,
        &[
            "error: bars.ex.io v1: the scale subresource is gone",
            "error: bars.ex.io v1 .spec.f: the field is no longer selectable",
            "hint: bars.ex.io v1: the column F is gone",
        ],
    );
    let mut other = old.clone();
    other["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = ".spec.g".into();
    check(
        &old,
        &other,
        &["warning: bars.ex.io v1: the scale subresource reads other fields"],
    );
    check_change(
        "/spec/versions/0/subresources",
        json!({}),
        &["error: bars.ex.io v1: the status subresource is gone"],
    );
    let mut without = new.clone();
    without["spec"]["versions"][0]["subresources"] = json!({});
    check(
        &without,
        &new,
        &["warning: bars.ex.io v1: there is now a status subresource"],
    );
}

#[test]
fn conversion_stays() {
    let new = definition(json!({"type": "string"}));
    let mut old = new.clone();
    old["spec"]["conversion"] = json!({"strategy": "Webhook"});
    check(
        &old,
        &new,
        &["warning: bars.ex.io spec.conversion: objects are no longer converted between versions"],
    );
    check(&new, &old, &[]);
}

#[test]
fn fields_do_not_go_away() {
    let old = definition(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    check(
        &old,
        &definition(json!({"type": "object"})),
        &["error: bars.ex.io v1 .spec.f.a: the field is gone"],
    );
    check(
        &old,
        &definition(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        &["warning: bars.ex.io v1 .spec.f.a: the field is no longer described"],
    );
}

#[test]
fn what_was_optional_stays_optional() {
    let spec = |required: Value, fields: Value| {
        with_spec(json!({"type": "object", "required": required, "properties": fields}))
    };
    let old = spec(json!([]), json!({"a": {"type": "string"}}));
    check(
        &old,
        &spec(json!(["a"]), json!({"a": {"type": "string"}})),
        &["error: bars.ex.io v1 .spec.a: the field is now required"],
    );
    check(
        &old,
        &spec(
            json!(["b"]),
            json!({"a": {"type": "string"}, "b": {"type": "string"}}),
        ),
        &["error: bars.ex.io v1 .spec.b: the field is new and required"],
    );
    check(
        &old,
        &spec(
            json!(["b"]),
            json!({"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}),
        ),
        &[],
    );
    check(
        &spec(json!(["a"]), json!({"a": {"type": "string"}})),
        &old,
        &[
            "hint: bars.ex.io v1 .spec.a: the field is no longer required: who reads it may not find it",
        ],
    );
}

#[test]
fn types_stay() {
    let ty = |ty: &str| json!({"type": ty});
    check_field(
        ty("string"),
        ty("integer"),
        &["error: the type has changed from string to integer"],
    );
    check_field(
        ty("number"),
        ty("integer"),
        &["error: the type has changed from number to integer"],
    );
    check_field(
        ty("integer"),
        ty("number"),
        &["warning: the type has changed from integer to number"],
    );
    check_field(
        ty("string"),
        json!({"x-kubernetes-int-or-string": true}),
        &["warning: the type has changed from string to int-or-string"],
    );
    check_field(
        ty("object"),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        &["warning: the type has changed from object to any type"],
    );
    check(
        &definition(json!({"type": "array", "items": {"type": "string"}})),
        &definition(json!({"type": "array", "items": {"type": "integer"}})),
        &["error: bars.ex.io v1 .spec.f[]: the type has changed from string to integer"],
    );
    check(
        &definition(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        &definition(json!({"type": "object", "additionalProperties": {"type": "integer"}})),
        &["error: bars.ex.io v1 .spec.f{}: the type has changed from string to integer"],
    );
}

/// What is added or changed at `keyword` of a type.
#[track_caller]
fn check_keyword(ty: &str, keyword: &str, old: Value, new: Value, expected: &[&str]) {
    let schema = |value: Value| {
        let mut schema = json!({"type": ty});
        if !value.is_null() {
            schema[keyword] = value;
        }
        schema
    };
    check_field(schema(old), schema(new), expected);
}

#[test]
fn limits_are_not_tightened() {
    let none = Value::Null;
    let cases = [
        ("integer", "minimum", json!(1), json!(2)),
        ("integer", "maximum", json!(2), json!(1)),
        ("string", "minLength", json!(1), json!(2)),
        ("string", "maxLength", json!(2), json!(1)),
        ("array", "minItems", json!(1), json!(2)),
        ("array", "maxItems", json!(2), json!(1)),
        ("object", "minProperties", json!(1), json!(2)),
        ("object", "maxProperties", json!(2), json!(1)),
    ];
    for (ty, keyword, old, new) in cases {
        let changed = format!("error: {keyword} has changed from {old} to {new}");
        check_keyword(ty, keyword, old.clone(), new.clone(), &[&changed]);
        let added = format!("error: {keyword} is now {new}");
        check_keyword(ty, keyword, none.clone(), new.clone(), &[&added]);
        check_keyword(ty, keyword, new.clone(), old, &[]);
        check_keyword(ty, keyword, new, none.clone(), &[]);
    }
    check_keyword(
        "integer",
        "multipleOf",
        json!(2),
        json!(4),
        &["error: multipleOf has changed from 2 to 4"],
    );
    check_keyword("integer", "multipleOf", json!(4), json!(2), &[]);
    check_field(
        json!({"type": "integer", "minimum": 1}),
        json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
        &["error: minimum has changed from 1 to 1"],
    );
}

#[test]
fn values_patterns_and_formats_are_not_tightened() {
    let none = Value::Null;
    check_keyword(
        "string",
        "enum",
        json!(["a", "b"]),
        json!(["a"]),
        &["error: values are no longer allowed: \"b\""],
    );
    check_keyword(
        "string",
        "enum",
        json!(["a"]),
        json!(["a", "b"]),
        &["hint: there are new values: \"b\""],
    );
    check_keyword(
        "string",
        "enum",
        none.clone(),
        json!(["a"]),
        &["error: only some values are allowed now: \"a\""],
    );
    check_keyword("string", "enum", json!(["a"]), none.clone(), &[]);
    check_keyword(
        "string",
        "pattern",
        none.clone(),
        json!("^a"),
        &["error: there is now a pattern: ^a"],
    );
    check_keyword(
        "string",
        "pattern",
        json!("^a"),
        json!("^b"),
        &["error: the pattern has changed from ^a to ^b"],
    );
    check_keyword("string", "pattern", json!("^a"), none.clone(), &[]);
    check_keyword(
        "string",
        "format",
        none.clone(),
        json!("ipv4"),
        &["error: there is now a format: ipv4"],
    );
    check_keyword(
        "integer",
        "format",
        json!("int64"),
        json!("int32"),
        &["error: the format has changed from int64 to int32"],
    );
    check_keyword(
        "integer",
        "format",
        json!("int32"),
        json!("int64"),
        &["warning: the format has changed from int32 to int64"],
    );
    check_keyword("integer", "format", json!("int32"), none, &[]);
}

#[test]
fn null_unknown_fields_and_keys_stay_allowed() {
    check_keyword(
        "string",
        "nullable",
        json!(true),
        json!(false),
        &["error: it may no longer be null"],
    );
    check_keyword("string", "nullable", json!(false), json!(true), &[]);
    check_keyword(
        "object",
        "x-kubernetes-preserve-unknown-fields",
        json!(true),
        Value::Null,
        &["error: unknown fields are no longer kept"],
    );
    check_keyword(
        "object",
        "additionalProperties",
        json!({"type": "string"}),
        Value::Null,
        &["error: it was a map, and no longer takes any key"],
    );
    check_keyword(
        "object",
        "x-kubernetes-embedded-resource",
        Value::Null,
        json!(true),
        &["error: it must now be a whole object of its own"],
    );
}

#[test]
fn lists_keep_their_type_and_keys() {
    let kind = "x-kubernetes-list-type";
    check_keyword(
        "array",
        kind,
        json!("set"),
        json!("atomic"),
        &["error: the list type has changed from set to atomic"],
    );
    check_keyword("array", kind, Value::Null, json!("atomic"), &[]);
    check_field(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}),
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
        &["error: the keys of the list have changed"],
    );
    check_keyword(
        "object",
        "x-kubernetes-map-type",
        Value::Null,
        json!("atomic"),
        &["warning: the map type has changed from granular to atomic"],
    );
}

#[test]
fn changed_defaults_and_new_rules_are_warnings() {
    check_keyword(
        "integer",
        "default",
        json!(1),
        json!(2),
        &["warning: the default has changed from 1 to 2"],
    );
    check_keyword(
        "integer",
        "default",
        json!(1),
        Value::Null,
        &["warning: the default 1 is gone"],
    );
    check_keyword(
        "integer",
        "default",
        Value::Null,
        json!(1),
        &["hint: there is now a default: 1"],
    );
    let rules = "x-kubernetes-validations";
    let rule = json!([{"rule": "self > 1", "message": "m"}]);
    check_keyword(
        "integer",
        rules,
        Value::Null,
        rule.clone(),
        &["warning: there is a new rule: self > 1"],
    );
    check_keyword(
        "integer",
        rules,
        rule.clone(),
        json!([{"rule": "self > 1 ", "message": "other"}]),
        &[],
    );
    check_keyword("integer", rules, rule, Value::Null, &[]);
    check_keyword(
        "object",
        "oneOf",
        Value::Null,
        json!([{"required": ["a"]}]),
        &["warning: allOf, anyOf, oneOf or not have changed"],
    );
}
