//! Reconciles are exported as spans: to a collector on the loopback, as the standard variables say.

use kubewright_testing::limit;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::telemetry::Telemetry;
use kubewright_runtime::{Context, Controller, Manager, Outcome, from_fn};
use kubewright_server::Server;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Set for the process that plays the operator.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A collector that hands on what it gets, with the path that it was sent to.
async fn collector() -> (String, mpsc::Receiver<(String, Bytes)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it binds");
    let address = listener.local_addr().expect("it is bound");
    let (sender, receiver) = mpsc::channel(64);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let sender = sender.clone();
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await;
                    let body = body.expect("it is read").to_bytes();
                    // Who waits for it may have gone.
                    let _ = sender.send((path, body)).await;
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            let io = TokioIo::new(stream);
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(io, service).await
            });
        }
    });
    (format!("http://{address}"), receiver)
}

fn has(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|part| part == text.as_bytes())
}

#[limited::test]
async fn reconcile_is_a_span_at_the_collector_that_the_variables_name() {
    let (endpoint, mut exports) = collector().await;
    let test = std::env::current_exe().expect("a program");
    let operator = tokio::process::Command::new(test)
        .args(["--exact", "operator_that_exports", "--nocapture"])
        .env(ENDPOINT, endpoint)
        .env("OTEL_SERVICE_NAME", "the-operator")
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status();
    assert!(limit(operator).await.expect("it runs").success());
    let (path, body) = limit(exports.recv()).await.expect("something is exported");
    assert_eq!(path, "/v1/traces");
    for text in [
        "reconcile",
        "controller",
        "exported",
        "default/a",
        "outcome",
        "success",
        "service.name",
        "the-operator",
    ] {
        assert!(
            has(&body, text),
            "no {text} in {:?}",
            String::from_utf8_lossy(&body)
        );
    }
}

/// Plays the operator when the test above starts it; otherwise there is nobody to export to.
#[limited::test(flavor = "multi_thread", worker_threads = 2)]
async fn operator_that_exports() {
    if std::env::var_os(ENDPOINT).is_none() {
        return;
    }
    let telemetry = Telemetry::from_env("nobody").expect("it is configured");
    tracing_subscriber::registry()
        .with(telemetry.layer())
        .init();
    let server = Server::builder().start().await.expect("a server starts");
    let manager = Manager::new(kube::Client::new(server.service(), "default"));
    let client = manager.client();
    let (notes, mut heard) = mpsc::channel(8);
    let reconciler = from_fn(move |object: Arc<ConfigMap>, _: Context| {
        let notes = notes.clone();
        async move {
            let _ = notes.try_send(object.metadata.name.clone());
            Ok(Outcome::done())
        }
    });
    let controller = Controller::of::<ConfigMap>("exported").reconciler(reconciler);
    let stop = CancellationToken::new();
    let running = tokio::spawn(manager.controller(controller).run_until(stop.clone()));
    let mut object = ConfigMap::default();
    object.metadata.name = Some("a".to_owned());
    object.metadata.namespace = Some("default".to_owned());
    client.create(&object).await.expect("it is created");
    while limit(heard.recv()).await != Some(Some("a".to_owned())) {}
    stop.cancel();
    limit(running).await.expect("no panic").expect("it stops");
    let sent = limit(telemetry.shut_down()).await;
    sent.expect("the rest is sent");
}
