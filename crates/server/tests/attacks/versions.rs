//! Resource versions, preconditions, continue tokens and list options that are wrong.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::call::{Ask, Frames};
use crate::host::{
    BAD_REQUEST, CONFIG_MAPS, CONFLICT, Host, INVALID, Verdict, WIDGETS, config_map, padding,
};

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let host = Host::start().await;
    for (path, unconditional) in [(CONFIG_MAPS, true), (WIDGETS, false)] {
        let path = format!("{path}/victim");
        let old = host.must(Ask::get(&path)).await;
        let mut newer = old.clone();
        newer["metadata"]["labels"] = json!({"a": "b"});
        host.must(Ask::put(&path, &newer)).await;
        host.refuses("old", Ask::put(&path, &newer), CONFLICT).await;
        let at = |version: &str| {
            let mut object = old.clone();
            object["metadata"]["resourceVersion"] = json!(version);
            Ask::put(&path, object)
        };
        host.refuses("future", at("999999999"), CONFLICT).await;
        for malformed in ["abc", "-1", "1.5", "99999999999999999999999", "1 ", "0x1"] {
            let answer = host.ask(at(malformed)).await;
            assert!(
                matches!(answer.code, 400 | 409 | 422),
                "{malformed}: {}",
                answer.text()
            );
        }
        for none in ["", "0"] {
            let answer = host.ask(at(none)).await;
            let expected = if unconditional { 200 } else { 422 };
            assert_eq!(answer.code, expected, "{path} {none:?}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_delete_with_a_precondition_that_fails_is_a_conflict() {
    let host = Host::start().await;
    for path in [CONFIG_MAPS, WIDGETS] {
        let path = format!("{path}/victim");
        for preconditions in [
            json!({"uid": "other"}),
            json!({"resourceVersion": "1"}),
            json!({"resourceVersion": "abc"}),
            json!({"uid": "", "resourceVersion": "999999"}),
        ] {
            let body = json!({"preconditions": preconditions});
            let ask = Ask::delete(&path).body("application/json", body);
            host.refuses(&preconditions.to_string(), ask, CONFLICT)
                .await;
        }
        for body in [
            "{",
            "[]",
            "1",
            "\"x\"",
            r#"{"gracePeriodSeconds":"x"}"#,
            r#"{"kind":"ConfigMap"}"#,
        ] {
            let ask = Ask::delete(&path).body("application/json", body);
            host.refuses(body, ask, BAD_REQUEST).await;
        }
        let both = json!({"orphanDependents": true, "propagationPolicy": "Orphan"});
        let ask = Ask::delete(&path).body("application/json", both);
        host.refuses("both", ask, INVALID).await;
        let unknown = json!({"propagationPolicy": "Sideways"});
        let ask = Ask::delete(&path).body("application/json", unknown);
        host.refuses("unknown", ask, INVALID).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_of_the_future_times_out() {
    let host = Host::start().await;
    for query in [
        "/victim?resourceVersion=99999999",
        "?resourceVersion=99999999",
        "?resourceVersion=99999999&resourceVersionMatch=NotOlderThan",
        "?resourceVersion=99999999&resourceVersionMatch=Exact",
        "?resourceVersion=18446744073709551615&resourceVersionMatch=Exact",
        "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999",
    ] {
        let ask = Ask::get(format!("{CONFIG_MAPS}{query}"));
        let answer = host.refuses(query, ask, (504, "Timeout")).await;
        let details = &answer.json()["details"];
        assert_eq!(details["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(details["retryAfterSeconds"], 1);
        assert_eq!(answer.header("retry-after"), "1");
    }
}

#[tokio::test]
async fn a_watch_of_the_forgotten_past_is_refused() {
    let host = Host::start().await;
    for i in 0..5 {
        host.must(Ask::post(CONFIG_MAPS, config_map(&format!("c{i}"))))
            .await;
    }
    let now = host.server.revision();
    host.server.compact(now).expect("it has been reached");
    for query in [
        "watch=1&resourceVersion=2",
        "watch=1&resourceVersion=1&allowWatchBookmarks=true",
    ] {
        let mut frames = Frames::open(&host.service, format!("{CONFIG_MAPS}?{query}")).await;
        let event = frames.next().await.expect("one event");
        assert_eq!(event["type"], "ERROR");
        assert_eq!(event["object"]["code"], 410);
        assert_eq!(event["object"]["reason"], "Expired");
        let message = event["object"]["message"].as_str().expect("text");
        assert!(
            message.starts_with("too old resource version: "),
            "{message}"
        );
        assert_eq!(frames.next().await, None, "the watch ends");
    }
    let list = format!("{CONFIG_MAPS}?resourceVersion=2&resourceVersionMatch=Exact");
    host.refuses("list", Ask::get(list), (410, "Expired")).await;
}

fn token(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn continue_tokens_are_not_trusted() {
    let host = Host::start().await;
    let tokens = [
        "zzz".to_owned(),
        "%00".to_owned(),
        "!!!!".to_owned(),
        padding(10_000),
        token(&json!({})),
        token(&json!([])),
        token(&json!({"v": "v2", "rv": 1, "start": "a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 0, "start": "a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": -5, "start": "a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 1.5, "start": "a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 5, "start": ""})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 5, "start": "../secrets/a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 5, "start": "/a"})),
        token(&json!({"v": "meta.k8s.io/v1", "rv": 5, "start": "a/b/c/d"})),
    ];
    for token in tokens {
        let ask = Ask::get(format!("{CONFIG_MAPS}?limit=1&continue={token}"));
        host.refuses(&crate::host::shorten(&token), ask, BAD_REQUEST)
            .await;
    }
    let at_version = format!("{CONFIG_MAPS}?resourceVersion=5&continue=abc");
    host.refuses("with a version", Ask::get(at_version), BAD_REQUEST)
        .await;
}

#[tokio::test]
async fn a_token_of_another_resource_shows_nothing_of_it() {
    let host = Host::start().await;
    for i in 0..3 {
        host.must(Ask::post(WIDGETS, crate::host::widget(&format!("w{i}"))))
            .await;
    }
    let page = host.must(Ask::get(format!("{WIDGETS}?limit=1"))).await;
    let token = page["metadata"]["continue"].as_str().expect("a token");
    for path in [CONFIG_MAPS, "/api/v1/configmaps", "/api/v1/namespaces"] {
        let answer = host
            .ask(Ask::get(format!("{path}?limit=5&continue={token}")))
            .await;
        assert!(matches!(answer.code, 200 | 400), "{}", answer.text());
        assert!(!answer.text().contains("Widget"));
    }
}

#[tokio::test]
async fn an_expired_token_says_how_to_go_on() {
    let host = Host::start().await;
    for i in 0..5 {
        host.must(Ask::post(CONFIG_MAPS, config_map(&format!("c{i}"))))
            .await;
    }
    let page = host.must(Ask::get(format!("{CONFIG_MAPS}?limit=2"))).await;
    let token = page["metadata"]["continue"].as_str().expect("a token");
    host.must(Ask::post(CONFIG_MAPS, config_map("c9"))).await;
    let now = host.server.revision();
    host.server.compact(now).expect("it has been reached");
    let next = Ask::get(format!("{CONFIG_MAPS}?limit=2&continue={token}"));
    let answer = host.refuses("expired", next, (410, "Expired")).await;
    let status = answer.json();
    let fresh = status["metadata"]["continue"]
        .as_str()
        .expect("a new token");
    let rest = host
        .must(Ask::get(format!("{CONFIG_MAPS}?limit=50&continue={fresh}")))
        .await;
    let names: Vec<_> = rest["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|i| i["metadata"]["name"].as_str().expect("text"))
        .collect();
    assert_eq!(names.first(), Some(&"c2"), "{names:?}");
    assert!(names.contains(&"c9"));
}

#[tokio::test]
async fn options_that_contradict_each_other_are_invalid() {
    let host = Host::start().await;
    for query in [
        "watch=1&sendInitialEvents=true",
        "watch=1&sendInitialEvents=false",
        "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
        "watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "resourceVersionMatch=Sometimes&resourceVersion=1",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=abc",
    ] {
        let answer = host
            .refuses(query, Ask::get(format!("{CONFIG_MAPS}?{query}")), INVALID)
            .await;
        assert!(
            answer
                .message()
                .starts_with("ListOptions.meta.k8s.io \"\" is invalid")
        );
    }
}

#[tokio::test]
async fn numbers_and_selectors_of_a_query_are_read_with_care() {
    let host = Host::start().await;
    let terms: Vec<String> = (0..10_001).map(|i| format!("v{i}")).collect();
    let too_many = format!("labelSelector=a+in+({})", terms.join(","));
    let huge = format!("labelSelector={}", padding(60_000));
    let pairs = "a=b&".repeat(1_000);
    let cases: Vec<(&str, Verdict)> = vec![
        ("limit=x", BAD_REQUEST),
        ("limit=1e18", BAD_REQUEST),
        ("limit=99999999999999999999", BAD_REQUEST),
        ("timeoutSeconds=1e18", BAD_REQUEST),
        ("timeoutSeconds=x", BAD_REQUEST),
        ("resourceVersion=-1", BAD_REQUEST),
        ("resourceVersion=abc", BAD_REQUEST),
        ("labelSelector=a%3D%3D%3D", BAD_REQUEST),
        ("labelSelector=a+in", BAD_REQUEST),
        ("labelSelector=a+in+(", BAD_REQUEST),
        ("labelSelector=((((((((", BAD_REQUEST),
        ("labelSelector=-a", BAD_REQUEST),
        ("labelSelector=a%00", BAD_REQUEST),
        ("labelSelector=%ff", BAD_REQUEST),
        ("fieldSelector=spec.nothing%3D1", BAD_REQUEST),
        ("fieldSelector=%3D", BAD_REQUEST),
        ("fieldSelector=a", BAD_REQUEST),
        (&too_many, BAD_REQUEST),
        (&huge, BAD_REQUEST),
        (&pairs, BAD_REQUEST),
    ];
    for (query, verdict) in cases {
        let ask = Ask::get(format!("{CONFIG_MAPS}?{query}"));
        host.refuses(&crate::host::shorten(query), ask, verdict)
            .await;
    }
    let most: Vec<String> = (0..9_999).map(|i| format!("{i:x}")).collect();
    let selector = format!("labelSelector=a+in+({})", most.join(","));
    for query in [
        "limit=-1",
        "limit=0",
        "limit=9223372036854775807",
        "timeoutSeconds=-1",
        "timeoutSeconds=9223372036854775807",
        "unknown=1",
        &selector,
    ] {
        let list = host.must(Ask::get(format!("{CONFIG_MAPS}?{query}"))).await;
        assert_eq!(list["kind"], "ConfigMapList");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_lasts_no_longer_than_asked_and_never_for_ever() {
    let host = Host::start().await;
    for query in [
        "timeoutSeconds=1",
        "timeoutSeconds=9223372036854775807",
        "timeoutSeconds=-1",
    ] {
        let path = format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion={}&{query}",
            host.server.revision()
        );
        let mut frames = Frames::open(&host.service, path).await;
        assert_eq!(frames.next().await, None, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_when_a_change_has_passed_a_watch_by_and_seldom_otherwise() {
    let host = Host::start().await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&resourceVersion={}&allowWatchBookmarks=true&timeoutSeconds=7200&fieldSelector={}",
        host.server.revision(),
        "metadata.name%3Dlate"
    );
    let mut frames = Frames::open(&host.service, path).await;
    let start = tokio::time::Instant::now();
    host.must(Ask::post(CONFIG_MAPS, config_map("other"))).await;
    for (second, kind) in [
        (60, "BOOKMARK"),
        // An event says itself how far the watch is.
        (60, "ADDED"),
        (3_660, "BOOKMARK"),
        // The last one is where the next watch goes on.
        (7_200, "BOOKMARK"),
    ] {
        if kind == "ADDED" {
            host.must(Ask::post(CONFIG_MAPS, config_map("late"))).await;
        }
        let event = frames.next().await.expect("the watch is open");
        assert_eq!(
            (start.elapsed().as_secs(), &event["type"]),
            (second, &json!(kind))
        );
        if kind == "BOOKMARK" {
            let version = host.server.revision().to_string();
            assert_eq!(event["object"]["metadata"]["resourceVersion"], version);
        }
    }
    assert_eq!(frames.next().await, None, "the watch ends");
}
