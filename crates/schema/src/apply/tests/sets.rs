//! Sets of fields and their JSON.

use serde_json::{Value, json};

use super::super::{PathElement, from_fields, to_fields};
use super::set;

#[test]
fn operations_on_sets() {
    let a =
        json!({ "f:a": { ".": {}, "f:b": {}, "f:c": {} }, "k:{\"name\":\"x\"}": { "f:v": {} } });
    let b = json!({ "f:a": { "f:b": {} }, "k:{\"name\":\"x\"}": {}, "v:1": {} });
    let union = json!({
        "f:a": { ".": {}, "f:b": {}, "f:c": {} }, "k:{\"name\":\"x\"}": { ".": {}, "f:v": {} }, "v:1": {},
    });
    let (set_a, set_b) = (set(&a), set(&b));
    let cases = [
        ("union", set_a.union(&set_b), union),
        (
            "intersection",
            set_a.intersection(&set_b),
            json!({ "f:a": { "f:b": {} } }),
        ),
        (
            "difference keeps what is below",
            set_a.difference(&set_b),
            json!({ "f:a": { ".": {}, "f:c": {} }, "k:{\"name\":\"x\"}": { "f:v": {} } }),
        ),
        (
            "recursive difference does not",
            set_a.recursive_difference(&set_b),
            json!({ "f:a": { ".": {}, "f:c": {} } }),
        ),
        (
            "leaves",
            set_a.leaves(),
            json!({ "f:a": { "f:b": {}, "f:c": {} }, "k:{\"name\":\"x\"}": { "f:v": {} } }),
        ),
    ];
    for (name, found, expected) in cases {
        assert_eq!(to_fields(&found), expected, "{name}");
        assert_eq!(found, set(&expected), "{name}");
    }
    assert!(set_a.intersects(&set_b) && !set_a.intersects(&set(&json!({ "f:z": {} }))));
    assert_eq!(set_a.len(), 4);
}

#[test]
fn paths_are_found_and_shown() {
    let fields = set(&json!({
        "f:spec": { ".": {}, "f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": { "f:name": {} }, "v:\"a\"": {}, "i:3": {}, "v:true": {},
        } },
    }));
    let shown: Vec<String> = fields
        .paths()
        .iter()
        .map(|path| super::super::path::display(path))
        .collect();
    let expected = [
        ".spec",
        ".spec.ports[=\"a\"]",
        ".spec.ports[=true]",
        ".spec.ports[3]",
        ".spec.ports[port=80,protocol=\"TCP\"].name",
    ];
    assert_eq!(shown, expected);
    assert!(fields.paths().iter().all(|path| fields.contains(path)));
    assert!(!fields.contains(&[PathElement::field("spec"), PathElement::field("ports")]));
}

#[test]
fn elements_are_ordered_by_kind_and_numbers_by_value() {
    let key = |port: u64| PathElement::key([("port", json!(port))]);
    let mut elements = [
        PathElement::Index(1),
        PathElement::Value(json!("a")),
        PathElement::Value(json!(2.5)),
        PathElement::Value(json!(10)),
        key(443),
        key(80),
        PathElement::field("b"),
        PathElement::field("a"),
    ];
    elements.sort();
    let shown: Vec<String> = elements.iter().map(ToString::to_string).collect();
    let expected = [
        ".a",
        ".b",
        "[port=80]",
        "[port=443]",
        "[=2.5]",
        "[=10]",
        "[=\"a\"]",
        "[1]",
    ];
    assert_eq!(shown, expected);
    assert_eq!(PathElement::Value(json!(1)), PathElement::Value(json!(1.0)));
}

#[test]
fn fields_that_make_no_sense_are_refused() {
    let nested = (0..200).fold(json!({}), |inner, _| json!({ "f:a": inner }));
    let garbage = [
        json!("f:a"),
        json!({ "f:a": 1 }),
        json!({ "a": {} }),
        json!({ "fa:b": {} }),
        json!({ "k:[1]": {} }),
        json!({ "k:{\"a\":1}x": {} }),
        json!({ "v:": {} }),
        json!({ "v:{": {} }),
        json!({ "i:x": {} }),
        nested,
    ];
    for value in garbage {
        assert!(from_fields(&value).is_err(), "{value}");
    }
    // A kind of element that is not known yet is left out.
    let known = from_fields(&json!({ "x:a": {}, "f:b": null })).expect("is read");
    assert_eq!(to_fields(&known), json!({ "f:b": {} }));
}

#[test]
fn deep_sets_are_cut_where_json_would_be_too_deep() {
    let mut path: Vec<PathElement> = (0..300).map(|_| PathElement::field("a")).collect();
    let deep = [path.clone()].into_iter().collect();
    let written = to_fields(&deep);
    let text = serde_json::to_string(
        &json!({ "metadata": { "managedFields": [{ "fieldsV1": written }] } }),
    );
    let read: Value = serde_json::from_str(&text.expect("encodes")).expect("is not too deep");
    let set = from_fields(&read["metadata"]["managedFields"][0]["fieldsV1"]).expect("is a set");
    path.truncate(110);
    assert!(set.contains(&path) && set.len() == 1);
}

#[test]
fn text_in_keys_is_escaped_as_go_does() {
    let escaped = json!({ "k:{\"name\":\"\\u003ca\\u003e\"}": {} });
    assert_eq!(
        to_fields(&set(&json!({ "k:{\"name\":\"<a>\"}": {} }))),
        escaped
    );
    assert_eq!(to_fields(&set(&escaped)), escaped);
}

/// Numbers sort otherwise than the text that they are written as; nothing here may take a step for each pair.
#[test]
fn large_sets_take_no_more_than_their_size() {
    let version = super::schema();
    let versions = super::Same(super::typed(&version));
    let mut world = super::World::new(&versions);
    let numbers = |from: u32| (from..from + 20_000).collect::<Vec<u32>>();
    world.update("one", &json!({ "numbers": numbers(1) }));
    world.update("two", &json!({ "numbers": numbers(10_000) }));
    world
        .apply(
            "three",
            &json!({ "numbers": numbers(20_000) }),
            super::Force::Yes,
        )
        .expect("is forced");
    world
        .apply("three", &json!({ "text": "a" }), super::Force::No)
        .expect("is its own");
    assert_eq!(
        world.content()["numbers"].as_array().map(Vec::len),
        Some(20_000)
    );
    let garbage: Vec<Value> = (0..20_000)
        .map(|i| json!({ "manager": i.to_string() }))
        .collect();
    let mut object = world.live.clone();
    object["metadata"]["managedFields"] = json!(garbage);
    assert!(super::Managed::of(&object).is_err());
}
