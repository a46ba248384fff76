//! JSON patches that apply, that do not, and that cost too much.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn patched(document: Value, patch: Value) -> Result<Value, JsonPatchError> {
    JsonPatch::decode(patch.to_string().as_bytes())?.apply(document)
}

#[track_caller]
fn check(document: Value, operation: Value, expect: Value) {
    let patch = json!([operation]);
    assert_eq!(patched(document, patch.clone()), Ok(expect), "{patch}");
}

#[track_caller]
fn refused(document: Value, operation: Value) {
    let result = patched(document, json!([operation.clone()]));
    let error = result.expect_err(&operation.to_string());
    assert_eq!(error.status(), 422, "{error}");
}

#[test]
fn add_sets_members_and_inserts_items() {
    let add = |path: &str| json!({"op": "add", "path": path, "value": 9});
    check(json!({}), add("/a"), json!({"a": 9}));
    check(json!({"a": 1}), add("/a"), json!({"a": 9}));
    check(json!({"a": [1, 2]}), add("/a/1"), json!({"a": [1, 9, 2]}));
    check(json!({"a": [1, 2]}), add("/a/2"), json!({"a": [1, 2, 9]}));
    check(json!({"a": [1, 2]}), add("/a/-"), json!({"a": [1, 2, 9]}));
    check(
        json!({"a/b~": {}}),
        add("/a~1b~0/c"),
        json!({"a/b~": {"c": 9}}),
    );
    check(json!({}), add("/"), json!({"": 9}));
    check(
        json!({}),
        json!({"op": "add", "path": "/a"}),
        json!({"a": null}),
    );
    for path in [
        "", "/a/3", "/a/-1", "/a/+1", "/a/x", "/b/c", "/a/0/b", "x", "/~2",
    ] {
        refused(json!({"a": [1, 2]}), add(path));
    }
}

#[test]
fn remove_needs_something_to_remove() {
    let remove = |path: &str| json!({"op": "remove", "path": path});
    check(json!({"a": 1, "b": 2}), remove("/a"), json!({"b": 2}));
    check(json!({"a": [1, 2]}), remove("/a/0"), json!({"a": [2]}));
    for path in [
        "/b",
        "/a/2",
        "/a/-",
        "/a/-1",
        "",
        "/b/c",
        "/a/99999999999999999999999",
    ] {
        refused(json!({"a": [1, 2]}), remove(path));
    }
}

#[test]
fn replace_adds_an_absent_member_but_no_absent_item() {
    let replace = |path: &str, value: Value| json!({"op": "replace", "path": path, "value": value});
    check(json!({"a": 1}), replace("/a", json!(2)), json!({"a": 2}));
    check(
        json!({"a": 1}),
        replace("/b", json!(2)),
        json!({"a": 1, "b": 2}),
    );
    check(
        json!({"a": [1]}),
        replace("/a/0", json!(2)),
        json!({"a": [2]}),
    );
    check(
        json!({"a": 1}),
        replace("", json!({"b": 2})),
        json!({"b": 2}),
    );
    refused(json!({"a": [1]}), replace("/a/1", json!(2)));
    refused(json!({"a": [1]}), replace("/a/-", json!(2)));
    refused(json!({"a": 1}), replace("/b/c", json!(2)));
    refused(json!({}), replace("", json!(2)));
}

#[test]
fn move_and_copy_take_a_value_elsewhere() {
    let step = |op: &str, from: &str, path: &str| json!({"op": op, "from": from, "path": path});
    check(json!({"a": 1}), step("move", "/a", "/b"), json!({"b": 1}));
    check(
        json!({"a": [1, 2]}),
        step("move", "/a/0", "/a/-"),
        json!({"a": [2, 1]}),
    );
    check(
        json!({"a": 1}),
        step("copy", "/a", "/b"),
        json!({"a": 1, "b": 1}),
    );
    check(
        json!({"a": 1}),
        step("copy", "/x", "/b"),
        json!({"a": 1, "b": null}),
    );
    refused(json!({"a": {"b": 1}}), step("move", "/a", "/a/c"));
    refused(json!({"a": 1}), step("move", "/x", "/b"));
    refused(json!({"a": 1}), step("copy", "", "/b"));
    refused(json!({"a": 1}), step("copy", "/x/y", "/b"));
}

#[test]
fn failed_tests_refuse_the_patch() {
    let test = |path: &str, value: Value| json!({"op": "test", "path": path, "value": value});
    let document = json!({"a": "1", "b": [1], "c": {}});
    for passing in [
        test("/a", json!("1")),
        test("/b", json!([1])),
        test("", document.clone()),
        test("/absent", Value::Null),
    ] {
        check(document.clone(), passing, document.clone());
    }
    refused(document.clone(), test("/a", json!("2")));
    refused(document.clone(), test("/absent", json!(1)));
    refused(document.clone(), test("/b/1", Value::Null));
    refused(document, test("/x/y", Value::Null));
}

#[test]
fn all_operations_apply_or_none() {
    let patch = json!([
        {"op": "add", "path": "/b", "value": 1},
        {"op": "test", "path": "/a", "value": 2},
    ]);
    let error = patched(json!({"a": 1}), patch).expect_err("the test fails");
    assert_eq!(error.to_string(), "testing value /a failed: test failed");
}

#[test]
fn bad_patches_have_the_status_of_the_api_server() {
    let cases: [(&str, Option<u16>); 10] = [
        ("{}", Some(400)),
        ("[1]", Some(400)),
        ("[", Some(400)),
        ("[] x", Some(400)),
        ("[{\"op\":1}]", Some(400)),
        ("[{\"op\":\"jump\",\"path\":\"/a\"}]", Some(422)),
        ("[{\"path\":\"/a\"}]", Some(422)),
        ("[{\"op\":\"add\",\"value\":1}]", Some(422)),
        ("[{\"op\":\"copy\",\"path\":\"/a\"}]", Some(422)),
        ("[]", None),
    ];
    for (text, expect) in cases {
        let result = JsonPatch::decode(text.as_bytes()).and_then(|p| p.apply(json!({})));
        assert_eq!(result.err().map(|error| error.status()), expect, "{text}");
    }
}

#[test]
fn too_many_operations_are_refused() {
    let patch = |count| Value::from(vec![json!({"op": "test", "path": ""}); count]).to_string();
    assert!(JsonPatch::decode(patch(10_000).as_bytes()).is_ok());
    let error = JsonPatch::decode(patch(10_001).as_bytes()).expect_err("one too many");
    assert_eq!(error.status(), 413);
    assert_eq!(
        error.to_string(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn doubling_copies_run_out_of_budget() {
    let document = json!({"a": ["x".repeat(50)]});
    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    assert!(patched(document.clone(), Value::from(vec![double.clone(); 10])).is_ok());
    let error = patched(document, Value::from(vec![double; 30])).expect_err("over 3 MiB");
    assert_eq!(error.status(), 422);
    assert!(error.to_string().contains("accumulated size"), "{error}");
}

#[test]
fn moves_do_not_nest_deeper_than_the_limit() {
    let chain = (0..100).fold(json!({}), |inner, _| json!({"x": inner}));
    let end = "/c".to_owned() + &"/x".repeat(100);
    let patch = json!([
        {"op": "add", "path": "/c", "value": chain},
        {"op": "move", "from": "/t", "path": end + "/t"},
    ]);
    let shallow = json!({"t": {"a": 1}});
    assert!(patched(shallow, patch.clone()).is_ok());
    let deep = (0..40).fold(json!({}), |inner, _| json!({"x": inner}));
    let error = patched(json!({"t": deep}), patch).expect_err("too deep");
    assert!(error.to_string().contains("nested deeper"), "{error}");
}

#[test]
fn long_pointers_and_endless_shifting_are_refused() {
    let long = "/".to_owned() + &"a".repeat(1024 * 1024);
    refused(json!({}), json!({"op": "add", "path": long, "value": 1}));
    refused(json!({}), json!({"op": "test", "path": "/a".repeat(200)}));
    let items = Value::from(vec![0; 100_000]);
    let shift = json!({"op": "add", "path": "/a/0", "value": 0});
    let error = patched(json!({"a": items}), Value::from(vec![shift; 1_000]));
    let error = error.expect_err("a hundred million shifts");
    assert!(error.to_string().contains("too many values"), "{error}");
}

fn operation() -> impl Strategy<Value = Value> {
    let path = "(/[ab0-2-]){0,3}|/[ab~]|[ab]";
    let op = prop_oneof![
        Just("add"),
        Just("remove"),
        Just("replace"),
        Just("move"),
        Just("copy"),
        Just("test"),
    ];
    let value = prop_oneof![
        Just(json!(1)),
        Just(json!([1, 2])),
        Just(json!({"a": {"b": []}})),
        Just(Value::Null),
    ];
    (op, path, path, value).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn patching_never_panics_and_stays_within_the_budget(
        operations in proptest::collection::vec(operation(), 0..40),
    ) {
        let patch = Value::from(operations);
        let text = patch.to_string();
        if let Ok(document) = patched(json!({"a": {"b": [1]}, "b": [[], {}]}), patch) {
            prop_assert!(is_within_depth(&document, MAX_DEPTH));
            prop_assert!(document.to_string().len() <= text.len() + 3 * 1024 * 1024 + 64);
        }
    }

    #[test]
    fn adding_and_removing_a_member_changes_nothing(key in "[a-z/~]{1,6}", value in 0..9) {
        let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        let patch = json!([
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
            {"op": "remove", "path": path},
        ]);
        prop_assert_eq!(patched(json!({}), patch), Ok(json!({})));
    }
}
