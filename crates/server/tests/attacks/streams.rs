//! Attacks below requests, HTTP/2: frames written by hand.

use crate::host::{MEMORY, peak_memory};
use crate::socket::{Identity, Site, Wire};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A header as literal text, not remembered.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127, "fits one byte");
        field.push(text.len() as u8);
        field.extend(text.as_bytes());
    }
    field
}

fn request(method: &str, path: &str) -> Vec<u8> {
    [
        literal(":method", method),
        literal(":scheme", "https"),
        literal(":path", path),
        literal(":authority", "x"),
    ]
    .concat()
}

/// A connection on which both sides have said hello.
async fn open(site: &Site, identity: &Identity) -> Wire {
    let mut wire = site.connect(identity, "h2").await;
    let hello = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(SETTINGS, 0, 0, &[]),
        frame(SETTINGS, 1, 0, &[]),
    ];
    wire.write(hello.concat()).await.expect("hello");
    wire
}

/// Reads until a frame of this kind came, or the end; gives the kinds of all frames.
async fn kinds_until(wire: &mut Wire, wanted: u8) -> Vec<u8> {
    let (mut kinds, mut bytes) = (Vec::new(), Vec::new());
    loop {
        let some = wire.read_some().await;
        if some.is_empty() {
            return kinds;
        }
        bytes.extend_from_slice(&some);
        while bytes.len() >= 9 {
            let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
            if bytes.len() < 9 + length {
                break;
            }
            kinds.push(bytes[3]);
            bytes.drain(..9 + length);
        }
        if kinds.contains(&wanted) {
            return kinds;
        }
    }
}

/// Writes pieces until the server hangs up, and no more than this many.
async fn flood(wire: &mut Wire, most: usize, piece: impl Fn(usize) -> Vec<u8>) -> usize {
    for i in 0..most {
        if wire.write(piece(i)).await.is_err() {
            return i;
        }
    }
    most
}

#[tokio::test]
async fn a_plain_request_by_hand_is_answered() {
    let site = Site::start().await;
    let mut wire = open(&site, &Identity::Admin).await;
    let ask = request("GET", "/version");
    wire.write(frame(HEADERS, END_HEADERS | END_STREAM, 1, &ask))
        .await
        .expect("written");
    let kinds = kinds_until(&mut wire, DATA).await;
    assert!(
        kinds.contains(&HEADERS) && kinds.contains(&DATA),
        "{kinds:?}"
    );
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let site = Site::start().await;
    let memory = peak_memory();
    for identity in [Identity::Admin, Identity::Nobody] {
        let mut wire = open(&site, &identity).await;
        let ask = request("GET", "/api/v1/namespaces");
        flood(&mut wire, 200, |i| {
            let streams = (0..100).map(|j| 1 + 2 * (i * 100 + j) as u32);
            let pair = |stream| {
                let mut pair = frame(HEADERS, END_HEADERS | END_STREAM, stream, &ask);
                pair.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
                pair
            };
            streams.flat_map(pair).collect()
        })
        .await;
        let kinds = kinds_until(&mut wire, GOAWAY).await;
        assert!(kinds.contains(&GOAWAY) || kinds.is_empty(), "{kinds:?}");
        site.serves().await;
    }
    assert!(peak_memory() - memory < MEMORY);
}

#[tokio::test]
async fn headers_that_go_on_and_on_end_the_connection() {
    let site = Site::start().await;
    let memory = peak_memory();
    let mut wire = open(&site, &Identity::Nobody).await;
    let mut head = request("GET", "/version");
    head.extend(literal("x", "y"));
    wire.write(frame(HEADERS, END_STREAM, 1, &head))
        .await
        .expect("written");
    let more: Vec<u8> = (0..200)
        .flat_map(|i| literal(&format!("x{i}"), &"y".repeat(60)))
        .collect();
    let sent = flood(&mut wire, 2_000, |_| frame(CONTINUATION, 0, 1, &more)).await;
    let kinds = kinds_until(&mut wire, GOAWAY).await;
    assert!(
        kinds.contains(&GOAWAY) || sent < 2_000,
        "{kinds:?} after {sent}"
    );
    assert!(peak_memory() - memory < MEMORY);
    site.serves().await;
}

#[tokio::test]
async fn headers_that_unfold_without_end_are_refused() {
    let site = Site::start().await;
    let memory = peak_memory();
    let mut wire = open(&site, &Identity::Nobody).await;
    let mut head = request("GET", "/version");
    // Remember one header of almost four kilobytes, then name it twelve thousand times by one byte.
    head.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1d]);
    head.extend([b'y'; 127 + 0x21 + (0x1d << 7)]);
    head.extend(vec![0xbe; 12_000]);
    wire.write(frame(HEADERS, END_HEADERS | END_STREAM, 1, &head))
        .await
        .expect("written");
    let kinds = kinds_until(&mut wire, HEADERS).await;
    assert!(!kinds.contains(&DATA), "431, a reset or the end: {kinds:?}");
    assert!(peak_memory() - memory < MEMORY);
    site.serves().await;
}

#[tokio::test]
async fn more_streams_than_allowed_are_refused() {
    let site = Site::start().await;
    let memory = peak_memory();
    for identity in [Identity::Nobody, Identity::Admin] {
        let mut wire = open(&site, &identity).await;
        let ask = request("POST", "/api/v1/namespaces/default/configmaps");
        // Bodies that never come, on more streams than one connection may have.
        flood(&mut wire, 30, |i| {
            let streams = (0..100).map(|j| 1 + 2 * (i * 100 + j) as u32);
            streams
                .flat_map(|stream| frame(HEADERS, END_HEADERS, stream, &ask))
                .collect()
        })
        .await;
        let kinds = kinds_until(&mut wire, RST_STREAM).await;
        assert!(
            kinds.contains(&RST_STREAM) || kinds.contains(&GOAWAY),
            "{:?}",
            &kinds[..kinds.len().min(20)]
        );
        site.serves().await;
    }
    assert!(peak_memory() - memory < MEMORY);
}

#[tokio::test]
async fn frames_that_make_no_sense_end_the_connection() {
    let site = Site::start().await;
    for (attack, bytes) in [
        ("data on no stream", frame(DATA, 0, 0, b"x")),
        ("data on an idle stream", frame(DATA, 0, 5, b"x")),
        ("continuation of nothing", frame(CONTINUATION, 0, 1, b"x")),
        ("settings of a wrong size", frame(SETTINGS, 0, 0, b"xxx")),
        ("ping of a wrong size", frame(PING, 0, 0, b"x")),
        (
            "an even stream",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                2,
                &request("GET", "/version"),
            ),
        ),
        (
            "headers that are not HPACK",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 40]),
        ),
        (
            "a frame of sixteen megabytes",
            vec![0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
        ),
    ] {
        let mut wire = open(&site, &Identity::Nobody).await;
        let _ = wire.write(bytes).await;
        let kinds = kinds_until(&mut wire, GOAWAY).await;
        assert!(
            kinds.contains(&GOAWAY) || kinds.is_empty(),
            "{attack}: {kinds:?}"
        );
        site.serves().await;
    }
}

#[tokio::test]
async fn a_flood_of_pings_and_settings_costs_nothing() {
    let site = Site::start().await;
    let memory = peak_memory();
    let mut wire = open(&site, &Identity::Nobody).await;
    // Nothing is read meanwhile: the answers must not pile up in the server.
    for i in 0..2_000 {
        let mut some = Vec::new();
        for _ in 0..50 {
            some.extend(frame(PING, 0, 0, b"12345678"));
        }
        let written = tokio::time::timeout(std::time::Duration::from_millis(200), wire.write(some));
        match written.await {
            Ok(Ok(())) => {}
            _ => {
                assert!(i > 0);
                break;
            }
        }
    }
    assert!(peak_memory() - memory < MEMORY);
    site.serves().await;
}
