//! Facts about server-side apply. Sets are written as `fieldsV1`, objects without what is the same in all of them.

mod comparing;
mod managing;
mod merging;
mod properties;
mod scenarios;
mod sets;
mod tables;

use serde_json::{Map, Value, json};

use super::{
    ApplyError, FieldManager, Force, Managed, Operation, Reset, Set, Typed, Versions, from_fields,
};
use crate::crd::{CompiledVersion, Definition};

/// A schema with one field of each sort.
fn schema() -> CompiledVersion {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "number" });
    let maps = json!({ "type": "object", "additionalProperties": {
        "type": "object", "additionalProperties": { "type": "object", "additionalProperties": { "type": "string" } },
    } });
    compile(&json!({
        "text": text, "number": number, "flag": { "type": "boolean" },
        "set": { "type": "array", "items": text, "x-kubernetes-list-type": "set" },
        "numbers": { "type": "array", "items": number, "x-kubernetes-list-type": "set" },
        "flags": { "type": "array", "items": { "type": "boolean" }, "x-kubernetes-list-type": "set" },
        "list": keyed(&["name"], &json!({
            "name": text, "value": number, "more": number,
            "set": { "type": "array", "items": text, "x-kubernetes-list-type": "set" },
        })),
        "pairs": keyed(&["key", "id"], &json!({ "key": text, "id": number, "value": text })),
        "ports": keyed(&["port", "protocol"], &json!({
            "port": number, "protocol": { "type": "string", "default": "TCP" }, "name": text,
        })),
        "sequence": { "type": "array", "items": text },
        "map": { "type": "object", "additionalProperties": text },
        "maps": maps,
        "struct": { "type": "object", "properties": {
            "text": text, "number": number, "inner": { "type": "object", "properties": { "text": text } },
        } },
        "atomic": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "a": text, "b": text } },
        "any": { "x-kubernetes-preserve-unknown-fields": true },
        "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "text": text } },
        "status": { "type": "object", "properties": { "text": text } },
    }))
}

fn keyed(keys: &[&str], properties: &Value) -> Value {
    json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        "items": { "type": "object", "properties": properties },
    })
}

fn compile(properties: &Value) -> CompiledVersion {
    let definition = Definition::parse(&json!({ "spec": { "versions": [{
        "name": "v1", "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
    }] } }));
    let version = definition.version("v1").expect("was given");
    CompiledVersion::new(version, None).expect("compiles")
}

fn typed(version: &CompiledVersion) -> Typed<'_> {
    Typed::new(&version.table, version.root)
}

fn set(fields: &Value) -> Set {
    from_fields(fields).expect("is a set")
}

/// All versions of `group/` with the same type.
struct Same<'t>(Typed<'t>);

impl Versions for Same<'_> {
    fn typed(&self, api_version: &str) -> Option<Typed<'_>> {
        api_version.starts_with('v').then_some(self.0)
    }

    fn convert(&self, object: &Value, to: &str) -> Option<Value> {
        let mut object = object.clone();
        object["apiVersion"] = json!(to);
        self.typed(to).map(|_| object)
    }
}

/// One write.
enum Op {
    Apply(&'static str, Value),
    Force(&'static str, Value),
    /// An apply that is refused with these conflicts: manager and field.
    Refused(&'static str, Value, Vec<(&'static str, &'static str)>),
    Update(&'static str, Value),
    /// What follows is written at this version.
    At(&'static str),
}

/// An object and the writes it has seen.
struct World<'v> {
    versions: &'v dyn Versions,
    api_version: &'static str,
    reset: Reset,
    live: Value,
}

impl<'v> World<'v> {
    fn new(versions: &'v dyn Versions) -> Self {
        World {
            versions,
            api_version: "v1",
            reset: Reset::Nothing,
            live: json!({}),
        }
    }

    fn manager<'a>(&'a self, manager: &'a str) -> FieldManager<'a> {
        FieldManager {
            versions: self.versions,
            api_version: self.api_version,
            kind: "Thing",
            subresource: "",
            manager,
            now: "2026-01-01T00:00:00Z",
            reset: &self.reset,
        }
    }

    fn named(&self, content: &Value) -> Value {
        let mut object = content.clone();
        object["apiVersion"] = json!(self.api_version);
        object["kind"] = json!("Thing");
        object
    }

    fn apply(&mut self, manager: &str, config: &Value, force: Force) -> Result<(), ApplyError> {
        let live = self.live_here();
        let applied = self.manager(manager);
        self.live = applied.apply(Some(&live), &self.named(config), force)?;
        Ok(())
    }

    fn update(&mut self, manager: &str, content: &Value) {
        let live = self.live_here();
        let mut new = self.named(content);
        self.manager(manager).update(Some(&live), &mut new);
        self.live = new;
    }

    fn live_here(&self) -> Value {
        if self.live.get("apiVersion").is_none() || self.live["apiVersion"] == self.api_version {
            return self.live.clone();
        }
        let converted = self.versions.convert(&self.live, self.api_version);
        converted.expect("a version of the test")
    }

    fn run(&mut self, ops: Vec<Op>) {
        for op in ops {
            match op {
                Op::Apply(manager, config) => {
                    let applied = self.apply(manager, &config, Force::No);
                    applied.unwrap_or_else(|e| panic!("{config}: {e}"));
                }
                Op::Force(manager, config) => {
                    self.apply(manager, &config, Force::Yes).expect("is forced");
                }
                Op::Refused(manager, config, expected) => {
                    let conflicts = match self.apply(manager, &config, Force::No) {
                        Err(ApplyError::Conflicts(conflicts)) => conflicts,
                        other => panic!("{config}: {other:?}"),
                    };
                    let found: Vec<(String, String)> = conflicts
                        .0
                        .iter()
                        .map(|c| (c.manager.clone(), c.field()))
                        .collect();
                    let expected: Vec<(String, String)> = expected
                        .iter()
                        .map(|(manager, field)| ((*manager).to_owned(), (*field).to_owned()))
                        .collect();
                    assert_eq!(found, expected, "{config}");
                }
                Op::Update(manager, content) => self.update(manager, &content),
                Op::At(version) => self.api_version = version,
            }
        }
    }

    /// The object without what all objects have.
    fn content(&self) -> Value {
        let mut content = self.live.clone();
        let fields = content.as_object_mut().expect("is an object");
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
        content
    }

    /// Who manages what: `Apply one` or `Update one` and the fields.
    fn managed(&self) -> Value {
        let managed = Managed::of(&self.live).expect("was written by us");
        let entry = |entry: &super::Entry| {
            let operation = match entry.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            };
            let name = format!("{operation} {}", entry.manager);
            (name, super::to_fields(&entry.fields))
        };
        Value::Object(managed.0.iter().map(entry).collect::<Map<_, _>>())
    }
}

/// Runs writes on a new object and checks what is there and who manages it.
fn check(name: &str, ops: Vec<Op>, content: &Value, managed: &Value) {
    let version = schema();
    let versions = Same(typed(&version));
    let mut world = World::new(&versions);
    world.run(ops);
    assert_eq!(&world.content(), content, "{name}: object");
    assert_eq!(&world.managed(), managed, "{name}: managers");
}
