//! What changes from one object to another.

use serde_json::{Value, json};

use super::super::{Typed, compare, reconcile, to_fields};
use super::{compile, schema, set, typed};
use crate::types::Table;

#[test]
fn changes_are_found() {
    let version = schema();
    let nothing = || json!({});
    // Old, new, removed, modified, added.
    let cases = [
        (
            json!({ "text": "a" }),
            json!({ "text": "a" }),
            nothing(),
            nothing(),
            nothing(),
        ),
        (
            json!({ "number": 1 }),
            json!({ "number": 1.0 }),
            nothing(),
            nothing(),
            nothing(),
        ),
        (
            json!({ "text": "a" }),
            json!({ "flag": true }),
            json!({ "f:text": {} }),
            nothing(),
            json!({ "f:flag": {} }),
        ),
        (
            json!({}),
            json!({ "map": {} }),
            nothing(),
            nothing(),
            json!({ "f:map": {} }),
        ),
        (
            json!({ "map": null }),
            json!({ "map": {} }),
            nothing(),
            json!({ "f:map": {} }),
            nothing(),
        ),
        (
            json!({ "struct": {} }),
            json!({ "struct": null }),
            nothing(),
            json!({ "f:struct": {} }),
            nothing(),
        ),
        (
            json!({ "maps": { "a": { "b": { "c": "1" } } } }),
            json!({ "maps": { "a": { "b": {} } } }),
            json!({ "f:maps": { "f:a": { "f:b": { "f:c": {} } } } }),
            nothing(),
            nothing(),
        ),
        (
            json!({}),
            json!({ "maps": { "a": { "b": {} } } }),
            nothing(),
            nothing(),
            json!({ "f:maps": { ".": {}, "f:a": { ".": {}, "f:b": {} } } }),
        ),
        (
            json!({ "set": ["a", "b"] }),
            json!({ "set": ["b", "c"] }),
            json!({ "f:set": { "v:\"a\"": {} } }),
            nothing(),
            json!({ "f:set": { "v:\"c\"": {} } }),
        ),
        (
            json!({ "set": ["a", "b"] }),
            json!({ "set": ["b", "a"] }),
            nothing(),
            nothing(),
            nothing(),
        ),
        (
            json!({ "sequence": ["a"] }),
            json!({ "sequence": ["b"] }),
            nothing(),
            json!({ "f:sequence": {} }),
            nothing(),
        ),
        (
            json!({ "atomic": { "a": "1" } }),
            json!({ "atomic": { "b": "1" } }),
            nothing(),
            json!({ "f:atomic": {} }),
            nothing(),
        ),
        (
            json!({ "list": [{ "name": "a", "value": 1 }, { "name": "b" }] }),
            json!({ "list": [{ "name": "a", "value": 2, "more": 1 }] }),
            json!({ "f:list": { "k:{\"name\":\"b\"}": { ".": {}, "f:name": {} } } }),
            json!({ "f:list": { "k:{\"name\":\"a\"}": { "f:value": {} } } }),
            json!({ "f:list": { "k:{\"name\":\"a\"}": { "f:more": {} } } }),
        ),
        // Without a type, values of another kind are another value.
        (
            json!({ "any": { "a": {} } }),
            json!({ "any": { "a": { "b": {} } } }),
            nothing(),
            nothing(),
            json!({ "f:any": { "f:a": { "f:b": {} } } }),
        ),
        (
            json!({ "any": { "a": null } }),
            json!({ "any": { "a": ["b"] } }),
            nothing(),
            json!({ "f:any": { "f:a": {} } }),
            nothing(),
        ),
        (
            json!({ "any": { "a": ["b"] } }),
            json!({ "any": { "a": null } }),
            nothing(),
            json!({ "f:any": { "f:a": {} } }),
            nothing(),
        ),
        (
            json!({ "any": { "a": { "b": {} } } }),
            json!({ "any": { "a": ["b"] } }),
            json!({ "f:any": { "f:a": { "f:b": {} } } }),
            json!({ "f:any": { "f:a": {} } }),
            nothing(),
        ),
        (
            json!({ "any": { "a": "b" } }),
            json!({ "any": { "a": { "b": {} } } }),
            nothing(),
            json!({ "f:any": { "f:a": {} } }),
            json!({ "f:any": { "f:a": { "f:b": {} } } }),
        ),
        // Items that share their name are one value.
        (
            json!({ "set": ["a"] }),
            json!({ "set": ["a", "a"] }),
            json!({ "f:set": { "v:\"a\"": {} } }),
            nothing(),
            json!({ "f:set": { "v:\"a\"": {} } }),
        ),
        (
            json!({ "list": [{ "name": "a" }, { "name": "a", "value": 1 }] }),
            json!({ "list": [{ "name": "a" }, { "name": "a", "value": 2 }] }),
            nothing(),
            json!({ "f:list": { "k:{\"name\":\"a\"}": {} } }),
            nothing(),
        ),
    ];
    for (old, new, removed, modified, added) in cases {
        let found = compare(typed(&version), &old, &new);
        assert_eq!(
            to_fields(&found.removed),
            removed,
            "{old} to {new}: removed"
        );
        assert_eq!(
            to_fields(&found.modified),
            modified,
            "{old} to {new}: modified"
        );
        assert_eq!(to_fields(&found.added), added, "{old} to {new}: added");
    }
}

#[test]
fn what_go_never_leaves_out_is_there_in_built_in_kinds() {
    let table = Table::builtin();
    let deployment = table.kind("apps", "v1", "Deployment").expect("is built in");
    let new = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "c" }] } } } });
    let found = compare(Typed::new(table, deployment), &json!({}), &new);
    let containers = json!({ "k:{\"name\":\"c\"}": { ".": {}, "f:name": {}, "f:resources": {} } });
    let expected =
        json!({ "f:spec": { "f:template": { "f:spec": { "f:containers": containers } } } });
    assert_eq!(to_fields(&found.added), expected);
    assert!(found.removed.is_empty() && found.modified.is_empty());
}

#[test]
fn sets_follow_a_schema_that_becomes_atomic() {
    let version = compile(&json!({
        "list": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } },
        "object": {
            "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "a": { "type": "string" } },
        },
    }));
    let check = |before: Value, after: Option<Value>| {
        let found = reconcile(typed(&version), &set(&before));
        assert_eq!(found.as_ref().map(to_fields), after, "{before}");
    };
    check(
        json!({ "f:list": { "k:{\"name\":\"a\"}": { ".": {}, "f:name": {} } }, "f:object": { "f:a": {} } }),
        Some(json!({ "f:list": {}, "f:object": {} })),
    );
    check(json!({ "f:list": {}, "f:object": {} }), None);
    check(json!({ "f:gone": { "f:a": {} } }), None);
}
