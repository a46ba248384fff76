use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::decode::{Format, decode};
use crate::invented::{Inventor, kinds};

const META: &str = r#""metadata":{"name":"a","resourceVersion":""}"#;

fn encoded(kind: (&str, &str, &str), value: &Value) -> (String, Option<usize>) {
    let table = Table::builtin();
    let ty = table.kind(kind.0, kind.1, kind.2).expect(kind.2);
    let mut out = Vec::new();
    let encoded = encode(table, ty, value, &mut out);
    (String::from_utf8(out).expect("UTF-8"), encoded.version_at)
}

#[track_caller]
fn check(kind: (&str, &str, &str), value: Value, expected: &str) {
    let (text, version_at) = encoded(kind, &value);
    assert_eq!(text, expected);
    let at = version_at.expect("an object has a version");
    assert!(text[..at].ends_with(r#""resourceVersion":""#), "{text}");
}

#[test]
fn fields_stand_in_the_order_of_the_go_struct() {
    check(
        ("", "v1", "Secret"),
        json!({"type":"Opaque","apiVersion":"v1","data":{"b":"","a":""},"kind":"Secret","immutable":true,
               "metadata":{"uid":"u","generation":1,"name":"a","resourceVersion":"","labels":{"z":"1","b":"2"}}}),
        r#"{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","uid":"u","resourceVersion":"","generation":1,"labels":{"b":"2","z":"1"}},"immutable":true,"data":{"a":"","b":""},"type":"Opaque"}"#,
    );
}

#[test]
fn structs_of_go_are_written_when_empty() {
    check(
        ("", "v1", "Service"),
        json!({"metadata":{"name":"a"}}),
        &format!(r#"{{{META},"spec":{{}},"status":{{"loadBalancer":{{}}}}}}"#),
    );
    check(
        ("apps", "v1", "Deployment"),
        json!({"metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}),
        &format!(
            r#"{{{META},"spec":{{"template":{{"metadata":{{}},"spec":{{"containers":[{{"name":"c","resources":{{}}}}]}}}},"strategy":{{}}}},"status":{{}}}}"#
        ),
    );
    check(
        ("", "v1", "Pod"),
        json!({"metadata":{"name":"a"},"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}),
        &format!(
            r#"{{{META},"spec":{{"containers":null}},"status":{{"conditions":[{{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":null}}]}}}}"#
        ),
    );
}

#[test]
fn what_go_never_leaves_out_is_written_when_it_is_zero() {
    check(
        ("", "v1", "Node"),
        json!({"metadata":{"name":"a"},"spec":{},"status":{"nodeInfo":{"bootID":"b"}}}),
        &format!(
            r#"{{{META},"spec":{{}},"status":{{"daemonEndpoints":{{"kubeletEndpoint":{{"Port":0}}}},"nodeInfo":{{"machineID":"","systemUUID":"","bootID":"b","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}}}}"#
        ),
    );
    check(
        ("", "v1", "Pod"),
        json!({"metadata":{"name":"a"},"spec":{"containers":[]},"status":{"containerStatuses":[{"name":"c"}]}}),
        &format!(
            r#"{{{META},"spec":{{"containers":[]}},"status":{{"containerStatuses":[{{"name":"c","state":{{}},"lastState":{{}},"ready":false,"restartCount":0,"image":"","imageID":""}}]}}}}"#
        ),
    );
}

#[test]
fn metadata_is_added_with_its_version() {
    check(
        ("", "v1", "ConfigMap"),
        json!({"kind":"ConfigMap"}),
        r#"{"kind":"ConfigMap","metadata":{"resourceVersion":""}}"#,
    );
    let (text, at) = encoded(
        ("", "v1", "ConfigMap"),
        &json!({"metadata":{"resourceVersion":"17"}}),
    );
    assert_eq!(text, r#"{"metadata":{"resourceVersion":"17"}}"#);
    assert_eq!(at.map(|at| &text[at..at + 2]), Some("17"));
}

#[test]
fn only_the_metadata_of_the_object_has_a_version() {
    let (text, _) = encoded(
        ("", "v1", "PodTemplate"),
        &json!({"metadata":{"name":"a"},"template":{"metadata":{"name":"b"}}}),
    );
    assert_eq!(text.matches("resourceVersion").count(), 1);
    let (text, at) = encoded(("", "v1", "PodList"), &json!({"items":[]}));
    assert_eq!((&*text, at), (r#"{"metadata":{},"items":[]}"#, None));
    let table = Table::builtin();
    let status = table.kind("", "v1", "Status").expect("Status");
    let mut out = Vec::new();
    write(
        table,
        status,
        &json!({"code":404,"kind":"Status"}),
        &mut out,
    );
    assert_eq!(out, br#"{"kind":"Status","metadata":{},"code":404}"#);
}

#[test]
fn unknown_keys_come_last_and_nulls_do_not_come() {
    check(
        ("", "v1", "ConfigMap"),
        json!({"zz":1,"aa":{"b":null},"metadata":{"name":"a"},"data":null,"immutable":false}),
        &format!(r#"{{{META},"immutable":false,"aa":{{"b":null}},"zz":1}}"#),
    );
}

#[test]
fn schemas_within_schemas_keep_their_order() {
    let crd = Table::builtin()
        .named("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
    let value = json!({"items":{"properties":{"k":{"type":"string","default":1}},"type":"object"},"additionalProperties":true});
    let mut out = Vec::new();
    write(
        Table::builtin(),
        crd.expect("JSONSchemaProps"),
        &value,
        &mut out,
    );
    assert_eq!(
        String::from_utf8(out).expect("UTF-8"),
        r#"{"items":{"type":"object","properties":{"k":{"type":"string","default":1}}},"additionalProperties":true}"#
    );
}

#[test]
fn offset_counts_from_the_start_of_the_output() {
    let mut out = b"before".to_vec();
    let value = json!({"metadata":{"name":"a"}});
    let at = encode_untyped(&value, &mut out)
        .version_at
        .expect("a version");
    assert_eq!(&out[at..], br#""}}"#);
}

#[test]
fn untyped_keys_are_sorted() {
    let cases = [
        (
            json!({"spec":{"b":1,"a":[{"d":null,"c":-1}]},"kind":"K","metadata":{"uid":"u","name":"n"}}),
            r#"{"kind":"K","metadata":{"name":"n","resourceVersion":"","uid":"u"},"spec":{"a":[{"c":-1,"d":null}],"b":1}}"#,
        ),
        (
            json!({"metadata":{}}),
            r#"{"metadata":{"resourceVersion":""}}"#,
        ),
        (
            json!({"metadata":{"zz":1}}),
            r#"{"metadata":{"resourceVersion":"","zz":1}}"#,
        ),
        (
            json!({"metadata":{"a":1}}),
            r#"{"metadata":{"a":1,"resourceVersion":""}}"#,
        ),
        (
            json!({"metadata":{"resourceVersion":"5","a":1}}),
            r#"{"metadata":{"a":1,"resourceVersion":"5"}}"#,
        ),
    ];
    for (value, expected) in cases {
        let mut out = Vec::new();
        let at = encode_untyped(&value, &mut out)
            .version_at
            .expect("a version");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(text, expected);
        assert!(text[..at].ends_with(r#""resourceVersion":""#));
    }
    let mut out = Vec::new();
    assert_eq!(
        encode_untyped(&json!([{"a":true}]), &mut out).version_at,
        None
    );
    assert_eq!(out, br#"[{"a":true}]"#);
}

#[test]
fn strings_are_escaped_as_go_does() {
    let cases = [
        ("a<b>&c", r#""a\u003cb\u003e\u0026c""#),
        ("\u{2028}\u{2029}\u{2027}é€", "\"\\u2028\\u2029\u{2027}é€\""),
        (
            "\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}",
            "\"\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}\"",
        ),
        (r#"\""#, r#""\\\"""#),
        ("", r#""""#),
    ];
    for (input, expected) in cases {
        let mut out = Vec::new();
        text::string(input, &mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}

#[test]
fn numbers_are_written_as_go_does() {
    let cases = [
        (json!(1.0), "1"),
        (json!(-0.5), "-0.5"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e21), "1e+21"),
        (json!(1.5e-7), "1.5e-7"),
        (json!(0.000001), "0.000001"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(i64::MIN), "-9223372036854775808"),
    ];
    for (value, expected) in cases {
        let mut out = Vec::new();
        write_untyped(&value, &mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}

#[test]
fn empty_maps_and_lists_are_left_out_where_go_leaves_them_out() {
    let table = Table::builtin();
    let ty = table.kind("apps", "v1", "Deployment").expect("a kind");
    let value = json!({
        "metadata": {"labels": {}, "annotations": {}, "finalizers": []},
        "spec": {
            "selector": {"matchLabels": {}},
            "template": {"spec": {"containers": [], "volumes": [], "nodeSelector": {}, "securityContext": {}}},
        },
    });
    let mut out = Vec::new();
    let _ = encode(table, ty, &value, &mut out);
    assert_eq!(
        String::from_utf8(out).expect("UTF-8"),
        r#"{"metadata":{"resourceVersion":""},"spec":{"selector":{},"template":{"metadata":{},"spec":{"containers":[],"securityContext":{}}},"strategy":{}},"status":{}}"#
    );
}

#[test]
fn realistic_objects_survive_a_round_trip() {
    let objects = [
        (
            ("apps", "v1", "Deployment"),
            include_str!("../../tests/data/deployment.yaml"),
        ),
        (("", "v1", "Pod"), include_str!("../../tests/data/pod.yaml")),
        (
            ("", "v1", "Service"),
            include_str!("../../tests/data/service.yaml"),
        ),
        (
            ("", "v1", "ConfigMap"),
            include_str!("../../tests/data/configmap.yaml"),
        ),
        (
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
            include_str!("../../tests/data/crd.yaml"),
        ),
    ];
    let table = Table::builtin();
    for (kind, text) in objects {
        let ty = table.kind(kind.0, kind.1, kind.2).expect(kind.2);
        let first = decode(table, ty, text.as_bytes(), Format::Yaml).expect(kind.2);
        assert_eq!(first.strict, [], "{}", kind.2);
        round_trip(ty, &first.value);
    }
}

/// Encodes and decodes a value: what is lost or added is empty, and doing it again changes nothing.
fn round_trip(ty: TypeId, value: &Value) {
    let table = Table::builtin();
    let mut first = Vec::new();
    let _ = encode(table, ty, value, &mut first);
    let decoded = decode(table, ty, &first, Format::Json).expect("what we write can be read");
    assert_eq!(decoded.strict, []);
    assert!(
        covers(&decoded.value, value),
        "{value}\nbecame\n{}",
        decoded.value
    );
    let mut second = Vec::new();
    let _ = encode(table, ty, &decoded.value, &mut second);
    assert_eq!(first, second);
    let standard: Value = serde_json::from_slice(&first).expect("valid JSON");
    let mut untyped = Vec::new();
    write_untyped(&standard, &mut untyped);
    assert_eq!(
        serde_json::from_slice::<Value>(&untyped).expect("valid JSON"),
        standard
    );
}

/// Whether `big` is `small` plus and minus empty things.
fn covers(big: &Value, small: &Value) -> bool {
    match (big, small) {
        (Value::Object(big), Value::Object(small)) => {
            small.iter().all(|(key, small)| match big.get(key) {
                Some(big) => covers(big, small),
                None => *small == json!({}) || *small == json!([]),
            }) && big
                .iter()
                .all(|(key, value)| small.contains_key(key) || is_empty(value))
        }
        (Value::Array(big), Value::Array(small)) => {
            big.len() == small.len() && big.iter().zip(small).all(|(big, small)| covers(big, small))
        }
        _ => big == small,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.values().all(is_empty),
        // Zero is a quantity as well.
        Value::String(text) => text.is_empty() || text == "0",
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Null => true,
        Value::Array(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_value_of_any_kind_survives_a_round_trip(seed: u64, ty in select(kinds())) {
        let value = Inventor { state: seed }.value(ty, 8);
        round_trip(ty, &value);
    }
}

/// Each write of an object reads what an earlier one wrote: a number that drifted would never settle.
#[test]
fn numbers_are_the_same_after_reading_what_was_written() {
    for text in [
        "922337202566854775807",
        "1.7976931348623157e308",
        "5e-324",
        "0.1",
        "123456789.123456789",
        "-2.2250738585072014e-308",
    ] {
        let write = |text: &[u8]| {
            let parsed = crate::decode::parse(text, crate::decode::Format::Json);
            let mut out = Vec::new();
            write_untyped(&parsed.expect("a number").value, &mut out);
            out
        };
        let once = write(text.as_bytes());
        assert_eq!(write(&once), once, "{text}");
        let number: f64 = text.parse().expect("a number");
        let written = String::from_utf8(once).expect("digits");
        assert_eq!(written.parse(), Ok(number), "{text}");
    }
}
