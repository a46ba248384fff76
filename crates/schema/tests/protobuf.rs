//! Objects in protobuf and in JSON, both written by Go, mean the same.

use std::fs;
use std::path::{Path, PathBuf};

use kubewright_schema::decode::{self, Format};
use kubewright_schema::protobuf::{self, Envelope};
use kubewright_schema::{Table, TypeId};
use serde_json::Value;

/// Every object: its name, its protobuf, its JSON.
fn objects() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protobuf");
    let entries = fs::read_dir(directory).expect("the directory is there");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pb"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            let json = fs::read(path.with_extension("json")).expect("the same in JSON");
            (name.into_owned(), fs::read(path).expect("readable"), json)
        })
        .collect()
}

fn type_of(bytes: &[u8]) -> TypeId {
    let envelope = Envelope::parse(bytes).expect("an envelope");
    let api_version = &*envelope.api_version;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Table::builtin()
        .kind(group, version, &envelope.kind)
        .expect("a built-in kind")
}

fn from_json(ty: TypeId, json: &[u8]) -> Value {
    let decoded = decode::decode(Table::builtin(), ty, json, Format::Json).expect("valid JSON");
    assert_eq!(decoded.strict, []);
    decoded.value
}

#[test]
fn protobuf_of_go_reads_as_the_json_of_go() {
    let objects = objects();
    assert!(objects.len() > 20);
    for (name, bytes, json) in objects {
        let ty = type_of(&bytes);
        let value = protobuf::decode(Table::builtin(), ty, &bytes).expect(&name);
        assert_eq!(value, from_json(ty, &json), "{name}");
    }
}

#[test]
fn json_of_go_survives_protobuf() {
    for (name, bytes, json) in objects() {
        let ty = type_of(&bytes);
        let value = from_json(ty, &json);
        let written = protobuf::encode(Table::builtin(), ty, &value);
        let back = protobuf::decode(Table::builtin(), ty, &written).expect(&name);
        assert_eq!(back, value, "{name}");
    }
}

#[test]
fn damaged_objects_are_refused_or_read_but_never_fatal() {
    for (_, mut bytes, _) in objects() {
        let ty = type_of(&bytes);
        for at in 4..bytes.len() {
            let _ = protobuf::decode(Table::builtin(), ty, &bytes[..at]);
            let good = bytes[at];
            for damage in [good ^ 0x80, good.wrapping_add(1), 0xff] {
                bytes[at] = damage;
                let _ = protobuf::decode(Table::builtin(), ty, &bytes);
            }
            bytes[at] = good;
        }
    }
}
