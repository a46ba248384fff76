//! Gates see every cached read: what was asked for, what was found, and how far the cache was.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use kubewright_cache::source::BoxFuture;
use kubewright_runtime::gate::{Gate, Point, Verdict};
use kubewright_runtime::{Client, Key, Manager, Query};
use kubewright_server::Server;
use kubewright_testing::limit;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Notes all points, and fails reads of one key.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Gate for Recorder {
    fn pass<'a>(&'a self, point: Point<'a>) -> BoxFuture<'a, Verdict> {
        let (line, verdict) = match point {
            Point::CachedRead { key: Some(key), .. } if key.name() == "refused" => {
                let status = Status::failure("the gate says no", "InternalError").with_code(500);
                (None, Verdict::Fail(Box::new(status)))
            }
            Point::Found {
                resource,
                key,
                version,
                cache,
            } => {
                let found = match version {
                    Some(version) if version == cache => "newest",
                    Some(_) => "older",
                    None => "absent",
                };
                let line = format!("{resource} {} {found}", key.as_str());
                (Some(line), Verdict::Go)
            }
            Point::Listed {
                resource,
                query,
                count,
                cache,
            } => {
                assert!(cache.parse::<u64>().is_ok(), "{cache} is a version");
                (Some(format!("{count} {resource} {query}")), Verdict::Go)
            }
            _ => (None, Verdict::Go),
        };
        self.0.lock().extend(line);
        Box::pin(async move { verdict })
    }
}

#[limited::test(start_paused = true)]
async fn cached_reads_pass_a_gate_with_what_they_ask_and_find() {
    let server = Server::builder().start().await.expect("a server starts");
    let recorder = Arc::new(Recorder::default());
    let kube = kube::Client::new(server.service(), "default");
    let client = Client::builder(kube).gate(recorder.clone()).build();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Manager::over(client.clone()).run_until(stop.clone()));

    let mut map = ConfigMap::default();
    map.metadata.name = Some("there".to_owned());
    map.metadata.namespace = Some("default".to_owned());
    map.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    limit(client.create(&map)).await.expect("it is created");
    let key = |name: &str| Key::new("default", name);
    let there = limit(client.get::<ConfigMap>(&key("there"))).await;
    assert!(there.expect("it is read").is_some());
    let absent = limit(client.get::<ConfigMap>(&key("absent"))).await;
    assert!(absent.expect("it is read").is_none());
    let selector: kube::core::Selector =
        [("app".to_owned(), "web".to_owned())].into_iter().collect();
    let query = Query::all().namespace("default").labels(selector).limit(5);
    let listed = limit(client.list::<ConfigMap>(query)).await;
    assert_eq!(listed.expect("they are listed").len(), 1);
    let refused = limit(client.get::<ConfigMap>(&key("refused"))).await;
    assert!(refused.is_err(), "the gate fails the read");

    let seen = recorder.0.lock().clone();
    let expected = [
        "configmaps default/there newest",
        "configmaps default/absent absent",
        "1 configmaps in default with app=web at most 5",
    ];
    assert_eq!(seen, expected);
    stop.cancel();
    let ended = limit(running).await.expect("no panic");
    ended.expect("it ends well");
}
