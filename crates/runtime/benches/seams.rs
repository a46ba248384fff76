//! From an event of a watch to the end of its reconcile, one at a time, in one thread and without a socket: for counting the
//! instructions that the gates of a simulation cost where no gate is set (docs/benchmarks.md).
//!
//! `cargo bench -p kubewright-runtime --bench seams -- 20000` prints the time of one event.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kubewright_runtime::{Context, Controller, Error, Manager, Outcome, Query, from_fn};
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Events that the watch has still to deliver; taken by the first watch.
type Events = Arc<Mutex<Option<Receiver<Bytes>>>>;

fn main() {
    let events = std::env::args().filter_map(|text| text.parse().ok()).next();
    let events = events.unwrap_or(20_000);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    runtime.block_on(measure(events));
}

async fn measure(count: u64) {
    let (event, events) = channel(1);
    let (reconciled, mut done) = channel(1);
    let client = client(Arc::new(Mutex::new(Some(events))));
    let controller = Controller::of::<ConfigMap>("seams")
        .reconciler(from_fn(move |_, cx| look(reconciled.clone(), cx)));
    let stop = CancellationToken::new();
    let manager = Manager::new(client).controller(controller);
    let running = tokio::spawn(manager.run_until(stop.clone()));
    done.recv().await.expect("the first state is reconciled");
    let start = Instant::now();
    for version in 2..count + 2 {
        let line = format!("{{\"type\":\"MODIFIED\",\"object\":{}}}\n", object(version));
        event.send(line.into()).await.expect("somebody watches");
        done.recv().await.expect("it is reconciled");
    }
    let took = start.elapsed() / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    println!("{count} events, {took:?} from event to end of reconcile");
    stop.cancel();
    running.await.expect("no panic").expect("it ends well");
}

/// A reconcile that reads an object and a list from the cache.
async fn look(reconciled: Sender<()>, cx: Context) -> Result<Outcome, Error> {
    let found = cx.client().get::<ConfigMap>(cx.key()).await?;
    let listed = cx.client().list::<ConfigMap>(Query::all()).await?;
    assert!(found.is_some() && listed.len() == 1);
    let _ = reconciled.send(()).await;
    Ok(Outcome::done())
}

fn object(version: u64) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a","namespace":"default","uid":"1","resourceVersion":"{version}"}},"data":{{"key":"value"}}}}"#
    )
}

/// A client of a server that has one object, and a watch with these events.
fn client(events: Events) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let answer = answer(&request, &events);
        async move { Ok::<_, Infallible>(answer) }
    });
    kube::Client::new(service, "default")
}

fn answer(request: &Request<Body>, events: &Events) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    if query.contains("sendInitialEvents") {
        return full(
            422,
            r#"{"kind":"Status","status":"Failure","reason":"Invalid","code":422}"#,
        );
    }
    if !query.contains("watch=") {
        let items = object(1);
        let list = format!(
            r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{items}]}}"#
        );
        return full(200, &list);
    }
    let Some(receiver) = events.lock().take() else {
        return full(500, "{}");
    };
    let lines = stream::unfold(receiver, async |mut receiver| {
        let line = receiver.recv().await?;
        Some((Ok(Frame::data(line)), receiver))
    });
    Response::new(StreamBody::new(lines.boxed()).boxed_unsync())
}

fn full(code: u16, text: &str) -> Answer {
    let body = Full::new(Bytes::from(text.to_owned())).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a status code");
    response
}
