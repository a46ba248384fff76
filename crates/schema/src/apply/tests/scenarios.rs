//! Several managers write one object.

use serde_json::{Value, json};

use super::super::{Reset, Typed, Versions};
use super::Op::{Apply, At, Force, Refused, Update};
use super::{World, check, compile, schema, typed};
use crate::crd::CompiledVersion;

#[test]
fn leaves_have_managers() {
    check(
        "one applies twice",
        vec![
            Apply("one", json!({ "number": 1, "text": "a" })),
            Apply("one", json!({ "number": 2, "text": "a", "flag": false })),
        ],
        &json!({ "number": 2, "text": "a", "flag": false }),
        &json!({ "Apply one": { "f:number": {}, "f:text": {}, "f:flag": {} } }),
    );
    check(
        "an update takes what it changes",
        vec![
            Apply("one", json!({ "number": 1, "text": "a" })),
            Update(
                "controller",
                json!({ "number": 1, "text": "b", "flag": true }),
            ),
        ],
        &json!({ "number": 1, "text": "b", "flag": true }),
        &json!({ "Apply one": { "f:number": {} }, "Update controller": { "f:text": {}, "f:flag": {} } }),
    );
    check(
        "what an update took is a conflict, and force takes it back",
        vec![
            Apply("one", json!({ "number": 1, "text": "a" })),
            Update("controller", json!({ "number": 1, "text": "b" })),
            Refused(
                "one",
                json!({ "number": 1, "text": "a" }),
                vec![("\"controller\" using v1", ".text")],
            ),
            Force("one", json!({ "number": 1, "text": "a" })),
        ],
        &json!({ "number": 1, "text": "a" }),
        &json!({ "Apply one": { "f:number": {}, "f:text": {} } }),
    );
    check(
        "the same value is shared",
        vec![
            Apply("one", json!({ "text": "a" })),
            Apply("two", json!({ "text": "a" })),
        ],
        &json!({ "text": "a" }),
        &json!({ "Apply one": { "f:text": {} }, "Apply two": { "f:text": {} } }),
    );
    check(
        "another value is a conflict with all",
        vec![
            Apply("one", json!({ "text": "a", "number": 1 })),
            Apply("two", json!({ "text": "a" })),
            Refused(
                "three",
                json!({ "text": "b", "number": 2 }),
                vec![
                    ("\"one\"", ".number"),
                    ("\"one\"", ".text"),
                    ("\"two\"", ".text"),
                ],
            ),
            Force("three", json!({ "text": "b" })),
        ],
        &json!({ "text": "b", "number": 1 }),
        &json!({ "Apply one": { "f:number": {} }, "Apply three": { "f:text": {} } }),
    );
    check(
        "what is no longer applied goes, unless it is shared",
        vec![
            Apply("one", json!({ "text": "a", "number": 1, "flag": true })),
            Apply("two", json!({ "number": 1 })),
            Update(
                "controller",
                json!({ "text": "a", "number": 1, "flag": false }),
            ),
            Apply("one", json!({})),
        ],
        &json!({ "number": 1, "flag": false }),
        &json!({ "Apply two": { "f:number": {} }, "Update controller": { "f:flag": {} } }),
    );
    check(
        "an update that removes takes nothing and leaves nothing",
        vec![
            Update("one", json!({ "text": "a", "map": { "a": "1" } })),
            Update("two", json!({ "text": "a" })),
        ],
        &json!({ "text": "a" }),
        &json!({ "Update one": { "f:text": {} } }),
    );
    check(
        "null is a value",
        vec![Apply("one", json!({ "text": null, "struct": null }))],
        &json!({ "text": null, "struct": null }),
        &json!({ "Apply one": { "f:struct": {}, "f:text": {} } }),
    );
}

#[test]
fn items_of_lists_have_managers() {
    let items = |names: &str| -> Value {
        let fields = |name: char| (format!("v:\"{name}\""), json!({}));
        json!({ "f:set": names.chars().map(fields).collect::<serde_json::Map<_, _>>() })
    };
    check(
        "appliers and updaters share a set",
        vec![
            Apply("one", json!({ "set": ["a", "c"] })),
            Update("controller", json!({ "set": ["a", "b", "c", "d"] })),
            Apply("one", json!({ "set": ["a", "x", "c", "y"] })),
        ],
        &json!({ "set": ["a", "b", "x", "c", "d", "y"] }),
        &json!({ "Apply one": items("axcy"), "Update controller": items("bd") }),
    );
    check(
        "items of an update stay although they are applied and no longer applied",
        vec![
            Apply("one", json!({ "set": ["a"] })),
            Update("controller", json!({ "set": ["a", "b"] })),
            Apply("one", json!({ "set": ["a", "b"] })),
            Apply("one", json!({ "set": ["a"] })),
        ],
        &json!({ "set": ["a", "b"] }),
        &json!({ "Apply one": items("a"), "Update controller": items("b") }),
    );
    let item = json!({ ".": {}, "f:name": {} });
    check(
        "one removes an item that another keeps",
        vec![
            Apply(
                "one",
                json!({ "list": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] }),
            ),
            Apply("two", json!({ "list": [{ "name": "c" }, { "name": "d" }] })),
            Apply("one", json!({ "list": [{ "name": "a" }] })),
        ],
        &json!({ "list": [{ "name": "a" }, { "name": "c" }, { "name": "d" }] }),
        &json!({
            "Apply one": { "f:list": { "k:{\"name\":\"a\"}": item } },
            "Apply two": { "f:list": { "k:{\"name\":\"c\"}": item, "k:{\"name\":\"d\"}": item } },
        }),
    );
    check(
        "an item goes with what others put into it, unless they apply the item",
        vec![
            Apply(
                "one",
                json!({ "list": [{ "name": "a" }, { "name": "b", "set": ["c"] }] }),
            ),
            Update(
                "controller",
                json!({ "list": [{ "name": "a" }, { "name": "b", "set": ["c", "d"] }] }),
            ),
            Apply("one", json!({ "list": [{ "name": "a" }] })),
        ],
        &json!({ "list": [{ "name": "a" }] }),
        &json!({ "Apply one": { "f:list": { "k:{\"name\":\"a\"}": item } } }),
    );
    check(
        "an item that another applies keeps what that one wants",
        vec![
            Apply(
                "one",
                json!({ "list": [{ "name": "a" }, { "name": "b", "set": ["c"] }] }),
            ),
            Apply("two", json!({ "list": [{ "name": "b", "set": ["d"] }] })),
            Apply("one", json!({ "list": [{ "name": "a" }] })),
        ],
        &json!({ "list": [{ "name": "a" }, { "name": "b", "set": ["d"] }] }),
        &json!({
            "Apply one": { "f:list": { "k:{\"name\":\"a\"}": item } },
            "Apply two": { "f:list": { "k:{\"name\":\"b\"}": {
                ".": {}, "f:name": {}, "f:set": { "v:\"d\"": {} },
            } } },
        }),
    );
    check(
        "a key that is left out is the same as its default",
        vec![
            Apply("one", json!({ "ports": [{ "port": 80 }] })),
            Apply(
                "two",
                json!({ "ports": [{ "port": 80, "protocol": "UDP", "name": "u" }] }),
            ),
            Refused(
                "three",
                json!({ "ports": [{ "port": 80, "protocol": "UDP", "name": "v" }] }),
                vec![("\"two\"", ".ports[port=80,protocol=\"UDP\"].name")],
            ),
        ],
        &json!({ "ports": [{ "port": 80 }, { "port": 80, "protocol": "UDP", "name": "u" }] }),
        &json!({
            "Apply one": { "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:port": {} } } },
            "Apply two": { "f:ports": { "k:{\"port\":80,\"protocol\":\"UDP\"}": {
                ".": {}, "f:name": {}, "f:port": {}, "f:protocol": {},
            } } },
        }),
    );
}

#[test]
fn items_of_one_name_are_managed_together() {
    check(
        "an apply makes one of two",
        vec![
            Update("updater", json!({ "numbers": [1, 1, 3] })),
            Refused(
                "one",
                json!({ "numbers": [1] }),
                vec![("\"updater\" using v1", ".numbers[=1]")],
            ),
            Force("one", json!({ "numbers": [1] })),
        ],
        &json!({ "numbers": [1, 3] }),
        &json!({
            "Apply one": { "f:numbers": { "v:1": {} } },
            "Update updater": { "f:numbers": { ".": {}, "v:3": {} } },
        }),
    );
    check(
        "an apply of something else leaves them",
        vec![
            Update("updater", json!({ "numbers": [1, 1, 3] })),
            Apply("one", json!({ "numbers": [5] })),
        ],
        &json!({ "numbers": [1, 1, 3, 5] }),
        &json!({
            "Apply one": { "f:numbers": { "v:5": {} } },
            "Update updater": { "f:numbers": { ".": {}, "v:1": {}, "v:3": {} } },
        }),
    );
    check(
        "whoever changes one of them manages all",
        vec![
            Update(
                "one",
                json!({ "list": [{ "name": "a" }, { "name": "a", "value": 2 }, { "name": "b" }] }),
            ),
            Update(
                "two",
                json!({ "list": [{ "name": "a" }, { "name": "a", "value": 3 }, { "name": "b" }] }),
            ),
        ],
        &json!({ "list": [{ "name": "a" }, { "name": "a", "value": 3 }, { "name": "b" }] }),
        &json!({
            "Update one": { "f:list": { ".": {}, "k:{\"name\":\"b\"}": { ".": {}, "f:name": {} } } },
            "Update two": { "f:list": { "k:{\"name\":\"a\"}": {} } },
        }),
    );
}

#[test]
fn keys_of_maps_have_managers() {
    check(
        "what is below a key goes with it, unless somebody wants the key",
        vec![
            Apply(
                "one",
                json!({ "any": { "a": { "b": null }, "c": { "d": null } } }),
            ),
            Apply("two", json!({ "any": { "a": null, "c": { "d": null } } })),
            Update(
                "controller",
                json!({ "any": { "a": { "b": { "c": null } }, "c": { "d": { "e": null } } } }),
            ),
            Apply("one", json!({ "any": null })),
        ],
        &json!({ "any": { "a": {}, "c": { "d": { "e": null } } } }),
        &json!({
            "Apply one": { "f:any": {} },
            "Apply two": { "f:any": { "f:a": {}, "f:c": { ".": {}, "f:d": {} } } },
            "Update controller": { "f:any": { "f:c": { "f:d": { "f:e": {} } } } },
        }),
    );
    check(
        "an object with declared fields goes when it has none left",
        vec![
            Apply(
                "one",
                json!({ "text": "a", "struct": { "text": "a", "inner": { "text": "b" } } }),
            ),
            Apply("one", json!({ "text": "a", "struct": { "text": "a" } })),
            Apply("one", json!({ "text": "a" })),
        ],
        &json!({ "text": "a" }),
        &json!({ "Apply one": { "f:text": {} } }),
    );
    check(
        "an atomic object is one value",
        vec![
            Apply("one", json!({ "atomic": { "a": "1" } })),
            Refused(
                "two",
                json!({ "atomic": { "b": "1" } }),
                vec![("\"one\"", ".atomic")],
            ),
        ],
        &json!({ "atomic": { "a": "1" } }),
        &json!({ "Apply one": { "f:atomic": {} } }),
    );
    check(
        "the key of an update stays when the applier drops its map",
        vec![
            Apply("one", json!({ "map": { "a": "1" } })),
            Update("controller", json!({ "map": { "a": "1", "b": "2" } })),
            Apply("one", json!({ "text": "x" })),
        ],
        &json!({ "map": { "b": "2" }, "text": "x" }),
        &json!({ "Apply one": { "f:text": {} }, "Update controller": { "f:map": { "f:b": {} } } }),
    );
}

#[test]
fn managers_of_a_version_that_is_gone_are_forgotten() {
    let (version, other) = (schema(), schema());
    let versions = super::Same(typed(&version));
    let mut world = World::new(&versions);
    world.run(vec![
        Apply("one", json!({ "text": "a" })),
        Update("two", json!({ "text": "a", "flag": true })),
    ]);
    let only = super::super::OneVersion {
        api_version: "v2",
        typed: typed(&other),
    };
    world.versions = &only;
    world.live["apiVersion"] = json!("v2");
    world.run(vec![At("v2"), Apply("three", json!({ "text": "b" }))]);
    assert_eq!(world.content(), json!({ "text": "b", "flag": true }));
    assert_eq!(world.managed(), json!({ "Apply three": { "f:text": {} } }));
}

#[test]
fn fields_that_are_reset_get_no_manager() {
    let version = schema();
    let versions = super::Same(typed(&version));
    let mut world = World::new(&versions);
    world.reset = Reset::these(&[&["status"]]);
    world.run(vec![
        Update("one", json!({ "text": "a", "status": { "text": "s" } })),
        Apply("two", json!({ "text": "a", "status": { "text": "t" } })),
    ]);
    let expected = json!({ "Apply two": { "f:text": {} }, "Update one": { "f:text": {} } });
    assert_eq!(world.managed(), expected);
    world.reset = Reset::AllBut(vec!["status".into()]);
    world.run(vec![Update(
        "three",
        json!({ "text": "b", "status": { "text": "u" } }),
    )]);
    let expected = json!({
        "Apply two": { "f:text": {} }, "Update one": { "f:text": {} },
        "Update three": { "f:status": { "f:text": {} } },
    });
    assert_eq!(world.managed(), expected);
}

/// Versions in which a field has another name each: `text_v1`, `text_v2`.
struct Renaming(Vec<(&'static str, CompiledVersion)>);

impl Renaming {
    fn new() -> Self {
        let text = json!({ "type": "string" });
        let version = |name: &'static str| {
            let own = format!("text_{name}");
            let fields = json!({ "struct": { "type": "object", "properties": { "name": text, own: text } } });
            (name, compile(&fields))
        };
        Renaming(["v1", "v2", "v3"].map(version).into())
    }
}

impl Versions for Renaming {
    fn typed(&self, api_version: &str) -> Option<Typed<'_>> {
        let found = self.0.iter().find(|(name, _)| *name == api_version)?;
        Some(typed(&found.1))
    }

    fn convert(&self, object: &Value, to: &str) -> Option<Value> {
        self.typed(to)?;
        let mut object = object.clone();
        object["apiVersion"] = json!(to);
        if let Some(fields) = object["struct"].as_object_mut() {
            let own = fields.keys().find(|key| key.starts_with("text_")).cloned();
            if let Some(value) = own.and_then(|own| fields.remove(&own)) {
                fields.insert(format!("text_{to}"), value);
            }
        }
        Some(object)
    }
}

const NAMES: [&str; 3] = ["v1", "v2", "v3"];
const FIELDS: [&str; 3] = [".struct.text_v1", ".struct.text_v2", ".struct.text_v3"];

#[test]
fn managers_of_several_versions_share_fields() {
    for choice in 0..27 {
        let (a, b, c) = (choice / 9, choice / 3 % 3, choice % 3);
        share_fields(a, b, c);
    }
}

/// The second applier still wants a field that the first one, now at a third version, no longer does.
fn share_fields(a: usize, b: usize, c: usize) {
    let renaming = Renaming::new();
    let own = |version: usize| format!("text_{}", NAMES[version]);
    let mut world = World::new(&renaming);
    world.run(vec![
        At(NAMES[a]),
        Apply("one", json!({ "struct": { "name": "n", own(a): "x" } })),
        At(NAMES[b]),
        Apply("two", json!({ "struct": { own(b): "x" } })),
        Refused(
            "three",
            json!({ "struct": { own(b): "y" } }),
            vec![("\"one\"", FIELDS[a]), ("\"two\"", FIELDS[b])],
        ),
        At(NAMES[c]),
        Apply("one", json!({ "struct": { "name": "n" } })),
    ]);
    let expected = json!({ "struct": { "name": "n", own(c): "x" } });
    assert_eq!(world.content(), expected, "{a} {b} {c}");
    let expected = json!({
        "Apply one": { "f:struct": { "f:name": {} } },
        "Apply two": { "f:struct": { format!("f:{}", own(b)): {} } },
    });
    assert_eq!(world.managed(), expected, "{a} {b} {c}");
    world.run(vec![At(NAMES[a]), Apply("two", json!({}))]);
    let expected = json!({ "struct": { "name": "n" } });
    assert_eq!(world.content(), expected, "{a} {b} {c}");
}
