use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, json};

use super::wire::{Fields, Payload, put_bytes, put_message, put_number, put_varint};
use super::*;
use crate::invented::{Inventor, kinds};
use crate::types::{Form, Outline};

fn kind(group: &str, version: &str, kind: &str) -> TypeId {
    let found = Table::builtin().kind(group, version, kind);
    found.expect("a built-in kind")
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn check(ty: TypeId, bytes: &[u8], expected: Value) {
    let found = decode_message(Table::builtin(), ty, bytes).expect("a valid message");
    assert_eq!(found, expected);
}

fn refuse(bytes: &[u8], expected: &str) {
    let pod = kind("", "v1", "Pod");
    let error = decode(Table::builtin(), pod, bytes).expect_err("refused");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_object_is_written_as_go_writes_it() {
    let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
    let bytes = encode(Table::builtin(), kind("", "v1", "Namespace"), &value);
    let expected = b"k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x05\n\x03\n\x01a\x1a\0\"\0";
    assert_eq!(bytes, expected);
    let back = decode(Table::builtin(), kind("", "v1", "Namespace"), &bytes);
    assert_eq!(back, Ok(value));
}

#[test]
fn zero_of_a_pointer_is_kept_and_zero_of_a_value_is_not() {
    let spec = Table::builtin().named("io.k8s.api.apps.v1.DeploymentSpec");
    let bytes = message(|out| {
        put_number(1, 0, out); // replicas, a pointer
        put_number(5, 0, out); // minReadySeconds, a value
        put_number(7, 0, out); // paused, a value
        put_number(9, 0, out); // progressDeadlineSeconds, a pointer
    });
    let expected = json!({"replicas": 0, "progressDeadlineSeconds": 0});
    check(spec.expect("a type"), &bytes, expected);
}

#[test]
fn time_of_no_length_is_not_set_and_the_epoch_is() {
    let status = Table::builtin().named("io.k8s.api.core.v1.ContainerStateTerminated");
    let bytes = message(|out| {
        put_number(1, 3, out);
        put_bytes(5, b"", out);
        put_message(6, out, |out| put_number(1, 0, out));
    });
    let expected = json!({"exitCode": 3, "finishedAt": "1970-01-01T00:00:00Z"});
    check(status.expect("a type"), &bytes, expected);
}

#[test]
fn the_last_second_of_the_year_9999_goes_both_ways() {
    let metadata = json!({"name": "a", "creationTimestamp": "9999-12-31T23:59:59Z"});
    let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let bytes = encode(Table::builtin(), kind("", "v1", "Namespace"), &value);
    let back = decode(Table::builtin(), kind("", "v1", "Namespace"), &bytes);
    assert_eq!(back, Ok(value));
}

#[test]
fn parts_of_a_message_are_put_together() {
    let bytes = message(|out| {
        put_message(1, out, |out| put_bytes(1, b"first", out));
        put_bytes(77, b"from the future", out);
        put_message(1, out, |out| put_bytes(3, b"shop", out));
        put_message(1, out, |out| put_bytes(1, b"second", out));
    });
    let expected = json!({"metadata": {"name": "second", "namespace": "shop"}});
    check(kind("", "v1", "Pod"), &bytes, expected);
}

#[test]
fn numbers_may_come_packed_or_one_by_one() {
    let user = Table::builtin().named("io.k8s.api.core.v1.LinuxContainerUser");
    let bytes = message(|out| {
        put_number(1, 5, out);
        put_number(2, u64::MAX, out);
        put_number(3, 7, out);
        put_bytes(3, &[8, 0x80, 1], out);
    });
    let expected = json!({"uid": 5, "gid": -1, "supplementalGroups": [7, 8, 128]});
    check(user.expect("a type"), &bytes, expected);
}

#[test]
fn groups_are_skipped() {
    let mut bytes = b"\x23\x28\x07\x24\x0a\x05\x0a\x03abc".to_vec();
    check(
        kind("", "v1", "Pod"),
        &bytes,
        json!({"metadata": {"name": "abc"}}),
    );
    bytes.push(0x24);
    let error = decode_message(Table::builtin(), kind("", "v1", "Pod"), &bytes);
    assert_eq!(error, Err(ProtobufError::UnexpectedEndOfGroup));
}

#[test]
fn malformed_bytes_are_refused_in_the_words_of_go() {
    let cases: [(&[u8], &str); 9] = [
        (b"", "empty data"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x12\x02\x0a", "unexpected EOF"),
        (b"k8s\0\x12\x02\x0a\x01", "unexpected EOF"),
        (
            b"k8s\0\x12\x02\x08\x01",
            "proto: wrong wireType = 0 for field Metadata",
        ),
        (b"k8s\0\x10\x01", "proto: wrong wireType = 0 for field Raw"),
        (b"k8s\0\x00", "proto: illegal tag 0 (wire type 0)"),
        (
            b"k8s\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
            "proto: integer overflow",
        ),
    ];
    for (bytes, expected) in cases {
        refuse(bytes, expected);
    }
}

#[test]
fn values_that_json_would_be_refused_for_are_refused() {
    let requirements = Table::builtin().named("io.k8s.api.core.v1.ResourceRequirements");
    let bytes = message(|out| {
        put_message(1, out, |out| {
            put_bytes(1, b"cpu", out);
            put_message(2, out, |out| put_bytes(1, b"lots", out));
        });
    });
    let found = decode_message(Table::builtin(), requirements.expect("a type"), &bytes);
    assert!(matches!(found, Err(ProtobufError::Value(_))), "{found:?}");
    let revision = message(|out| {
        put_message(2, out, |out| put_bytes(1, b"{\"a\"", out));
    });
    let found = decode_message(
        Table::builtin(),
        kind("apps", "v1", "ControllerRevision"),
        &revision,
    );
    assert!(matches!(found, Err(ProtobufError::Json(_))), "{found:?}");
}

#[test]
fn nesting_has_a_limit() {
    let schema = special::schema(Table::builtin()).expect("a type");
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        // `not` holds a schema.
        bytes = message(|out| put_bytes(28, &bytes, out));
    }
    let found = decode_message(Table::builtin(), schema, &bytes);
    assert_eq!(found, Err(ProtobufError::TooDeep));
}

#[test]
fn a_watch_frame_starts_with_its_length() {
    let frame = watch_frame("ADDED", b"k8s\0...");
    assert_eq!(frame, b"\0\0\0\x12\n\x05ADDED\x12\t\n\x07k8s\0...");
}

#[test]
fn metadata_of_any_object_is_written() {
    let list = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a", "managedFields": [{"fieldsV1": {}}]}}],
    });
    let bytes = encode_partial(&list);
    let envelope = Envelope::parse(&bytes).expect("an envelope");
    assert_eq!(envelope.kind, "PartialObjectMetadataList");
    assert_eq!(
        envelope.raw,
        b"\n\x03\x12\x017\x12\x0e\n\x0c\n\x01a\x8a\x01\x06:\x04\n\x02{}"
    );
}

/// What is left of a value after protobuf: what has a number there and is not zero where zero means nothing.
fn remains(ty: TypeId, value: &Value) -> Value {
    let table = Table::builtin();
    match (&table.get(ty).shape, value) {
        (Shape::Struct(s), Value::Object(map)) => {
            let mut left = Map::new();
            for field in s.fields().iter().filter(|field| field.tag.is_some()) {
                let Some(value) = map.get(&*field.name) else {
                    continue;
                };
                let value = remains(field.ty, value);
                let container = matches!(
                    table.get(field.ty).shape,
                    Shape::Map { .. } | Shape::List(_)
                );
                let wrapped = s
                    .wire(s.position(&field.name).expect("a field"))
                    .is_some_and(|wire| wire.wrapped && value.is_array());
                let empty = value == json!([]) || value == json!({});
                let zero = [json!(""), json!(0), json!(false)].contains(&value);
                let unset = value.is_null()
                    || (container && empty && !wrapped)
                    || (field.omit_zero && zero);
                if !unset {
                    left.insert(field.name.to_string(), value);
                }
            }
            left.into()
        }
        (Shape::Map { value: inner, .. }, Value::Object(map)) => map
            .iter()
            .map(|(key, value)| (key.clone(), remains(*inner, value)))
            .collect(),
        (Shape::List(list), Value::Array(items)) => {
            items.iter().map(|item| remains(list.item, item)).collect()
        }
        (Shape::Any, value) => match special::Loose::of(table, ty) {
            Some(special::Loose::Json) => value.clone(),
            Some(_) => Outline::of_value(value)
                .and_then(|outline| match table.form(ty, outline) {
                    Form::Typed(form) => Some(remains(form, value)),
                    Form::Free | Form::Foreign => None,
                })
                .filter(|value| *value != json!([]))
                .unwrap_or_default(),
            None => Value::Null,
        },
        _ => value.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_value_of_any_kind_survives_a_round_trip(seed: u64, ty in select(kinds())) {
        let table = Table::builtin();
        let value = Inventor { state: seed }.value(ty, 8);
        let mut expected = remains(ty, &value);
        for field in ["apiVersion", "kind"] {
            if let Some(text) = value.get(field).filter(|text| *text != "") {
                expected[field] = text.clone();
            }
        }
        let back = decode(table, ty, &encode(table, ty, &value));
        prop_assert_eq!(back, Ok(expected));
    }

    #[test]
    fn random_bytes_are_never_fatal(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ty in select(kinds()),
    ) {
        let _ = decode_message(Table::builtin(), ty, &bytes);
        let mut enveloped = MAGIC.to_vec();
        enveloped.extend_from_slice(&bytes);
        let _ = decode(Table::builtin(), ty, &enveloped);
    }

    #[test]
    fn numbers_read_back(value: u64) {
        let bytes = message(|out| put_number(3, value, out));
        prop_assert_eq!(
            Fields::new(&bytes).next(),
            Ok(Some((3, Payload::Varint(value))))
        );
        let bytes = message(|out| put_varint(value, out));
        prop_assert_eq!(wire::varint(&bytes), Ok((value, &[][..])));
    }

    #[test]
    fn messages_of_any_length_read_back(length in 0_usize..40_000) {
        let content = vec![7; length];
        let bytes = message(|out| {
            put_message(9, out, |out| out.extend_from_slice(&content));
        });
        prop_assert_eq!(
            Fields::new(&bytes).next(),
            Ok(Some((9, Payload::Bytes(&content))))
        );
    }
}
