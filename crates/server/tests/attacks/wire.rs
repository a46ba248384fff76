//! Attacks below requests, HTTP/1.1: slow, false and smuggled messages, floods of connections.

use kubewright_server::ListenLimits;
use tokio::io::AsyncReadExt;
use tokio::time::{Duration, Instant};

use crate::socket::{Identity, Site};

const POST: &str = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";

#[tokio::test]
async fn a_chunked_body_without_end_is_cut_off_at_the_limit() {
    let site = Site::start().await;
    let mut wire = site.connect(&Identity::Admin, "http/1.1").await;
    wire.write(format!("{POST}transfer-encoding: chunked\r\n\r\n"))
        .await
        .expect("the head is taken");
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut sent = 0;
    // The server stops reading after three megabytes; buffers on the way hold a few more.
    while sent < 64 << 20 && wire.write(&piece).await.is_ok() {
        sent += piece.len();
        if sent > 4 << 20 {
            break;
        }
    }
    let answer = wire.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("RequestEntityTooLarge"));
    site.serves().await;
}

#[tokio::test]
async fn false_lengths_are_refused_and_the_connection_is_closed() {
    let site = Site::start().await;
    for (attack, head, code) in [
        ("too large", "content-length: 4294967296\r\n\r\n", "413"),
        ("not a number", "content-length: abc\r\n\r\n", "400"),
        ("negative", "content-length: -1\r\n\r\n", "400"),
        ("signed", "content-length: +2\r\n\r\n{}", "400"),
        (
            "overflow",
            "content-length: 99999999999999999999999\r\n\r\n",
            "400",
        ),
        (
            "two lengths",
            "content-length: 2\r\ncontent-length: 3\r\n\r\n{}x",
            "400",
        ),
        ("list of lengths", "content-length: 2, 3\r\n\r\n{}x", "400"),
    ] {
        let wire = site.connect(&Identity::Admin, "http/1.1").await;
        let answer = wire.last_words(format!("{POST}{head}")).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code}")),
            "{attack}: {answer}"
        );
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{attack}: {answer}");
        site.serves().await;
    }
}

#[tokio::test]
async fn a_request_names_its_host_once() {
    let site = Site::start().await;
    for (attack, request) in [
        ("no host", "GET /version HTTP/1.1\r\n\r\n"),
        (
            "two hosts",
            "GET /version HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
        ),
        (
            "the same twice",
            "GET /version HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n",
        ),
        (
            "in the target alone",
            "GET https://x/version HTTP/1.1\r\n\r\n",
        ),
        (
            "two hosts, older",
            "GET /version HTTP/1.0\r\nhost: x\r\nhost: y\r\n\r\n",
        ),
    ] {
        let wire = site.connect(&Identity::Admin, "http/1.1").await;
        let answer = wire.last_words(request).await;
        let code = answer.split(' ').nth(1);
        assert_eq!(code, Some("400"), "{attack}: {answer}");
    }
    let wire = site.connect(&Identity::Admin, "http/1.1").await;
    let answer = wire.last_words("GET /version HTTP/1.0\r\n\r\n").await;
    assert_eq!(
        answer.split(' ').nth(1),
        Some("200"),
        "older clients have none: {answer}"
    );
}

#[tokio::test]
async fn a_message_cannot_carry_another_one_with_it() {
    let site = Site::start().await;
    let hidden =
        "DELETE /api/v1/namespaces/default/configmaps/kube-root-ca.crt HTTP/1.1\r\nhost: x\r\n\r\n";
    let before = site.server.revision();
    for (attack, head) in [
        (
            "length and chunks",
            "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            "chunks and length",
            "transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
        ),
        ("unknown coding", "transfer-encoding: cow\r\n\r\n0\r\n\r\n"),
        (
            "chunked is not last",
            "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        ),
        (
            "chunk size is no number",
            "transfer-encoding: chunked\r\n\r\nzz\r\n",
        ),
        (
            "chunk size overflows",
            "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ),
        (
            "chunk is longer than said",
            "transfer-encoding: chunked\r\n\r\n1\r\nxxxx\r\n0\r\n\r\n",
        ),
        ("space before the colon", "content-length : 0\r\n\r\n"),
        ("folded header", "x: a\r\n b: c\r\n\r\n"),
        ("header without a name", ": a\r\n\r\n"),
        ("control character", "x: a\x01\x00b\r\n\r\n"),
    ] {
        let wire = site.connect(&Identity::Admin, "http/1.1").await;
        let answer = wire.last_words(format!("{POST}{head}{hidden}")).await;
        let first: String = answer.chars().take(12).collect();
        assert!(
            matches!(first.as_str(), "HTTP/1.1 400" | "HTTP/1.1 422"),
            "{attack}: {answer}"
        );
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{attack}: {answer}");
    }
    assert_eq!(site.server.revision(), before);
    site.serves().await;
}

#[tokio::test]
async fn headers_and_addresses_that_are_too_large_are_refused() {
    let site = Site::start().await;
    let many: String = (0..2_000).map(|i| format!("x{i}: y\r\n")).collect();
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(1 << 20));
    let selector = format!(
        "GET /api/v1/configmaps?labelSelector={} HTTP/1.1\r\nhost: x\r\n\r\n",
        "x".repeat(70_000)
    );
    for (attack, request, code) in [
        (
            "one header of a megabyte",
            format!(
                "GET /version HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
                "x".repeat(1 << 20)
            ),
            "431",
        ),
        (
            "two thousand headers",
            format!("GET /version HTTP/1.1\r\nhost: x\r\n{many}\r\n"),
            "431",
        ),
        ("a path of a megabyte", long_path, "4"),
        ("a selector of seventy kilobytes", selector, "414"),
        (
            "no request at all",
            "\r\n\r\nhello world\r\n\r\n".to_owned(),
            "400",
        ),
        (
            "binary",
            "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n".to_owned(),
            "400",
        ),
    ] {
        let wire = site.connect(&Identity::Admin, "http/1.1").await;
        let answer = wire.last_words(request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code}")),
            "{attack}: {answer}"
        );
        site.serves().await;
    }
}

/// Opens a connection on which all has gone well so far, then stops the clock: from here time passes only when there
/// is nothing else to do.
async fn patient(site: &Site) -> crate::socket::Wire {
    let mut wire = site.connect(&Identity::Admin, "http/1.1").await;
    let answer = wire.get("/version").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    tokio::time::pause();
    wire
}

#[tokio::test]
async fn headers_that_never_end_are_given_up() {
    let site = Site::start().await;
    let mut wire = patient(&site).await;
    let started = Instant::now();
    wire.write("GET /version HTTP/1.1\r\nhost: x\r\nx-slow: ")
        .await
        .expect("taken");
    wire.read_to_end().await;
    let took = started.elapsed();
    assert!(
        took >= Duration::from_secs(9) && took < Duration::from_secs(31),
        "{took:?}"
    );
    tokio::time::resume();
    site.serves().await;
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up_with_an_answer() {
    let site = Site::start().await;
    let mut wire = patient(&site).await;
    wire.write(format!("{POST}content-length: 100\r\n\r\n{{"))
        .await
        .expect("taken");
    let answer = wire.read_to_end().await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(answer.contains(r#""reason":"Timeout""#), "{answer}");
    tokio::time::resume();
    site.serves().await;
}

#[tokio::test]
async fn silence_instead_of_a_handshake_is_given_up() {
    let site = Site::start().await;
    let mut silent = site.tcp().await;
    // The server has taken the connection when it answers another one that came later.
    site.serves().await;
    tokio::time::pause();
    let started = Instant::now();
    let mut buffer = [0; 16];
    let read = silent.read(&mut buffer).await.unwrap_or(0);
    assert_eq!(read, 0, "the server hangs up");
    assert!(started.elapsed() >= Duration::from_secs(9));
    tokio::time::resume();
    site.serves().await;
}

/// Well under the time after which a silent connection is closed.
const AT_ONCE: Duration = Duration::from_secs(5);

fn few(connections: usize, strangers: usize) -> ListenLimits {
    let mut limits = ListenLimits::default();
    limits.connections = connections;
    limits.strangers = strangers;
    limits
}

#[tokio::test]
async fn a_flood_of_silent_connections_keeps_nobody_out() {
    let site = Site::with(few(64, 8)).await;
    let mut friend = site.connect(&Identity::Admin, "http/1.1").await;
    friend.get("/version").await;
    let mut flood = Vec::new();
    for _ in 0..200 {
        flood.push(site.tcp().await);
    }
    site.serves().await;
    let answer = friend.get("/api").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut closed = 0;
    for mut stream in flood {
        let mut buffer = [0; 16];
        let open = Duration::from_millis(1);
        if let Ok(read) = tokio::time::timeout(open, stream.read(&mut buffer)).await {
            assert_eq!(read.unwrap_or(0), 0);
            closed += 1;
        }
    }
    assert!(closed >= 190, "{closed} of 200 were closed");
}

#[tokio::test]
async fn asking_for_health_makes_nobody_a_friend() {
    let site = Site::with(few(64, 4)).await;
    let mut held = Vec::new();
    for _ in 0..12 {
        let mut wire = site.connect(&Identity::Nobody, "http/1.1").await;
        let answer = wire.get("/healthz").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        held.push(wire);
    }
    let waiting = Instant::now();
    assert_eq!(held[0].read_to_end().await, "", "the oldest was closed");
    assert!(waiting.elapsed() < AT_ONCE, "and not because it was silent");
    site.serves().await;
}

#[tokio::test]
async fn strangers_make_room_when_all_places_are_taken() {
    let site = Site::with(few(6, 100)).await;
    let mut friends = Vec::new();
    for _ in 0..3 {
        let mut friend = site.connect(&Identity::Admin, "http/1.1").await;
        friend.get("/version").await;
        friends.push(friend);
    }
    let mut strangers = Vec::new();
    for _ in 0..30 {
        strangers.push(site.tcp().await);
    }
    let waiting = Instant::now();
    site.serves().await;
    assert!(
        waiting.elapsed() < AT_ONCE,
        "nobody has to fall silent first"
    );
    for mut friend in friends {
        let answer = friend.get("/version").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}
