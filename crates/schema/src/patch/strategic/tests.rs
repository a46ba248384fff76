//! Strategic merge patches on a table with the shapes that matter: a small Deployment.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::types::{Field, List, ListKind, Scalar, Struct, Type};

/// A table under construction.
#[derive(Default)]
struct Builder {
    table: Table,
}

fn merge(key: &str) -> Option<Patch> {
    Some(Patch {
        merge: true,
        merge_key: (!key.is_empty()).then(|| key.into()),
        ..Patch::default()
    })
}

fn merge_retain(key: &str) -> Option<Patch> {
    merge(key).map(|patch| Patch {
        retain_keys: true,
        ..patch
    })
}

impl Builder {
    fn add(&mut self, shape: Shape) -> TypeId {
        self.table.add(Type::of(shape))
    }

    fn list(&mut self, item: TypeId) -> TypeId {
        self.add(Shape::List(List {
            item,
            kind: ListKind::Atomic,
        }))
    }

    fn object(&mut self, fields: Vec<(&str, TypeId, Option<Patch>)>) -> TypeId {
        let fields = fields.into_iter().map(|(name, ty, patch)| Field {
            patch,
            ..Field::new(name, ty)
        });
        self.add(Shape::Struct(Struct::new(fields.collect())))
    }
}

/// The fields of a pod that merge in one way or another.
fn pod_spec(b: &mut Builder) -> TypeId {
    let string = b.add(Shape::Scalar(Scalar::String));
    let number = b.add(Shape::Scalar(Scalar::Int32));
    let any = b.add(Shape::Any);
    let strings = b.list(string);
    let env = b.object(vec![("name", string, None), ("value", string, None)]);
    let port = b.object(vec![
        ("containerPort", number, None),
        ("name", string, None),
    ]);
    let (envs, ports) = (b.list(env), b.list(port));
    let container = b.object(vec![
        ("name", string, None),
        ("image", string, None),
        ("args", strings, None),
        ("env", envs, merge("name")),
        ("ports", ports, merge("containerPort")),
        ("extra", any, None),
    ]);
    let volume = b.object(vec![("name", string, None), ("emptyDir", any, None)]);
    let toleration = b.object(vec![("key", string, None), ("value", string, None)]);
    let (containers, volumes) = (b.list(container), b.list(volume));
    let tolerations = b.list(toleration);
    b.object(vec![
        ("containers", containers, merge("name")),
        ("volumes", volumes, merge_retain("name")),
        ("tolerations", tolerations, None),
    ])
}

fn deployment() -> (Table, TypeId) {
    let mut b = Builder::default();
    let pod = pod_spec(&mut b);
    let string = b.add(Shape::Scalar(Scalar::String));
    let any = b.add(Shape::Any);
    let strings = b.list(string);
    let nested = b.list(strings);
    let labels = b.add(Shape::Map {
        value: string,
        atomic: false,
    });
    let metadata = b.object(vec![
        ("labels", labels, None),
        ("finalizers", strings, merge("")),
        ("matrix", nested, merge("")),
        ("keyless", nested, merge("")),
    ]);
    let strategy = b.object(vec![("type", string, None), ("rollingUpdate", any, None)]);
    let retain = Some(Patch {
        retain_keys: true,
        ..Patch::default()
    });
    let replace = Some(Patch::default());
    let spec = b.object(vec![
        ("strategy", strategy, retain),
        ("selector", any, replace),
        ("pod", pod, None),
    ]);
    let root = b.object(vec![("metadata", metadata, None), ("spec", spec, None)]);
    (b.table, root)
}

fn patched(current: Value, patch: Value) -> Result<Value, StrategicError> {
    let (table, root) = deployment();
    apply(&table, root, &current, patch)
}

#[track_caller]
fn check(current: Value, patch: Value, expect: Value) {
    let result = patched(current, patch.clone());
    assert_eq!(result, Ok(expect), "{patch}");
}

/// Checks a patch of `spec.pod`.
#[track_caller]
fn check_pod(current: Value, patch: Value, expect: Value) {
    let wrap = |pod: Value| json!({"spec": {"pod": pod}});
    check(wrap(current), wrap(patch), wrap(expect));
}

/// Checks a patch of `metadata`.
#[track_caller]
fn check_metadata(current: Value, patch: Value, expect: Value) {
    let wrap = |metadata: Value| json!({"metadata": metadata});
    check(wrap(current), wrap(patch), wrap(expect));
}

#[track_caller]
fn refused(current: Value, patch: Value, status: u16, expect: &str) {
    let error = patched(current, patch.clone()).expect_err(&patch.to_string());
    assert_eq!(error.to_string(), expect);
    assert_eq!(error.status(), status, "{error}");
}

#[test]
fn objects_merge_and_nulls_remove() {
    check(
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        json!({"metadata": {"labels": {"b": null, "c": "3"}}, "spec": {"pod": null}}),
        json!({"metadata": {"labels": {"a": "1", "c": "3"}}, "spec": {}}),
    );
    check(json!({"a": 1}), Value::Null, json!({"a": 1}));
    check(json!({"a": {"b": 1}}), json!({"a": 5}), json!({"a": 5}));
    check(
        json!({"a": 5}),
        json!({"a": {"b": 1, "c": null}}),
        json!({"a": {"b": 1}}),
    );
}

#[test]
fn containers_merge_by_name() {
    check_pod(
        json!({"containers": [{"name": "a", "image": "x", "args": ["1"]}, {"name": "b"}]}),
        json!({"containers": [{"name": "b", "image": "y"}, {"name": "a", "args": ["2"]}]}),
        json!({"containers": [{"name": "b", "image": "y"}, {"name": "a", "image": "x", "args": ["2"]}]}),
    );
    check_pod(
        json!({"containers": [{"name": "a"}]}),
        json!({"containers": [{"name": "new", "image": "z", "args": null}]}),
        json!({"containers": [{"name": "new", "image": "z"}, {"name": "a"}]}),
    );
    check_pod(
        json!({}),
        json!({"containers": [{"name": "a", "image": null}]}),
        json!({"containers": [{"name": "a"}]}),
    );
}

#[test]
fn lists_inside_of_items_merge_as_well() {
    check_pod(
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y"}],
            "ports": [{"containerPort": 80, "name": "web"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}],
            "ports": [{"containerPort": 443}, {"containerPort": 80, "name": null}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}, {"name": "Y"}],
            "ports": [{"containerPort": 443}, {"containerPort": 80}]}]}),
    );
}

#[test]
fn items_with_one_key_stay_apart_and_the_first_is_merged() {
    check_pod(
        json!({"containers": [{"name": "a", "ports": [
            {"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]}]}),
        json!({"containers": [{"name": "a", "ports": [{"containerPort": 53, "name": "dns"}]}]}),
        json!({"containers": [{"name": "a", "ports": [
            {"containerPort": 53, "protocol": "TCP", "name": "dns"},
            {"containerPort": 53, "protocol": "UDP"}]}]}),
    );
}

#[test]
fn lists_without_strategy_are_replaced() {
    check_pod(
        json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
        json!({"tolerations": [{"key": "c"}]}),
        json!({"tolerations": [{"key": "c"}]}),
    );
    check(
        json!({"unknown": {"list": [1, 2], "map": {"a": 1}}}),
        json!({"unknown": {"list": [3], "map": {"b": 2}}}),
        json!({"unknown": {"list": [3], "map": {"a": 1, "b": 2}}}),
    );
}

#[test]
fn items_are_deleted_by_directive() {
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}),
        json!({"containers": [{"$patch": "delete", "name": "b"}, {"name": "d"}]}),
        json!({"containers": [{"name": "d"}, {"name": "a"}, {"name": "c"}]}),
    );
    check_pod(
        json!({"containers": [{"name": "a"}]}),
        json!({"containers": [{"$patch": "delete", "name": "absent"}]}),
        json!({"containers": [{"name": "a"}]}),
    );
    check_pod(
        json!({}),
        json!({"containers": [{"$patch": "delete", "name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "b"}]}),
    );
}

#[test]
fn lists_and_objects_are_replaced_by_directive() {
    check_pod(
        json!({"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a"}, {"$patch": "replace"}]}),
        json!({"containers": [{"name": "a"}]}),
    );
    check_pod(
        json!({"containers": [{"name": "a"}]}),
        json!({"containers": [{"$patch": "replace"}]}),
        json!({"containers": []}),
    );
    check(
        json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x"]}}),
        json!({"metadata": {"$patch": "replace", "labels": {"b": "2"}}}),
        json!({"metadata": {"labels": {"b": "2"}}}),
    );
    check(
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        json!({"metadata": {"labels": {}}}),
    );
    check(
        json!({"metadata": {}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        json!({"metadata": {}}),
    );
}

#[test]
fn scalar_lists_merge_without_duplicates() {
    check_metadata(
        json!({"finalizers": ["a", "b"]}),
        json!({"finalizers": ["b", "c"]}),
        json!({"finalizers": ["a", "b", "c"]}),
    );
    check_metadata(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"finalizers": ["b", "d"]}),
        json!({"finalizers": ["a", "b", "d", "c"]}),
    );
    check_metadata(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["b", "x"]}),
        json!({"finalizers": ["a", "c"]}),
    );
    check_metadata(
        json!({"finalizers": ["a", "b"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}),
        json!({"finalizers": ["c", "b"]}),
    );
    check_metadata(
        json!({}),
        json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
        json!({}),
    );
}

#[test]
fn retained_keys_drop_the_others() {
    let strategy = |value: Value| json!({"spec": {"strategy": value}});
    check(
        strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})),
        strategy(json!({"$retainKeys": ["type"], "type": "Recreate"})),
        strategy(json!({"type": "Recreate"})),
    );
    check(
        json!({"spec": {}}),
        strategy(json!({"$retainKeys": ["type"], "type": "Recreate"})),
        strategy(json!({"type": "Recreate"})),
    );
    check_pod(
        json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
        json!({"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/"}}]}),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
    );
    for bad in [
        json!({"$retainKeys": "type"}),
        json!({"$retainKeys": [], "type": "x"}),
    ] {
        let expect = "invalid patch format of retainKeys";
        refused(strategy(json!({"type": "y"})), strategy(bad), 400, expect);
    }
}

#[test]
fn element_order_places_items_of_the_patch() {
    check_metadata(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"$setElementOrder/finalizers": ["c", "a"]}),
        json!({"finalizers": ["b", "c", "a"]}),
    );
    check_metadata(
        json!({"finalizers": ["a", "server", "b"]}),
        json!({"$setElementOrder/finalizers": ["a", "new", "b"], "finalizers": ["new"]}),
        json!({"finalizers": ["a", "new", "server", "b"]}),
    );
    check_metadata(
        json!({}),
        json!({"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["b", "a"]}),
        json!({"finalizers": ["b", "a"]}),
    );
    check_metadata(
        json!({"finalizers": ["a", "b"]}),
        json!({"$setElementOrder/finalizers": ["b"], "$deleteFromPrimitiveList/finalizers": ["a"]}),
        json!({"finalizers": ["b"]}),
    );
    check_metadata(
        json!({}),
        json!({"$setElementOrder/finalizers": ["a"]}),
        json!({}),
    );
}

#[test]
fn element_order_works_on_items_by_key() {
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "sidecar"}, {"name": "b", "image": "x"}]}),
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "new"}, {"name": "a"}],
            "containers": [{"name": "b", "image": "y"}, {"name": "new"}],
        }),
        json!({"containers": [
            {"name": "sidecar"}, {"name": "b", "image": "y"}, {"name": "new"}, {"name": "a"}]}),
    );
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({
            "$setElementOrder/containers": [{"name": "b"}],
            "containers": [{"name": "a", "$patch": "delete"}],
        }),
        json!({"containers": [{"name": "b"}]}),
    );
    check_pod(
        json!({"containers": [{"name": "a", "env": [{"name": "X"}, {"name": "Y"}]}]}),
        json!({"containers": [{"name": "a", "$setElementOrder/env": [{"name": "Y"}, {"name": "X"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "Y"}, {"name": "X"}]}]}),
    );
}

#[test]
fn new_items_take_the_room_of_deleted_ones() {
    check_pod(
        json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "sidecar"}]}),
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "new"}, {"name": "newer"}],
            "containers": [{"name": "new"}, {"name": "newer"}, {"name": "a", "$patch": "delete"}],
        }),
        json!({"containers": [
            {"name": "b"}, {"name": "sidecar"}, {"name": "new"}, {"name": "newer"}]}),
    );
}

#[test]
fn objects_with_another_strategy_are_replaced() {
    let selector = |value: Value| json!({"spec": {"selector": value}});
    check(
        selector(json!({"matchLabels": {"a": "1"}})),
        selector(json!({"matchLabels": {"b": "2"}})),
        selector(json!({"matchLabels": {"b": "2"}})),
    );
}

#[test]
fn patches_that_break_the_rules_are_refused_with_the_words_of_kubernetes() {
    let pod = |value: Value| json!({"spec": {"pod": value}});
    let current = pod(json!({"containers": [{"name": "a"}]}));
    let cases = [
        (
            json!({"containers": [{"image": "x", "args": ["1", "2"]}]}),
            "map: map[args:[1 2] image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "drop", "name": "a"}]}),
            "unknown patch type: drop in map: map[$patch:drop name:a]",
        ),
        (
            json!({"containers": [{"$patch": "merge", "name": "a"}]}),
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"$patch": "merge", "x": {"y": [null]}}),
            "unknown patch type: merge in map: map[$patch:merge x:map[y:[<nil>]]]",
        ),
        (
            json!({"containers": ["a"]}),
            "list element types are not identical: [[map[name:a]] [a]]",
        ),
        (
            json!({"$setElementOrder/containers": {"name": "a"}}),
            "expected a []interface {}, but received a map[string]interface {}",
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}),
            "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
    ];
    for (patch, expect) in cases {
        refused(current.clone(), pod(patch), 500, expect);
    }
}

#[test]
fn malformed_directives_are_bad_requests() {
    let current = json!({"metadata": {"finalizers": ["a"], "matrix": [["x"]], "keyless": [{}]}});
    let metadata = |value: Value| json!({"metadata": value});
    let cases = [
        (
            json!({"$deleteFromPrimitiveList": ["a"]}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"$setElementOrder": ["a"]}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"matrix": [["y"]]}),
            422,
            "lists of lists are not supported",
        ),
        (
            json!({"keyless": [{}]}),
            500,
            "cannot merge lists without merge key for struct",
        ),
    ];
    for (patch, status, expect) in cases {
        refused(current.clone(), metadata(patch), status, expect);
    }
    let expect = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    refused(json!({}), json!([]), 400, expect);
    let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"a": inner}));
    assert_eq!(patched(json!({}), deep), Err(StrategicError::TooDeep));
}

#[test]
fn prints_in_errors_are_bounded() {
    let long = "é".repeat(100_000);
    let patch =
        json!({"spec": {"pod": {"containers": [{"image": long, "args": vec!["x"; 9000]}]}}});
    let current = json!({"spec": {"pod": {"containers": [{"name": "a"}]}}});
    let error = patched(current, patch).expect_err("no merge key");
    assert!(error.to_string().len() < 10_000);
}

/// Items in any order, each key once: a list with a key twice is not a patch that says one thing.
fn container() -> impl Strategy<Value = (String, Value)> {
    let env = proptest::collection::btree_map("[X-Z]", "[0-9]", 0..4)
        .prop_map(|env| env.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    let optional_image = proptest::option::of("[a-c]");
    ("[a-d]", optional_image, env).prop_map(|(name, image, env)| {
        let env: Vec<Value> = env
            .into_iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let container = json!({"name": name, "image": image, "env": env});
        (name, container)
    })
}

fn document() -> impl Strategy<Value = Value> {
    let finalizers = proptest::collection::vec("[a-d]", 0..5);
    let containers = proptest::collection::vec(container(), 0..5).prop_map(|containers| {
        let mut seen = std::collections::HashSet::new();
        let unique = containers
            .into_iter()
            .filter(|(name, _)| seen.insert(name.clone()));
        unique.map(|(_, container)| container).collect::<Vec<_>>()
    });
    (finalizers, containers).prop_map(|(finalizers, containers)| {
        json!({"metadata": {"finalizers": finalizers}, "spec": {"pod": {"containers": containers}}})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_patch_without_directives_applies_twice_as_once(
        current in document(),
        patch in document(),
    ) {
        let once = patched(current, patch.clone()).expect("keys are there");
        prop_assert_eq!(patched(once.clone(), patch), Ok(once));
    }

    #[test]
    fn element_order_is_kept_and_nothing_is_lost(
        current in proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5).prop_shuffle(),
        order in proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 1..=5).prop_shuffle(),
    ) {
        let patch = json!({"metadata": {"$setElementOrder/finalizers": order, "finalizers": order}});
        let result = patched(json!({"metadata": {"finalizers": current}}), patch).expect("valid");
        let items: Vec<&str> = result["metadata"]["finalizers"]
            .as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let from_patch: Vec<&str> = items.iter().copied().filter(|i| order.contains(i)).collect();
        let from_server: Vec<&str> = items.iter().copied().filter(|i| !order.contains(i)).collect();
        let server_only: Vec<&str> = current.iter().copied().filter(|i| !order.contains(i)).collect();
        prop_assert_eq!(from_patch, order);
        prop_assert_eq!(from_server, server_only);
    }
}
