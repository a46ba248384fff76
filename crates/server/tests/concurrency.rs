//! A thousand watchers of one kind while ten thousand writes pass: each sees each event once and in order.

#[path = "attacks/call.rs"]
mod call;

use call::{Ask, Frames};
use kubewright_server::{ApiService, Server};
use serde_json::json;
use tokio::task::JoinSet;

const WATCHERS: usize = 1_000;
const WRITES: usize = 10_000;
const OBJECTS: usize = 100;
const WRITERS: usize = 4;
const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_thousand_watchers_see_ten_thousand_writes_once_and_in_order() {
    let server = Server::builder().start().await.expect("starts");
    let service = server.service();
    let from = server.revision();
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let path = format!("{PATH}?watch=1&resourceVersion={from}");
        watchers.spawn(follow(Frames::open(&service, path).await));
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(service.clone(), writer));
    }
    let known: Vec<u64> = writers.join_all().await.concat();
    // Nobody else writes, so each revision is one write of theirs.
    let last = from + WRITES as u64;
    assert_eq!(server.revision(), last);
    assert!(
        known
            .iter()
            .all(|version| (from + 1..=last).contains(version))
    );
    let written: Vec<u64> = (from + 1..=last).collect();
    for (index, seen) in watchers.join_all().await.into_iter().enumerate() {
        assert!(seen == written, "watcher {index} saw other events");
    }
    // A list at the end is what the events add up to: nothing was left over.
    let list = Ask::get(PATH).send(&service).await.json();
    assert_eq!(
        list["metadata"]["resourceVersion"],
        json!(server.revision().to_string())
    );
}

/// The versions of all events, in the order in which they came. Watchers start before the first write.
async fn follow(mut frames: Frames) -> Vec<u64> {
    let mut seen = Vec::with_capacity(WRITES);
    while seen.len() < WRITES {
        let frame = frames.next_bytes().await.expect("the watch goes on");
        let version = version(&frame);
        assert!(
            seen.last().is_none_or(|last| *last < version),
            "{version} comes late"
        );
        seen.push(version);
    }
    seen
}

/// The resource version in a frame, found without decoding it: ten million frames are looked at.
fn version(frame: &[u8]) -> u64 {
    const FIELD: &[u8] = br#""resourceVersion":""#;
    let at = memchr::memmem::find(frame, FIELD).expect("an object has a version");
    let digits = frame[at + FIELD.len()..].iter();
    digits
        .take_while(|b| b.is_ascii_digit())
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// Creates, changes and deletes this writer's objects; gives the versions that the answers tell.
async fn write(service: ApiService, writer: usize) -> Vec<u64> {
    const OWN: usize = OBJECTS / WRITERS;
    let mut versions = Vec::new();
    for step in 0..WRITES / WRITERS {
        let name = format!("w{writer}-{}", step % OWN);
        let object = json!({"metadata": {"name": name}, "data": {"step": step.to_string()}});
        let ask = match step / OWN % 4 {
            0 => Ask::post(PATH, object),
            3 => Ask::delete(format!("{PATH}/{name}")),
            _ => Ask::put(format!("{PATH}/{name}"), object),
        };
        let answer = ask.send(&service).await;
        assert!(answer.code < 300, "{}", answer.text());
        // The answer to a delete does not tell its version.
        versions.extend(answer.resource_version().parse::<u64>());
    }
    versions
}
