//! Documents: JSON and YAML, without a type and as built-in kinds. What is written reads as the same.

use kubewright_schema::decode::{self, Format};
use kubewright_schema::{Table, TypeId, encode, protobuf, yaml as writer};
use serde_json::Value;

use super::{Verdict, start};

pub(super) fn json(input: &[u8]) -> Verdict {
    read(input, Format::Json)
}

pub(super) fn yaml(input: &[u8]) -> Verdict {
    read(input, Format::Yaml)
}

fn read(input: &[u8], format: Format) -> Verdict {
    let parsed = match decode::parse(input, format) {
        Ok(parsed) => parsed,
        Err(error) => return Verdict::refused(start(&error.to_string())),
    };
    survives_json(&parsed.value);
    // YAML is read on a thread of its own, which costs more than all the rest.
    if format == Format::Yaml {
        survives_yaml(&parsed.value);
    }
    let Some(ty) = type_of(&parsed.value) else {
        return Verdict::accepted("nothing known");
    };
    let decoded = match decode::decode(Table::builtin(), ty, input, format) {
        Ok(decoded) => decoded,
        Err(error) => return Verdict::refused(start(&error.to_string())),
    };
    let first = typed_bytes(ty, &decoded.value);
    let again = decode::decode(Table::builtin(), ty, &first, Format::Json)
        .expect("what was written as a type reads as that type");
    assert_eq!(again.strict, [], "what was written is known");
    assert_eq!(
        typed_bytes(ty, &again.value),
        first,
        "writing what was written changes nothing"
    );
    survives_protobuf(ty, &again.value);
    Verdict::accepted(format!(
        "{} {}",
        kind(&decoded.value),
        decoded.strict.len().min(3)
    ))
}

/// A value without a type is written the same after reading it back. The value itself may differ: `4.0` is written as
/// `4`, as Go does.
fn survives_json(value: &Value) {
    let bytes = untyped_bytes(value);
    let again = decode::parse(&bytes, Format::Json).expect("what was written reads");
    assert_eq!(untyped_bytes(&again.value), bytes, "JSON keeps values");
}

/// As with JSON, so with YAML.
fn survives_yaml(value: &Value) {
    if let Ok(text) = writer::to_string(value) {
        let again = decode::parse(text.as_bytes(), Format::Yaml);
        let again = again.unwrap_or_else(|error| panic!("what was written reads, but {error}"));
        assert_eq!(
            untyped_bytes(&again.value),
            untyped_bytes(value),
            "YAML keeps values"
        );
    }
}

fn untyped_bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::write_untyped(value, &mut bytes);
    bytes
}

/// An object is the same after protobuf, as far as JSON can tell.
pub(super) fn survives_protobuf(ty: TypeId, value: &Value) {
    let table = Table::builtin();
    if !protobuf::is_supported(table, ty) {
        return;
    }
    let read = |value: &Value| {
        let bytes = protobuf::encode(table, ty, value);
        protobuf::decode(table, ty, &bytes)
            .unwrap_or_else(|error| panic!("what was written as protobuf reads, but {error}"))
    };
    // The first time may lose what protobuf does not tell apart, such as an empty text from none.
    let once = read(value);
    assert_eq!(read(&once), once, "protobuf keeps what it tells");
}

fn typed_bytes(ty: TypeId, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::write(Table::builtin(), ty, value, &mut bytes);
    bytes
}

/// The built-in type of an object.
pub(super) fn type_of(value: &Value) -> Option<TypeId> {
    let api_version = value.get("apiVersion")?.as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Table::builtin().kind(group, version, value.get("kind")?.as_str()?)
}

fn kind(value: &Value) -> &str {
    value
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
}
