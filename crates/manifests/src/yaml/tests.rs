//! What is written, and that it is read back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{document, documents};

#[track_caller]
fn check(value: &Value, expected: &str) {
    let text = document(value);
    assert_eq!(text, format!("---\n{expected}"));
    assert_eq!(read(&text), *value, "read back from {text}");
}

fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

#[test]
fn keys_are_sorted_and_lists_are_not_indented() {
    check(
        &json!({"kind": "A", "apiVersion": "v1", "list": [{"b": 1, "a": [1, [2, 3]]}, [], {}], "empty": {}}),
        "apiVersion: v1\nempty: {}\nkind: A\nlist:\n- a:\n  - 1\n  - - 2\n    - 3\n  b: 1\n- []\n- {}\n",
    );
}

#[test]
fn text_that_would_be_another_type_is_in_double_quotes() {
    for text in [
        "",
        "~",
        "null",
        "Null",
        "true",
        "FALSE",
        "yes",
        "No",
        "on",
        "OFF",
        "y",
        "N",
        "=",
        "<<",
        "1",
        "-1",
        "+1",
        "007",
        "0x1F",
        "0o17",
        "0b101",
        "1_000",
        "1.5",
        ".5",
        "1.",
        "1e3",
        "1E-3",
        "1.5e+3",
        ".inf",
        "-.INF",
        ".nan",
        "1:30",
        "12:30:45.5",
        "2001-12-14",
        "2001-1-1",
        "2001-12-14T21:59:43.10-05:00",
        "2001-12-14 21:59:43",
    ] {
        check(&json!({ "a": text }), &format!("a: \"{text}\"\n"));
        check(&json!({ text: 1 }), &format!("\"{text}\": 1\n"));
    }
}

#[test]
fn text_with_punctuation_is_in_single_quotes() {
    for text in [
        "*", "&a", "!a", "%a", "@a", "`a", "#a", "{a}", "[a]", "a: b", "a:", "a #b", " a", "a ",
        "- a", "? a", ": a", "-", "?", ":", "|", ">", ",", "\"a", "---", "...", "--- a",
    ] {
        check(&json!([text]), &format!("- '{text}'\n"));
    }
    check(&json!("'a"), "'''a'\n");
}

#[test]
fn text_that_nobody_misreads_stays_plain() {
    for text in [
        "a",
        "nginx:1.2",
        "1.2.3",
        "10Gi",
        "100m",
        "1e",
        "0x",
        "0b2",
        "1:60",
        "e3",
        "v1",
        "a#b",
        "a:b",
        "-a",
        "--leader-elect",
        "a, b",
        "a'b",
        "a\"b",
        "it is [a]",
        "é",
        "nope",
        "2001-12",
        "2001-12-14-1",
        "1-2-3",
        "/a",
        "$a",
        "(a)",
        "a b c",
        "😀",
        "127.0.0.1",
        "https://a.b/c?d=e&f",
        "0.0.0.0:80",
        "_",
        "_1",
        "yes.",
        "+a",
        "24h",
        ":8081",
        "::1",
    ] {
        check(&json!({ "a": text }), &format!("a: {text}\n"));
    }
}

#[test]
fn text_of_several_lines_is_a_block() {
    check(
        &json!({"a": {"b": "one\n\n  two\nthree"}}),
        "a:\n  b: |-\n    one\n\n      two\n    three\n",
    );
    check(&json!({"a": "one\n"}), "a: |\n  one\n");
    check(&json!(["one\ntwo\n\n", 1]), "- |+\n  one\n  two\n\n- 1\n");
    check(&json!("one: 1\n# two"), "|-\n  one: 1\n  # two\n");
}

#[test]
fn text_that_is_no_clean_block_is_escaped() {
    check(&json!({"a": "\n"}), "a: \"\\n\"\n");
    check(&json!({"a": " one\ntwo"}), "a: \" one\\ntwo\"\n");
    check(&json!({"a": "one \ntwo"}), "a: \"one \\ntwo\"\n");
    check(
        &json!({"a": "one\ttwo\r\u{7}\u{85}\u{feff}\\\""}),
        "a: \"one\\ttwo\\r\\u0007\\u0085\\uFEFF\\\\\\\"\"\n",
    );
    check(&json!({"a\nb": 1}), "\"a\\nb\": 1\n");
}

#[test]
fn numbers_are_numbers_to_all_readers() {
    check(
        &json!({"a": i64::MIN, "b": u64::MAX}),
        "a: -9223372036854775808\nb: 18446744073709551615\n",
    );
    check(
        &json!([0.5, -1.25, 1e300, 1.5e-9]),
        "- 0.5\n- -1.25\n- 1.0e+300\n- 1.5e-9\n",
    );
    assert_eq!(
        document(&json!([1.0, -0.0, 1e15])),
        "---\n- 1\n- -0\n- 1000000000000000\n"
    );
}

#[test]
fn long_keys_are_marked() {
    let key = "k".repeat(1500);
    check(&json!({ &key: {"a": 1} }), &format!("? {key}\n:\n  a: 1\n"));
}

#[test]
fn many_documents_follow_each_other() {
    assert_eq!(
        documents(&[json!({"a": 1}), json!({"b": 2})]),
        "---\na: 1\n---\nb: 2\n"
    );
    assert_eq!(documents::<Value>(&[]), "");
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~\n]{0,12}",
        "[-+.:_0-9eExXoObBTtZ ]{1,10}",
        "[*&!%@#?|>'\"\\[\\]{},: a\n\t-]{1,8}",
        proptest::collection::vec(any::<char>(), 0..6).prop_map(|c| c.into_iter().collect()),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any_text(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_is_read_back(value in any_value()) {
        let text = document(&value);
        prop_assert_eq!(read(&text), value, "{}", text);
    }

    #[test]
    fn text_of_any_kind_is_read_back(text in any_text()) {
        let written = document(&json!({ "a": [&text] }));
        prop_assert_eq!(read(&written), json!({ "a": [&text] }), "{}", written);
    }

    #[test]
    fn floats_are_read_back(float in proptest::num::f64::NORMAL) {
        let read = read(&document(&json!([float])));
        prop_assert_eq!(read[0].as_f64(), Some(float));
    }
}
