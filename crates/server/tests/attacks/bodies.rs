//! Bodies that are too large, too deep, malformed, compressed or of the wrong kind.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::json;

use crate::call::{self, Answer, Ask, JSON, JSON_PATCH, MERGE, STRATEGIC, YAML};
use crate::host::{
    BAD_REQUEST, CONFIG_MAPS, DEPLOYMENTS, Host, INVALID, LIMIT, MEMORY, TOO_LARGE, UNSUPPORTED,
    Verdict, WIDGETS, config_map_of, judge, padding, peak_memory,
};

#[tokio::test]
async fn a_body_over_the_limit_is_refused_for_every_verb() {
    let host = Host::start().await;
    let victim = format!("{CONFIG_MAPS}/victim");
    for (method, path, kind) in [
        ("POST", CONFIG_MAPS, JSON),
        ("PUT", &victim, JSON),
        ("PATCH", &victim, MERGE),
        ("PATCH", &victim, STRATEGIC),
        ("PATCH", &victim, JSON_PATCH),
        ("DELETE", &victim, JSON),
        ("DELETE", CONFIG_MAPS, JSON),
    ] {
        let ask = Ask::new(method, path).body(kind, config_map_of(LIMIT + 1));
        let answer = host.refuses(method, ask, TOO_LARGE).await;
        assert!(
            answer.message().contains("limit is 3145728"),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let host = Host::start().await;
    let answer = host.ask(Ask::post(CONFIG_MAPS, config_map_of(LIMIT))).await;
    // Too large for a config map, which is another matter: the body was read and judged.
    judge("a large config map", &answer, INVALID);
}

#[tokio::test]
async fn an_endless_body_is_read_up_to_the_limit_and_no_further() {
    const PIECE: usize = 64 * 1024;
    let host = Host::start().await;
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let piece = Bytes::from(padding(PIECE));
    let endless = stream::repeat_with(move || {
        count.fetch_add(PIECE, Ordering::Relaxed);
        Ok::<_, Infallible>(Frame::data(piece.clone()))
    });
    let request = Ask::post(CONFIG_MAPS, "").request(StreamBody::new(endless));
    let answer = Answer::read(call::send(&host.service, request).await).await;
    judge("endless", &answer, TOO_LARGE);
    assert!(taken.load(Ordering::Relaxed) <= LIMIT + PIECE);
    host.serves().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_bad_request() {
    let host = Host::start().await;
    let pieces = stream::iter([
        Ok(Frame::data(Bytes::from_static(b"{\"metadata\":"))),
        Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
    ]);
    let request = Ask::post(CONFIG_MAPS, "").request(StreamBody::new(pieces));
    let answer = Answer::read(call::send(&host.service, request).await).await;
    judge("broken off", &answer, BAD_REQUEST);
    host.serves().await;
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_anything_is_read() {
    let host = Host::start().await;
    for length in ["3145729", "4294967296", "18446744073709551615"] {
        let unread = stream::poll_fn(
            |_| -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
                panic!("the body is not touched")
            },
        );
        let ask = Ask::post(CONFIG_MAPS, "").header("content-length", length);
        let request = ask.request(StreamBody::new(unread));
        let answer = Answer::read(call::send(&host.service, request).await).await;
        judge(length, &answer, TOO_LARGE);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_given_up_and_its_place_is_free_again() {
    let mut limits = kubewright_server::RequestLimits::default();
    limits.writes = 1;
    let server = kubewright_server::Server::builder().request_limits(limits);
    let host = Host::with(server.start().await.expect("starts")).await;
    let bytes = stream::iter(0..).then(|_| async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" ")))
    });
    let request = Ask::post(CONFIG_MAPS, "").request(StreamBody::new(bytes));
    let answer = Answer::read(call::send(&host.service, request).await).await;
    judge("trickle", &answer, (408, "Timeout"));
    host.must(Ask::post(CONFIG_MAPS, crate::host::config_map("after")))
        .await;
}

/// `{"metadata":{"name":"deep"},"<field>":[[[…]]]}`
fn nested(field: &str, depth: usize, balanced: bool) -> String {
    let close = if balanced {
        format!("{}}}", "]".repeat(depth))
    } else {
        String::new()
    };
    format!(
        r#"{{"metadata":{{"name":"deep"}},"{field}":{}{close}"#,
        "[".repeat(depth)
    )
}

#[tokio::test]
async fn deep_nesting_is_a_bad_request_wherever_it_stands() {
    let host = Host::start().await;
    let memory = peak_memory();
    let (balanced, unbalanced) = (LIMIT / 2 - 100, LIMIT - 100);
    for (attack, path, body) in [
        ("known field", CONFIG_MAPS, nested("data", balanced, true)),
        (
            "unbalanced",
            CONFIG_MAPS,
            nested("unknown", unbalanced, false),
        ),
        (
            "custom, pruned field",
            WIDGETS,
            nested("unknown", balanced, true),
        ),
        (
            "custom, unbalanced",
            WIDGETS,
            nested("spec", unbalanced, false),
        ),
        ("nothing else", CONFIG_MAPS, "[".repeat(LIMIT)),
        ("objects", CONFIG_MAPS, r#"{"a":"#.repeat(LIMIT / 5)),
        (
            "objects in a custom object",
            WIDGETS,
            format!(
                r#"{{"metadata":{{"name":"deep"}},"spec":{{"free":{}1{}}}}}"#,
                r#"{"a":"#.repeat(400_000),
                "}".repeat(400_000)
            ),
        ),
    ] {
        host.refuses(attack, Ask::post(path, body), BAD_REQUEST)
            .await;
    }
    // A built-in kind skips what it does not know without looking into it.
    let skipped = nested("unknown", balanced, true);
    let made = host.must(Ask::post(CONFIG_MAPS, skipped)).await;
    assert!(made.get("unknown").is_none());
    assert!(peak_memory() - memory < MEMORY);
}

#[tokio::test]
async fn deep_nesting_in_a_patch_is_a_bad_request() {
    let host = Host::start().await;
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    for (attack, path, kind, body) in [
        ("merge", CONFIG_MAPS, MERGE, format!(r#"{{"data":{deep}}}"#)),
        (
            "strategic",
            DEPLOYMENTS,
            STRATEGIC,
            format!(r#"{{"spec":{deep}}}"#),
        ),
        (
            "json",
            CONFIG_MAPS,
            JSON_PATCH,
            format!(r#"[{{"op":"add","path":"/data","value":{deep}}}]"#),
        ),
        (
            "custom merge",
            WIDGETS,
            MERGE,
            format!(r#"{{"spec":{{"free":{deep}}}}}"#),
        ),
    ] {
        host.refuses(
            attack,
            Ask::patch(format!("{path}/victim"), kind, body),
            BAD_REQUEST,
        )
        .await;
    }
}

#[tokio::test]
async fn patches_cannot_nest_an_object_step_by_step() {
    let host = Host::start().await;
    let path = format!("{WIDGETS}/victim");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    let add = format!(r#"[{{"op":"add","path":"/spec/free","value":{deep}}}]"#);
    host.must(Ask::patch(&path, JSON_PATCH, add)).await;
    let inner = "/a".repeat(90);
    let deeper = format!(r#"[{{"op":"add","path":"/spec/free{inner}","value":{deep}}}]"#);
    let answer = host.ask(Ask::patch(&path, JSON_PATCH, deeper)).await;
    assert!((400..500).contains(&answer.code), "{}", answer.text());
    let merge = format!(
        r#"{{"spec":{{"free":{}{deep}{}}}}}"#,
        r#"{"a":"#.repeat(20),
        "}".repeat(20)
    );
    let answer = host.ask(Ask::patch(&path, MERGE, merge)).await;
    assert!(answer.code < 500, "{}", answer.text());
    host.must(Ask::get(path)).await;
}

#[tokio::test]
async fn yaml_bombs_are_bad_requests() {
    let host = Host::start().await;
    let memory = peak_memory();
    let depth = LIMIT / 2 - 100;
    let nest = format!(
        "metadata: {{name: deep}}\nunknown: {}{}\n",
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let open = format!("a: {}", "[".repeat(LIMIT - 100));
    let maps = "{a: ".repeat(LIMIT / 4 - 10);
    let indented: String = (0..1_700)
        .map(|i| format!("{}a:\n", " ".repeat(i)))
        .collect();
    let sequences = "- ".repeat(LIMIT / 2 - 10);
    for (attack, body) in [
        ("balanced", nest),
        ("unbalanced", open),
        ("flow mappings", maps),
        ("indentation", indented),
        ("sequences", sequences),
        ("aliases", billion_laughs("")),
        (
            "aliases in metadata",
            billion_laughs("metadata: {name: bomb, labels: *i}\n"),
        ),
    ] {
        for path in [CONFIG_MAPS, WIDGETS] {
            let ask = Ask::new("POST", path).body(YAML, body.clone());
            host.refuses(attack, ask, BAD_REQUEST).await;
        }
    }
    assert!(peak_memory() - memory < MEMORY);
}

/// Nine lists, each of nine aliases of the one before: 9^9 items when written out.
fn billion_laughs(tail: &str) -> String {
    let mut text = String::from(
        "apiVersion: v1\nkind: ConfigMap\na: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n",
    );
    for (this, last) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        let items = vec![format!("*{last}"); 9].join(",");
        text.push_str(&format!("{this}: &{this} [{items}]\n"));
    }
    text + tail
}

const DUPLICATES: &str =
    r#"{"metadata":{"name":"twice"},"data":{"a":"1"},"data":{"a":"2"},"unknown":1}"#;

#[tokio::test]
async fn duplicate_and_unknown_fields_are_refused_reported_or_dropped() {
    let host = Host::start().await;
    for strict in ["POST", "PUT"] {
        let path = if strict == "POST" {
            CONFIG_MAPS.to_owned()
        } else {
            format!("{CONFIG_MAPS}/twice")
        };
        let ask = Ask::new(strict, format!("{path}?fieldValidation=Strict")).body(JSON, DUPLICATES);
        let answer = host.refuses(strict, ask, BAD_REQUEST).await;
        for part in [
            "strict decoding error",
            r#"duplicate field \"data\""#,
            r#"unknown field \"unknown\""#,
        ] {
            assert!(answer.text().contains(part), "{}", answer.text());
        }
    }
    let answer = host.ask(Ask::post(CONFIG_MAPS, DUPLICATES)).await;
    assert_eq!(answer.code, 201, "{}", answer.text());
    let warnings: Vec<_> = answer.headers.get_all("warning").iter().collect();
    assert_eq!(
        warnings,
        [
            r#"299 - "duplicate field \"data\"""#,
            r#"299 - "unknown field \"unknown\"""#
        ]
    );
    assert_eq!(
        answer.json()["data"],
        json!({"a": "2"}),
        "the last one wins"
    );
    assert!(answer.json().get("unknown").is_none());
    let ignore = format!("{CONFIG_MAPS}/twice?fieldValidation=Ignore");
    let answer = host.ask(Ask::put(ignore, DUPLICATES)).await;
    assert_eq!(answer.code, 200, "{}", answer.text());
    assert!(answer.headers.get("warning").is_none());
}

#[tokio::test]
async fn a_flood_of_unknown_fields_gives_bounded_warnings() {
    let host = Host::start().await;
    let fields: String = (0..150_000).map(|i| format!(r#","u{i}":1"#)).collect();
    let body = format!(r#"{{"metadata":{{"name":"flood"}}{fields}}}"#);
    for path in [CONFIG_MAPS, WIDGETS] {
        let answer = host.ask(Ask::post(path, body.clone())).await;
        assert_eq!(answer.code, 201, "{}", crate::host::shorten(&answer.text()));
        let warnings = answer.headers.get_all("warning");
        let length: usize = warnings.iter().map(http::HeaderValue::len).sum();
        assert!(length < 32 * 1024, "{path}: {length} bytes of warnings");
        let strict = format!("{path}?fieldValidation=Strict");
        let answer = host
            .refuses("strict", Ask::post(strict, body.clone()), BAD_REQUEST)
            .await;
        assert!(
            answer.body.len() < 256 * 1024,
            "{path}: {}",
            answer.body.len()
        );
    }
}

#[tokio::test]
async fn text_that_is_no_text_is_refused() {
    let host = Host::start().await;
    let name = |name: &str| format!(r#"{{"metadata":{{"name":"{name}"}}}}"#).into_bytes();
    let label = |label: &str| {
        format!(r#"{{"metadata":{{"name":"a","labels":{{"{label}":"v","k":"{label}"}}}}}}"#)
            .into_bytes()
    };
    let bad_utf8 = b"{\"metadata\":{\"name\":\"a\xff\xfe\"}}".to_vec();
    let bad_key = b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"\xc3\x28\":\"\"}}".to_vec();
    let cases: [(&str, Vec<u8>, Verdict); 8] = [
        ("invalid UTF-8", bad_utf8, BAD_REQUEST),
        ("invalid UTF-8 in a key", bad_key, BAD_REQUEST),
        ("lone surrogate", name(r"a\ud800"), BAD_REQUEST),
        ("reversed surrogates", name(r"\udc00\ud800"), BAD_REQUEST),
        ("NUL in a name", name(r"a\u0000b"), INVALID),
        ("NUL in a label", label(r"a\u0000b"), INVALID),
        ("line break in a name", name(r"a\r\nb"), INVALID),
        ("raw control character", name("a\x01"), BAD_REQUEST),
    ];
    for (attack, body, verdict) in cases {
        for path in [CONFIG_MAPS, WIDGETS] {
            host.refuses(attack, Ask::post(path, body.clone()), verdict)
                .await;
        }
    }
}

#[tokio::test]
async fn numbers_never_wrap() {
    let host = Host::start().await;
    for number in [
        "1e999",
        "18446744073709551615",
        "1180591620717411303424",
        "1.5",
        "-2147483649",
        "2147483648",
        "-1e400",
        "\"1\"",
    ] {
        let body = crate::host::deployment("number")
            .to_string()
            .replace(r#""replicas":1"#, &format!(r#""replicas":{number}"#));
        host.refuses(number, Ask::post(DEPLOYMENTS, body), BAD_REQUEST)
            .await;
    }
    for (number, verdict) in [
        ("1e999", BAD_REQUEST),
        ("1.5", INVALID),
        ("1180591620717411303424", INVALID),
        ("\"1\"", INVALID),
    ] {
        let body = format!(r#"{{"metadata":{{"name":"n"}},"spec":{{"size":{number}}}}}"#);
        host.refuses(number, Ask::post(WIDGETS, body), verdict)
            .await;
    }
    let body = r#"{"metadata":{"name":"n"},"spec":{"small":2147483648}}"#;
    host.refuses("int32", Ask::post(WIDGETS, body), INVALID)
        .await;
    let body =
        r#"{"metadata":{"name":"largest"},"spec":{"size":9223372036854775807,"ratio":1e308}}"#;
    let made = host.must(Ask::post(WIDGETS, body)).await;
    assert_eq!(made["spec"]["size"], json!(i64::MAX));
    assert_eq!(made["spec"]["ratio"], json!(1e308));
}

#[tokio::test]
async fn unknown_and_compressed_formats_are_never_read() {
    let host = Host::start().await;
    let memory = peak_memory();
    let victim = format!("{CONFIG_MAPS}/victim");
    for (attack, ask) in [
        (
            "text",
            Ask::new("POST", CONFIG_MAPS).body("text/plain", "{}"),
        ),
        (
            "form",
            Ask::new("POST", CONFIG_MAPS).body("application/x-www-form-urlencoded", "a=b"),
        ),
        (
            "no type of a patch",
            Ask::patch(&victim, MERGE, "{}").without("content-type"),
        ),
        (
            "type of an object for a patch",
            Ask::patch(&victim, JSON, "{}"),
        ),
        (
            "strategic patch of a custom object",
            Ask::patch(format!("{WIDGETS}/victim"), STRATEGIC, "{}"),
        ),
        (
            "apply",
            Ask::patch(&victim, "application/apply-patch+cbor", ""),
        ),
        (
            "gzip",
            Ask::post(CONFIG_MAPS, gzip_bomb()).header("content-encoding", "gzip"),
        ),
        (
            "deflate",
            Ask::post(CONFIG_MAPS, "{}").header("content-encoding", "deflate"),
        ),
        ("delete", Ask::delete(&victim).body("text/plain", "{}")),
    ] {
        host.refuses(attack, ask, UNSUPPORTED).await;
    }
    assert!(peak_memory() - memory < MEMORY);
}

/// A gigabyte of zeroes in a megabyte.
fn gzip_bomb() -> Vec<u8> {
    use std::io::Write;
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeroes = vec![0; 1 << 20];
    for _ in 0..256 {
        bomb.write_all(&zeroes).expect("memory takes it");
    }
    bomb.finish().expect("memory takes it")
}

#[tokio::test]
async fn bodies_that_are_no_object_are_bad_requests() {
    let host = Host::start().await;
    for body in [
        "",
        " ",
        "[]",
        "0",
        "\"\"",
        "true",
        "{",
        "{}x",
        "{} {}",
        "{\"metadata\":{\"name\":\"a\"}}garbage",
        "{\"metadata\":{\"name\":\"a\"},}",
        "{'a':1}",
        "\u{feff}{}",
        "\0",
    ] {
        for path in [CONFIG_MAPS, WIDGETS] {
            host.refuses(body, Ask::post(path, body), BAD_REQUEST).await;
            let put = Ask::put(format!("{path}/victim"), body);
            host.refuses(body, put, BAD_REQUEST).await;
        }
    }
    for body in ["{\"metadata\":{}}", "{}", "{\"metadata\":null}"] {
        host.refuses(body, Ask::post(CONFIG_MAPS, body), INVALID)
            .await;
        host.refuses(body, Ask::post(WIDGETS, body), INVALID).await;
    }
    // Null is an empty object to a type and nothing at all without one.
    host.refuses("null", Ask::post(CONFIG_MAPS, "null"), INVALID)
        .await;
    host.refuses("null", Ask::post(WIDGETS, "null"), BAD_REQUEST)
        .await;
    for body in [
        "{\"metadata\":[]}",
        "{\"metadata\":\"a\"}",
        "{\"metadata\":{\"name\":1}}",
        "{\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":1}}}",
        "{\"metadata\":{\"name\":\"a\",\"labels\":[]}}",
        "{\"metadata\":{\"name\":\"a\",\"finalizers\":{}}}",
        "{\"metadata\":{\"name\":\"a\",\"ownerReferences\":[1]}}",
        "{\"kind\":1,\"metadata\":{\"name\":\"a\"}}",
    ] {
        for path in [CONFIG_MAPS, WIDGETS] {
            host.refuses(body, Ask::post(path, body), BAD_REQUEST).await;
        }
    }
}
