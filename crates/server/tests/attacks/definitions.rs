//! Definitions that try to be costly, and many of them.

use serde_json::{Map, Value, json};

use crate::call::Ask;
use crate::host::{
    DEFINITIONS, Host, INVALID, MEMORY, definition, padding, peak_memory, shorten, widget,
};

fn nested(depth: usize) -> Value {
    (0..depth).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}}),
    )
}

#[tokio::test]
async fn schemas_that_cannot_be_served_are_invalid() {
    let host = Host::start().await;
    let memory = peak_memory();
    let spec = |schema: Value| json!({"a": schema});
    let wide: Map<String, Value> = (0..60_000).map(|i| (format!("p{i}"), json!({}))).collect();
    for (attack, properties) in [
        ("a reference", spec(json!({"$ref": "#/definitions/x"}))),
        (
            "a reference to itself",
            spec(json!({"type": "object", "properties": {"b": {"$ref": "#"}}})),
        ),
        ("no type", spec(json!({}))),
        ("an unknown type", spec(json!({"type": "cow"}))),
        (
            "a pattern that does not end",
            spec(json!({"type": "string", "pattern": "("})),
        ),
        (
            "a pattern that repeats",
            spec(json!({"type": "string", "pattern": "((a{1000}){1000}){1000}"})),
        ),
        (
            "a huge pattern",
            spec(json!({"type": "string", "pattern": padding(1 << 20)})),
        ),
        (
            "a default that does not fit",
            spec(json!({"type": "integer", "default": "x"})),
        ),
        (
            "sixty thousand properties",
            spec(json!({"type": "object", "properties": wide})),
        ),
    ] {
        let body = definition("bombs", "Bomb", &properties);
        let answer = host.ask(Ask::post(DEFINITIONS, body)).await;
        assert!(
            matches!(answer.code, 400 | 422),
            "{attack}: {} {}",
            answer.code,
            shorten(&answer.text())
        );
        host.serves().await;
    }
    for depth in [50, 70, 110] {
        let body = definition("bombs", "Bomb", &spec(nested(depth)));
        let answer = host.ask(Ask::post(DEFINITIONS, body)).await;
        assert!(answer.code < 500, "{depth}: {}", shorten(&answer.text()));
        host.serves().await;
        if answer.code < 300 {
            host.must(Ask::delete(format!("{DEFINITIONS}/bombs.example.com")))
                .await;
        }
    }
    assert!(peak_memory() - memory < MEMORY);
}

/// Properties of texts, each with a pattern.
fn texts(count: usize, pattern: impl Fn(usize) -> String) -> Value {
    let property = |i| json!({"type": "string", "pattern": pattern(i)});
    let properties = (0..count).map(|i| (format!("p{i}"), property(i)));
    Value::Object(properties.collect())
}

#[tokio::test]
async fn ten_thousand_properties_are_served() {
    let host = Host::start().await;
    let properties = texts(10_000, |_| "^a+$".to_owned());
    let body = definition("wides", "Wide", &properties);
    host.must(Ask::post(DEFINITIONS, body)).await;
    let path = "/apis/example.com/v1/namespaces/default/wides";
    let all = |last: &str| {
        let mut spec: Map<String, Value> = (0..10_000)
            .map(|i| (format!("p{i}"), json!("aa")))
            .collect();
        spec.insert("p9999".to_owned(), json!(last));
        json!({"metadata": {"name": last}, "spec": spec})
    };
    host.must(Ask::post(path, all("aaa"))).await;
    let answer = host
        .refuses("the last one", Ask::post(path, all("bbb")), INVALID)
        .await;
    let causes = &answer.json()["details"]["causes"];
    assert_eq!(causes.as_array().map(Vec::len), Some(1), "{causes}");
    assert_eq!(causes[0]["field"], "spec.p9999");
    let list = host.ask(Ask::get("/openapi/v3/apis/example.com/v1")).await;
    assert_eq!(list.code, 200);
}

#[tokio::test]
async fn more_than_a_thousand_patterns_are_refused() {
    let host = Host::start().await;
    let many = |count| {
        let properties = texts(count, |i| format!("^a{i}$"));
        Ask::post(DEFINITIONS, definition("wides", "Wide", &properties))
    };
    host.refuses("1,001 patterns", many(1_001), INVALID).await;
    host.must(many(1_000)).await;
}

#[tokio::test]
async fn patterns_are_matched_in_time_that_grows_with_the_text_alone() {
    let host = Host::start().await;
    let properties = json!({
        "a": {"type": "string", "pattern": "^(a+)+$"},
        "b": {"type": "string", "pattern": "^(a|aa)+$"},
        "c": {"type": "string", "pattern": "(.*)(.*)(.*)(.*)(.*)x$"},
    });
    host.must(Ask::post(
        DEFINITIONS,
        definition("texts", "Text", &properties),
    ))
    .await;
    let path = "/apis/example.com/v1/namespaces/default/texts";
    for field in ["a", "b", "c"] {
        let text = format!("{}!", "a".repeat(200_000));
        let body = json!({"metadata": {"name": field}, "spec": {field: text}});
        host.refuses(field, Ask::post(path, body), INVALID).await;
    }
}

#[tokio::test]
async fn definitions_that_contradict_themselves_are_refused() {
    let host = Host::start().await;
    let good = definition("things", "Thing", &json!({}));
    let changed = |pointer: &str, value: Value| {
        let mut object = good.clone();
        *object.pointer_mut(pointer).expect("there") = value;
        object
    };
    for (attack, object) in [
        (
            "another name",
            changed("/metadata/name", json!("other.example.com")),
        ),
        ("no group", changed("/spec/group", json!(""))),
        ("a built-in group", changed("/spec/group", json!("apps"))),
        ("no version", changed("/spec/versions", json!([]))),
        (
            "no stored version",
            changed("/spec/versions/0/storage", json!(false)),
        ),
        (
            "an odd version",
            changed("/spec/versions/0/name", json!("../v1")),
        ),
        (
            "an odd plural",
            changed("/spec/names/plural", json!("../x")),
        ),
        ("an odd kind", changed("/spec/names/kind", json!("a/b"))),
        ("no scope", changed("/spec/scope", json!("Everywhere"))),
    ] {
        host.refuses(attack, Ask::post(DEFINITIONS, object), INVALID)
            .await;
    }
    for body in [
        json!({"metadata": {"name": "a.b.c"}}),
        json!({"metadata": {"name": "a.b.c"}, "spec": {}}),
        json!({"metadata": {"name": "a.b.c"}, "spec": {"group": "b.c", "versions": [{}], "names": {}}}),
    ] {
        host.refuses("empty", Ask::post(DEFINITIONS, body), INVALID)
            .await;
    }
}

#[tokio::test]
async fn many_definitions_leave_documents_cached_and_metrics_small() {
    let host = Host::start().await;
    let memory = peak_memory();
    for i in 0..200 {
        let body = definition(
            &format!("kind{i}s"),
            &format!("Kind{i}"),
            &json!({"a": {"type": "string"}}),
        );
        host.must(Ask::post(DEFINITIONS, body)).await;
    }
    for i in 0..2_000 {
        let odd = Ask::get(format!("/apis/random-{i}.example.com/v1/things{i}"))
            .header("user-agent", format!("agent-{i}"));
        assert_eq!(host.ask(odd).await.code, 404);
    }
    let metrics = host.ask(Ask::get("/metrics")).await;
    assert!(
        metrics.body.len() < 256 * 1024,
        "{} bytes",
        metrics.body.len()
    );
    assert!(!metrics.text().contains("random-"), "no label from outside");
    for path in ["/openapi/v2", "/openapi/v3/apis/example.com/v1"] {
        let first = host.ask(Ask::get(path)).await;
        let tag = first.header("etag").to_owned();
        assert!(
            first.code == 200 && !tag.is_empty(),
            "{path}: {}",
            first.code
        );
        let again = host.ask(Ask::get(path)).await;
        assert_eq!(again.header("etag"), tag);
        let known = host.ask(Ask::get(path).header("if-none-match", tag)).await;
        assert_eq!((known.code, known.body.len()), (304, 0), "{path}");
    }
    assert!(peak_memory() - memory < MEMORY);
    let path = "/apis/example.com/v1/namespaces/default/kind199s";
    let mut object = widget("a");
    object["kind"] = json!("Kind199");
    object["spec"] = json!({"a": "b"});
    host.must(Ask::post(path, object)).await;
}
