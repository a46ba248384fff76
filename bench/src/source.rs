//! The source that all clients are measured with: an API server for one resource that renders as fast as memory is
//! copied, so that what is measured is the client. It speaks TLS and HTTP/1.1.
//!
//! It serves the objects of one kind as lists in pages, as watches, and as watches that begin with the initial state; and it
//! takes orders: `/bench/events?count=N[&pace=P]` changes N objects, at once or P a second, and `/bench/relist` changes one in a
//! hundred in secret, ends the watch as expired and answers when it has been opened again. One watch at a time.

mod flow;
pub(crate) mod kind;
mod rendering;
pub(crate) mod template;
mod world;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use flow::Flow;
use kind::Kind;
pub(crate) use world::now;
use world::{Order, World};

/// Serve objects to whoever is measured.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Pods, and how many
    #[arg(long, conflicts_with = "foos", default_value_t = 0)]
    pods: usize,
    /// Foos, and how many
    #[arg(long, default_value_t = 0)]
    foos: usize,
    /// Where to write how to get in; it is there when the source is ready
    #[arg(long)]
    kubeconfig: PathBuf,
}

/// How long a client may take to open its watch again.
const PATIENCE: Duration = Duration::from_secs(600);

/// Serves until the process is ended.
pub(crate) async fn run(arguments: Arguments) -> Result<()> {
    let (kind, objects) = match arguments.foos {
        0 => (Kind::Pod, arguments.pods),
        foos => (Kind::Foo, foos),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let key = KeyPair::generate().context("making a key")?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let world = Arc::new(World::new(kind, objects)?);
    let kubeconfig = kubeconfig(&listener.local_addr()?.to_string(), &certificate.pem());
    let unfinished = arguments.kubeconfig.with_extension("unfinished");
    std::fs::write(&unfinished, kubeconfig)?;
    std::fs::rename(&unfinished, &arguments.kubeconfig)?;
    let tasks = tokio::task::LocalSet::new();
    tasks
        .run_until(async {
            loop {
                let (stream, _) = listener.accept().await?;
                let connection = serve(stream, acceptor.clone(), kind, world.clone());
                tokio::task::spawn_local(connection);
            }
        })
        .await
}

/// One connection; a client that goes away is not an error.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, kind: Kind, world: Arc<World>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| answer(kind, world.clone(), request));
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    kind: Kind,
    world: Arc<World>,
    request: Request<Incoming>,
) -> Result<Response<Flow>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = Query(request.uri().query().unwrap_or_default().to_owned());
    let accept = request
        .headers()
        .get(http::header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    Ok(match path.as_str() {
        path if path == kind.path() => match query.text("watch") {
            Some("true" | "1") => world.watch(accept, &query),
            _ => world.list(accept, &query),
        },
        "/bench/events" => {
            world.order(Order::Events {
                count: query.number("count").unwrap_or(1),
                pace: query.number("pace"),
            });
            plain(StatusCode::OK)
        }
        "/bench/relist" => {
            let done = tokio::time::timeout(PATIENCE, world.relist()).await;
            plain(done.map_or(StatusCode::GATEWAY_TIMEOUT, |()| StatusCode::OK))
        }
        _ => plain(StatusCode::NOT_FOUND),
    })
}

/// An answer without content.
pub(crate) fn plain(status: StatusCode) -> Response<Flow> {
    let mut response = Response::new(Flow::of(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// The parameters of a request. None that matters here needs escapes.
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.text(name)?.parse().ok()
    }
}

fn kubeconfig(address: &str, certificate: &str) -> String {
    let authority = STANDARD.encode(certificate);
    serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {
            "server": format!("https://{address}"),
            "certificate-authority-data": authority,
        }}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    })
    .to_string()
}
