//! Merging, taking out and taking over values.

use serde_json::{Value, json};

use super::super::{extract_items, merge, remove_items, to_field_set, to_fields, validate};
use super::{schema, set, typed};

/// Lists of one-letter items: live, configuration, merged.
const SETS: [(&str, &str, &str); 20] = [
    ("abc", "ab", "abc"),
    ("ab", "abc", "abc"),
    ("abc", "", "abc"),
    ("", "abc", "abc"),
    ("ab", "ba", "ba"),
    ("abc", "def", "abcdef"),
    ("abc", "cdef", "abcdef"),
    ("abcgf", "cdef", "abcgdef"),
    ("abc", "defxyz", "abcdefxyz"),
    ("cdef", "ace", "acdef"),
    ("abcxyz", "def", "abcxyzdef"),
    ("abcxyz", "defxyz", "abcdefxyz"),
    ("cagf", "cfag", "cfag"),
    ("abcd", "defa", "bcdefa"),
    ("cdefghij", "2h3e4kl", "cdfg2hij3e4kl"),
    ("abcdefghij", "1b2h3e4kl", "a1bcdfg2hij3e4kl"),
    // Items that are there twice stay so until somebody applies them.
    ("abb", "c", "abbc"),
    ("abb", "b", "ab"),
    ("abcdec", "1b2ed", "a1bc2ecd"),
    ("cagfca", "cfag", "cfag"),
];

#[test]
fn items_of_sets_are_merged_in_order() {
    let version = schema();
    let list = |text: &str| -> Value {
        let items: Vec<String> = text.chars().map(String::from).collect();
        json!({ "set": items })
    };
    for (live, config, merged) in SETS {
        let found = merge(typed(&version), &list(live), &list(config));
        assert_eq!(found, list(merged), "{live} + {config}");
    }
}

#[test]
fn values_are_merged() {
    let version = schema();
    let cases = [
        (
            json!({ "text": "a" }),
            json!({ "flag": true }),
            json!({ "text": "a", "flag": true }),
        ),
        (
            json!({ "number": 1 }),
            json!({ "number": 3.5 }),
            json!({ "number": 3.5 }),
        ),
        (json!({}), json!({ "map": {} }), json!({ "map": {} })),
        // Found by fuzzing: items without a name were dropped. Their list is one value.
        (
            json!({ "list": [{ "value": 1 }] }),
            json!({ "flag": true }),
            json!({ "list": [{ "value": 1 }], "flag": true }),
        ),
        (
            json!({ "list": [{ "value": 1 }] }),
            json!({ "list": [{ "name": "a" }] }),
            json!({ "list": [{ "name": "a" }] }),
        ),
        (
            json!({ "map": null }),
            json!({ "map": {} }),
            json!({ "map": {} }),
        ),
        (
            json!({ "map": {} }),
            json!({ "map": null }),
            json!({ "map": null }),
        ),
        (
            json!({ "struct": {} }),
            json!({ "struct": null }),
            json!({ "struct": null }),
        ),
        (
            json!({}),
            json!({ "sequence": [] }),
            json!({ "sequence": [] }),
        ),
        (
            json!({ "sequence": ["a", "b"] }),
            json!({ "sequence": ["c"] }),
            json!({ "sequence": ["c"] }),
        ),
        (
            json!({ "atomic": { "a": "1", "b": "2" } }),
            json!({ "atomic": { "a": "3" } }),
            json!({ "atomic": { "a": "3" } }),
        ),
        (
            json!({ "map": { "a": "1", "b": "2" } }),
            json!({ "map": { "b": "3", "c": "4" } }),
            json!({ "map": { "a": "1", "b": "3", "c": "4" } }),
        ),
        (
            json!({ "pairs": [{ "key": "a", "id": 1, "value": "x" }, { "key": "a", "id": 2, "value": "y" }] }),
            json!({ "pairs": [{ "key": "a", "id": 2, "value": "z" }, { "key": "b", "id": 1 }] }),
            json!({ "pairs": [
                { "key": "a", "id": 1, "value": "x" }, { "key": "a", "id": 2, "value": "z" }, { "key": "b", "id": 1 },
            ] }),
        ),
        // A key that is left out counts with its default.
        (
            json!({ "ports": [{ "port": 80, "protocol": "TCP" }, { "port": 80, "protocol": "UDP" }] }),
            json!({ "ports": [{ "port": 80, "name": "web" }] }),
            json!({ "ports": [{ "port": 80, "protocol": "TCP", "name": "web" }, { "port": 80, "protocol": "UDP" }] }),
        ),
        (
            json!({ "numbers": [1, 2, 3.5] }),
            json!({ "numbers": [1, 2, 3] }),
            json!({ "numbers": [1, 2, 3.5, 3] }),
        ),
        (
            json!({ "flags": [true] }),
            json!({ "flags": [false] }),
            json!({ "flags": [true, false] }),
        ),
        (
            json!({ "any": { "a": [1] } }),
            json!({ "any": { "a": [2], "b": 1 } }),
            json!({ "any": { "a": [2], "b": 1 } }),
        ),
        (
            json!({ "any": 1 }),
            json!({ "any": { "b": 1 } }),
            json!({ "any": { "b": 1 } }),
        ),
    ];
    for (live, config, merged) in cases {
        let found = merge(typed(&version), &live, &config);
        assert_eq!(found, merged, "{live} + {config}");
    }
}

#[test]
fn fields_of_an_object() {
    let version = schema();
    let cases = [
        (
            json!({ "text": "a", "number": 1 }),
            json!({ "f:text": {}, "f:number": {} }),
        ),
        (
            json!({ "map": { "a": "1" } }),
            json!({ "f:map": { "f:a": {} } }),
        ),
        (json!({ "map": {} }), json!({ "f:map": {} })),
        (json!({ "struct": null }), json!({ "f:struct": {} })),
        (json!({ "set": [] }), json!({})),
        (
            json!({ "set": ["a", "b", "a"] }),
            json!({ "f:set": { "v:\"a\"": {}, "v:\"b\"": {} } }),
        ),
        (
            json!({ "sequence": ["a", "a"] }),
            json!({ "f:sequence": {} }),
        ),
        (json!({ "atomic": { "a": "1" } }), json!({ "f:atomic": {} })),
        (
            json!({ "list": [{ "name": "a", "value": 1 }, { "name": "b" }, { "name": "b", "value": 1 }] }),
            json!({ "f:list": {
                "k:{\"name\":\"a\"}": { ".": {}, "f:name": {}, "f:value": {} }, "k:{\"name\":\"b\"}": {},
            } }),
        ),
        (
            json!({ "any": { "a": { "b": [1] }, "c": {} } }),
            json!({ "f:any": { "f:a": { ".": {}, "f:b": {} }, "f:c": {} } }),
        ),
        (
            json!({ "open": { "text": "a", "more": 1 }, "struct": { "inner": { "text": "a" } } }),
            json!({ "f:open": { "f:text": {}, "f:more": {} }, "f:struct": { "f:inner": { "f:text": {} } } }),
        ),
    ];
    for (object, fields) in cases {
        let found = to_field_set(typed(&version), &object);
        assert_eq!(to_fields(&found), fields, "{object}");
    }
}

#[test]
fn fields_are_taken_out_and_extracted() {
    let version = schema();
    let object = json!({
        "text": "a", "set": ["a", "b"], "sequence": ["x"], "map": { "a": "1", "b": "2" },
        "list": [{ "name": "a", "value": 1, "set": ["c"] }, { "name": "b", "value": 2 }],
        "struct": { "inner": { "text": "i" }, "number": 1 },
    });
    let fields = json!({
        "f:text": {}, "f:set": { "v:\"a\"": {} }, "f:sequence": {}, "f:map": { "f:b": {} },
        "f:list": { "k:{\"name\":\"a\"}": { "f:value": {} }, "k:{\"name\":\"b\"}": {} },
        "f:struct": { "f:inner": {} },
    });
    let left = json!({
        "set": ["b"], "map": { "a": "1" }, "list": [{ "name": "a", "set": ["c"] }], "struct": { "number": 1 },
    });
    assert_eq!(remove_items(typed(&version), &object, &set(&fields)), left);
    let taken = json!({
        "text": "a", "set": ["a"], "sequence": ["x"], "map": { "b": "2" },
        "list": [{ "value": 1 }, {}], "struct": { "inner": {} },
    });
    assert_eq!(
        extract_items(typed(&version), &object, &set(&fields)),
        taken
    );
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let version = schema();
    let cases = [
        (json!({ "nope": 1 }), ".nope: field not declared in schema"),
        (
            json!({ "struct": { "nope": 1 } }),
            ".struct.nope: field not declared in schema",
        ),
        (
            json!({ "text": 1 }),
            ".text: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            json!({ "number": "a" }),
            ".number: expected numeric (int or float), got string",
        ),
        (json!({ "flag": "a" }), ".flag: expected boolean, got &{a}"),
        (
            json!({ "list": { "a": 1 } }),
            ".list: expected list, got &{map[a:1]}",
        ),
        (
            json!({ "struct": [1] }),
            ".struct: expected map, got &{[1]}",
        ),
        (
            json!({ "list": [{ "value": 1 }] }),
            ".list: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and \
             doesn't have default values for any key fields)",
        ),
        (
            json!({ "list": [{ "name": "a" }, { "name": "a" }] }),
            ".list: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({ "set": ["a", "a"] }),
            ".set: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({ "list": [{ "name": "a", "value": "x" }] }),
            ".list[name=\"a\"].value: expected numeric (int or float), got string",
        ),
        (
            json!({ "flag": 1, "text": true }),
            "errors:\n  .flag: expected boolean, got &{1}\n  .text: expected string, got \
             &value.valueUnstructured{Value:true}",
        ),
    ];
    for (config, text) in cases {
        let errors = validate(typed(&version), &config).expect_err("does not fit");
        assert_eq!(errors.to_string(), text, "{config}");
    }
    let fits = json!({ "open": { "more": { "a": 1 } }, "any": [1], "ports": [{ "port": 1 }], "text": null });
    validate(typed(&version), &fits).expect("fits");
}
