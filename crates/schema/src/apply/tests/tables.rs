//! Writes of several managers as data: `tables.yaml`.

use serde_json::{Value, json};

use super::{Force, Same, World, compile, keyed, typed};
use crate::crd::CompiledVersion;
use crate::decode::{self, Format};

const TABLES: &str = include_str!("tables.yaml");

fn schema() -> CompiledVersion {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let set = json!({ "type": "array", "items": text, "x-kubernetes-list-type": "set" });
    let map = json!({ "type": "object", "additionalProperties": text });
    let deeper = |inner: &Value| json!({ "type": "object", "additionalProperties": inner });
    compile(&json!({
        "text": text, "number": number, "flag": { "type": "boolean" }, "set": set,
        "numbers": { "type": "array", "items": number, "x-kubernetes-list-type": "set" },
        "list": keyed(&["name"], &json!({ "name": text, "number": number, "set": set, "map": map })),
        "sets": deeper(&set),
        "maps": deeper(&deeper(&map)),
        "struct": { "type": "object", "properties": { "text": text, "number": number } },
        "ports": keyed(&["port", "protocol"], &json!({
            "port": number, "protocol": { "type": "string", "default": "TCP" }, "name": text,
        })),
        "sequence": { "type": "array", "items": text },
        "atomic": { "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "any": { "x-kubernetes-preserve-unknown-fields": true },
    }))
}

#[test]
fn managers_come_out_as_the_tables_say() {
    let tables = decode::parse(TABLES.as_bytes(), Format::Yaml).expect("YAML");
    let cases = tables.value.as_array().expect("a list of cases").clone();
    assert!(cases.len() > 40);
    for case in &cases {
        check(case);
    }
}

fn check(case: &Value) {
    let name = &case["name"];
    let version = schema();
    let versions = Same(typed(&version));
    let mut world = World::new(&versions);
    for step in case["steps"].as_array().expect("steps") {
        take(&mut world, step, name);
    }
    assert_eq!(world.content(), case["object"], "{name}: object");
    assert_eq!(world.managed(), case["managed"], "{name}: managers");
}

fn take(world: &mut World<'_>, step: &Value, name: &Value) {
    let text = |at: usize| step[at].as_str().expect("a word");
    let (manager, object) = (text(1), &step[2]);
    match text(0) {
        "at" => world.api_version = version_named(manager),
        "apply" => {
            let applied = world.apply(manager, object, Force::No);
            applied.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        "force" => {
            let applied = world.apply(manager, object, Force::Yes);
            applied.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        "refused" => {
            let refused = world.apply(manager, object, Force::No);
            let conflicts = match refused {
                Err(super::ApplyError::Conflicts(conflicts)) => conflicts,
                other => panic!("{name}: {other:?}"),
            };
            let found: Value = conflicts
                .0
                .iter()
                .map(|conflict| json!([conflict.manager, conflict.field()]))
                .collect();
            assert_eq!(found, step[3], "{name}: conflicts");
        }
        "update" => world.update(manager, object),
        other => panic!("{name}: {other} is not a step"),
    }
}

fn version_named(name: &str) -> &'static str {
    let known = ["v1", "v2", "v3"].into_iter().find(|known| *known == name);
    known.expect("one of three versions")
}
