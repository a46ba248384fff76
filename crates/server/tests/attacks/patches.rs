//! Patches that try to grow, to nest, or to reach where nothing is.

use serde_json::{Value, json};

use crate::call::{Ask, JSON_PATCH, MERGE, STRATEGIC};
use crate::host::{
    BAD_REQUEST, CONFIG_MAPS, DEPLOYMENTS, Host, INVALID, LIMIT, MEMORY, TOO_LARGE, Verdict,
    WIDGETS, padding, peak_memory,
};

fn victim(kind: &str, body: impl Into<crate::call::Text>) -> Ask {
    Ask::patch(format!("{CONFIG_MAPS}/victim"), kind, body)
}

#[tokio::test]
async fn ten_thousand_operations_are_the_most() {
    let host = Host::start().await;
    let operations = |count| {
        json!(vec![
            json!({"op": "test", "path": "/data/a", "value": "1"});
            count
        ])
    };
    let answer = host
        .refuses("10,001", victim(JSON_PATCH, operations(10_001)), TOO_LARGE)
        .await;
    assert_eq!(
        answer.message(),
        "The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    host.must(victim(JSON_PATCH, operations(10_000))).await;
    let shortest = format!("[{}0]", "0,".repeat(LIMIT / 2 - 2));
    host.refuses("a million numbers", victim(JSON_PATCH, shortest), TOO_LARGE)
        .await;
}

/// Each step doubles what is there: thirty of them would take 30 GB.
fn doubling(first: &str, step: impl Fn(usize) -> Value) -> Value {
    let add = json!({"op": "add", "path": first, "value": {"a": padding(32)}});
    let steps = (0..30).map(step);
    Value::Array([add].into_iter().chain(steps).collect())
}

#[tokio::test]
async fn copies_cannot_double_without_end() {
    let host = Host::start().await;
    let memory = peak_memory();
    let into_itself = doubling(
        "/data",
        |i| json!({"op": "copy", "from": "/data", "path": format!("/data/k{i}")}),
    );
    let side_by_side = doubling(
        "/metadata/annotations",
        |i| json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/k{i}")}),
    );
    let free = doubling(
        "/spec/free",
        |i| json!({"op": "copy", "from": "/spec/free", "path": format!("/spec/free/k{i}")}),
    );
    host.refuses("data", victim(JSON_PATCH, into_itself), INVALID)
        .await;
    host.refuses("metadata", victim(JSON_PATCH, side_by_side), INVALID)
        .await;
    let widget = Ask::patch(format!("{WIDGETS}/victim"), JSON_PATCH, free);
    host.refuses("custom", widget, INVALID).await;
    assert!(peak_memory() - memory < MEMORY);
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_refused() {
    let host = Host::start().await;
    host.must(Ask::patch(
        format!("{WIDGETS}/victim"),
        MERGE,
        json!({"spec": {"free": {"list": [1, 2, 3]}}}),
    ))
    .await;
    let long = format!("/{}", padding(1 << 20));
    let deep = "/a".repeat(500_000);
    for path in [
        "/spec/free/list/99999999999999999999",
        "/spec/free/list/18446744073709551615",
        "/spec/free/list/4",
        "/spec/free/list/-2",
        "/spec/free/list/1e1",
        "/spec/free/list/a",
        "/spec/free/~2",
        "/spec/free/~",
        "spec",
        "/nothing/here",
        "/spec/size/a",
        long.as_str(),
        deep.as_str(),
    ] {
        let short = &path[..path.len().min(40)];
        for op in ["remove", "add", "replace", "test"] {
            let patch = json!([{"op": op, "path": path, "value": 1}]);
            let ask = Ask::patch(format!("{WIDGETS}/victim"), JSON_PATCH, patch);
            let answer = host.ask(ask).await;
            // Some of them are names of members that may be added; what is added and unknown is dropped.
            let added = matches!(op, "add" | "replace") && answer.code == 200;
            assert!(
                added || matches!(answer.code, 400 | 422),
                "{op} {short}: {} {}",
                answer.code,
                answer.text()
            );
        }
        host.serves().await;
    }
    let stored = host.must(Ask::get(format!("{WIDGETS}/victim"))).await;
    assert_eq!(
        stored["spec"]["free"]["list"],
        json!([1, 2, 3]),
        "the list is untouched"
    );
}

#[tokio::test]
async fn operations_that_do_not_apply_are_refused() {
    let host = Host::start().await;
    for (patch, verdict) in [
        (json!([{"op": "remove", "path": "/data/missing"}]), INVALID),
        (
            json!([{"op": "test", "path": "/data/a", "value": "2"}]),
            INVALID,
        ),
        (
            json!([{"op": "move", "from": "/missing", "path": "/data/b"}]),
            INVALID,
        ),
        (
            json!([{"op": "move", "from": "/data", "path": "/data/b"}]),
            INVALID,
        ),
        (
            json!([{"op": "copy", "from": "/missing/there", "path": "/data/b"}]),
            INVALID,
        ),
        (json!([{"op": "unknown", "path": "/data"}]), INVALID),
        (json!([{"path": "/data"}]), INVALID),
        (json!([{"op": "add"}]), INVALID),
        (json!([1]), BAD_REQUEST),
        (json!({}), BAD_REQUEST),
        (json!("text"), BAD_REQUEST),
    ] {
        host.refuses(&patch.to_string(), victim(JSON_PATCH, &patch), verdict)
            .await;
    }
}

#[tokio::test]
async fn a_patch_that_half_applies_changes_nothing() {
    let host = Host::start().await;
    let before = host.must(Ask::get(format!("{CONFIG_MAPS}/victim"))).await;
    let patch = json!([
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "remove", "path": "/data/a"},
        {"op": "remove", "path": "/data/missing"},
    ]);
    host.refuses("half", victim(JSON_PATCH, patch), INVALID)
        .await;
    let after = host.must(Ask::get(format!("{CONFIG_MAPS}/victim"))).await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn patches_cannot_change_what_an_object_is() {
    let host = Host::start().await;
    let cases: [(&str, Value, Verdict); 9] = [
        (MERGE, json!({"metadata": {"name": "other"}}), BAD_REQUEST),
        (
            MERGE,
            json!({"metadata": {"namespace": "other"}}),
            BAD_REQUEST,
        ),
        (
            MERGE,
            json!({"metadata": {"uid": "other"}}),
            (409, "Conflict"),
        ),
        (
            MERGE,
            json!({"metadata": {"resourceVersion": "1"}}),
            (409, "Conflict"),
        ),
        (MERGE, json!({"kind": "Secret"}), INVALID),
        (MERGE, json!({"apiVersion": "v2"}), INVALID),
        (MERGE, json!({"metadata": []}), INVALID),
        (MERGE, json!([]), BAD_REQUEST),
        (MERGE, json!(null), BAD_REQUEST),
    ];
    for (kind, patch, verdict) in cases {
        host.refuses(&patch.to_string(), victim(kind, &patch), verdict)
            .await;
    }
    for path in [CONFIG_MAPS, WIDGETS] {
        // The whole of it replaced by nothing, a number, a list.
        for value in [json!(null), json!(1), json!([])] {
            let patch = json!([{"op": "replace", "path": "", "value": value}]);
            let ask = Ask::patch(format!("{path}/victim"), JSON_PATCH, patch);
            let answer = host.ask(ask).await;
            assert!(
                matches!(answer.code, 400 | 422),
                "{value}: {} {}",
                answer.code,
                answer.text()
            );
        }
        for field in ["metadata", "kind", "apiVersion"] {
            let patch = json!([{"op": "remove", "path": format!("/{field}")}]);
            let ask = Ask::patch(format!("{path}/victim"), JSON_PATCH, patch);
            let answer = host.ask(ask).await;
            assert!(
                answer.code < 500,
                "{field}: {} {}",
                answer.code,
                answer.text()
            );
        }
        let still = host.must(Ask::get(format!("{path}/victim"))).await;
        assert_eq!(still["metadata"]["name"], "victim");
    }
}

#[tokio::test]
async fn strategic_directives_that_make_no_sense_are_refused() {
    let host = Host::start().await;
    let path = format!("{DEPLOYMENTS}/victim");
    for patch in [
        json!({"spec": {"template": {"spec": {"containers": [{"$patch": "explode", "name": "main"}]}}}}),
        json!({"spec": {"template": {"spec": {"containers": [{"image": "no-name"}]}}}}),
        json!({"spec": {"template": {"spec": {"$setElementOrder/containers": 1}}}}),
        json!({"spec": {"template": {"spec": {"$retainKeys": "x"}}}}),
        json!({"$patch": 1}),
        json!({"spec": {"template": {"spec": {"containers": "text"}}}}),
    ] {
        let answer = host.ask(Ask::patch(&path, STRATEGIC, &patch)).await;
        assert!(
            (400..=500).contains(&answer.code),
            "{patch}: {} {}",
            answer.code,
            answer.text()
        );
        assert_eq!(answer.json()["kind"], "Status");
        host.serves().await;
    }
    let deployment = host.must(Ask::get(&path)).await;
    assert!(deployment["metadata"]["resourceVersion"].is_string());
    let delete_all = json!({"$patch": "delete"});
    let answer = host.ask(Ask::patch(&path, STRATEGIC, delete_all)).await;
    assert!((400..500).contains(&answer.code), "{}", answer.text());
}

#[tokio::test]
async fn objects_cannot_be_patched_beyond_the_limit_of_a_body() {
    let host = Host::start().await;
    let memory = peak_memory();
    let path = format!("{WIDGETS}/victim");
    let mut refused = false;
    for i in 0..4 {
        let patch = json!({"spec": {"free": {format!("k{i}"): padding(1 << 20)}}});
        let answer = host.ask(Ask::patch(&path, MERGE, patch)).await;
        match answer.code {
            200 => assert!(!refused),
            413 => refused = true,
            other => panic!("{other} {}", answer.text()),
        }
    }
    assert!(refused, "an object does not grow without end");
    assert!(peak_memory() - memory < MEMORY);
    host.serves().await;
}

#[tokio::test]
async fn metadata_keeps_its_types_whatever_a_patch_puts_there() {
    let host = Host::start().await;
    for path in [CONFIG_MAPS, WIDGETS, DEPLOYMENTS] {
        for part in ["", "/status"] {
            for patch in [
                json!({"metadata": null}),
                json!({"metadata": "text"}),
                json!({"metadata": {"labels": 1}}),
                json!({"metadata": {"labels": {"a": 1}}}),
                json!({"metadata": {"labels": {"a": {"b": "c"}}}}),
                json!({"metadata": {"annotations": ["a"]}}),
                json!({"metadata": {"finalizers": {"a": "b"}}}),
                json!({"metadata": {"finalizers": [1]}}),
                json!({"metadata": {"ownerReferences": ["a"]}}),
                json!({"metadata": {"creationTimestamp": 1}}),
                json!({"metadata": {"deletionTimestamp": "x"}}),
                json!({"metadata": {"generation": "x"}}),
                json!({"metadata": {"managedFields": "x"}}),
                json!({"metadata": {"name": 1}}),
                json!({"metadata": {"uid": 1}}),
                json!({"metadata": {"resourceVersion": 1}}),
                json!({"kind": 1}),
                json!({"kind": "Other"}),
                json!({"apiVersion": "other/v1"}),
                json!({"status": 1}),
                json!({"spec": []}),
            ] {
                let ask = Ask::patch(format!("{path}/victim{part}"), MERGE, &patch);
                let answer = host.ask(ask).await;
                assert!(
                    answer.code < 500,
                    "{path}{part} {patch}: {} {}",
                    answer.code,
                    answer.text()
                );
                let object = host.must(Ask::get(format!("{path}/victim"))).await;
                let metadata = &object["metadata"];
                assert_eq!(metadata["name"], "victim", "{path}{part} {patch}");
                assert!(metadata["uid"].is_string(), "{path}{part} {patch}");
                for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
                    assert!(
                        metadata[field].is_null(),
                        "{path}{part} {patch}: {metadata}"
                    );
                }
                assert_ne!(object["kind"], "Other", "{path}{part} {patch}");
            }
        }
    }
}
