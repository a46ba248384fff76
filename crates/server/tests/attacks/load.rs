//! Too many of everything: watches, watchers that never read, large objects, writes at once.

use std::convert::Infallible;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use kubewright_server::storage::HistoryLimits;
use kubewright_server::{ApiService, RequestLimits, Server, User};
use serde_json::json;

use crate::call::{self, Answer, Ask, Frames};
use crate::host::{CONFIG_MAPS, Host, MEMORY, config_map, judge, padding, peak_memory};
use crate::socket::{Identity, Site};

const BUSY: (u16, &str) = (429, "TooManyRequests");

#[tokio::test]
async fn one_user_cannot_take_all_watches() {
    let mut limits = RequestLimits::default();
    limits.watches_per_user = 5;
    let server = Server::builder().request_limits(limits).start().await;
    let host = Host::with(server.expect("starts")).await;
    let path = format!("{CONFIG_MAPS}?watch=1");
    let mut watches = Vec::new();
    for _ in 0..5 {
        watches.push(Frames::open(&host.service, &path).await);
    }
    let answer = host.refuses("sixth", Ask::get(&path), BUSY).await;
    assert_eq!(answer.header("retry-after"), "1");
    let bob = User::new("bob", ["testers"]);
    let other = Frames::open(&host.server.service_as(bob), &path).await;
    drop(other);
    drop(watches.pop());
    let mut again = Frames::open(&host.service, &path).await;
    assert_eq!(again.next().await.expect("an event")["type"], "ADDED");
}

#[tokio::test]
async fn a_watcher_that_never_reads_is_left_behind_alone() {
    let history = HistoryLimits::default().events(50);
    let server = Server::builder().history(history).start().await;
    let host = Host::with(server.expect("starts")).await;
    let from = host.server.revision();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let mut lazy = Frames::open(&host.service, &path).await;
    let mut eager = Frames::open(&host.service, &path).await;
    for i in 0..200 {
        host.must(Ask::post(CONFIG_MAPS, config_map(&format!("c{i}"))))
            .await;
        let event = eager.next().await.expect("an event");
        assert_eq!(event["object"]["metadata"]["name"], format!("c{i}"));
    }
    let event = lazy.next().await.expect("an event");
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert_eq!(lazy.next().await, None);
    host.serves().await;
}

#[tokio::test]
async fn a_socket_that_never_reads_costs_the_server_little() {
    let history = HistoryLimits::default().bytes(2 << 20);
    let server = Server::builder().history(history).start().await;
    let site = Site::of(server.expect("starts")).await;
    let service = site.server.service();
    let path = "/api/v1/namespaces/default/configmaps?watch=1";
    let mut lazy = Vec::new();
    for protocol in ["http/1.1", "http/1.1", "http/1.1"] {
        let mut wire = site.connect(&Identity::Admin, protocol).await;
        wire.write(format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n"))
            .await
            .expect("written");
        lazy.push(wire);
    }
    let memory = peak_memory();
    let mut object = config_map("large");
    object["data"]["a"] = json!(padding(500_000));
    Ask::post(CONFIG_MAPS, &object).send(&service).await;
    for i in 0..200 {
        object["data"]["n"] = json!(i.to_string());
        let answer = Ask::put(format!("{CONFIG_MAPS}/large"), &object)
            .send(&service)
            .await;
        assert_eq!(answer.code, 200, "{}", answer.text());
    }
    // A hundred megabytes have passed.
    assert!(peak_memory() - memory < MEMORY);
    site.serves().await;
    let events = lazy.remove(0).read_until("\"type\":\"ERROR\"").await;
    assert!(
        events.contains("too old resource version"),
        "the one who wakes up learns that it missed events"
    );
}

#[tokio::test]
async fn a_large_event_is_written_once_for_a_thousand_watchers() {
    let host = Host::start().await;
    let from = host.server.revision();
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let mut watchers = Vec::new();
    for _ in 0..1_000 {
        watchers.push(Frames::open(&host.service, &path).await);
    }
    let memory = peak_memory();
    let mut object = config_map("large");
    object["data"]["a"] = json!(padding(1_000_000));
    host.must(Ask::post(CONFIG_MAPS, object)).await;
    let frames: Vec<Option<Bytes>> = join_all(watchers.iter_mut().map(Frames::next_bytes)).await;
    let first = frames[0].clone().expect("a frame");
    assert!(first.len() > 1_000_000);
    for frame in frames {
        let frame = frame.expect("a frame");
        assert_eq!(frame.as_ptr(), first.as_ptr(), "the same bytes, not a copy");
    }
    assert!(peak_memory() - memory < MEMORY, "a gigabyte otherwise");
}

/// A write whose body never comes.
async fn stuck(service: ApiService) -> Answer {
    let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let request = Ask::post(CONFIG_MAPS, "").request(body);
    Answer::read(call::send(&service, request).await).await
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_keeps_nobody_out() {
    let mut limits = RequestLimits::default();
    (limits.reads, limits.writes) = (1, 1);
    let server = Server::builder().request_limits(limits).start().await;
    let host = Host::with(server.expect("starts")).await;
    let bob = host.server.service_as(User::new("bob", ["testers"]));
    let stuck: Vec<_> = (0..100).map(|_| tokio::spawn(stuck(bob.clone()))).collect();
    tokio::task::yield_now().await;
    for service in [&bob, &host.service] {
        for path in ["/healthz", "/readyz", "/apis", CONFIG_MAPS] {
            assert_eq!(Ask::get(path).send(service).await.code, 200, "{path}");
        }
        let name = padding(1 + host.server.revision() as usize % 50);
        let answer = Ask::post(CONFIG_MAPS, config_map(&name))
            .send(service)
            .await;
        assert_eq!(answer.code, 201, "{}", answer.text());
    }
    for stuck in stuck {
        judge("stuck", &stuck.await.expect("ends"), (408, "Timeout"));
    }
}
