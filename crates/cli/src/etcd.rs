//! What stands where an etcd is expected: it says that it is well, and lends its directory to the API server.
//!
//! The API server keeps its objects itself. The directory is that of the etcd, so that a cluster outlives its API
//! server for as long as its etcd is there, as people are used to.

use std::convert::Infallible;
use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::flags::Flags;
use crate::up::wait_for_signal;

/// The version that is claimed.
pub(crate) const VERSION: &str = "3.6.0";
/// Flags that have an effect, or are without one for a reason: nothing is replicated and nothing needs a peer.
pub(crate) const KNOWN: &[&str] = &[
    "advertise-client-urls",
    "data-dir",
    "listen-client-urls",
    "listen-peer-urls",
    "unsafe-no-fsync",
];
/// Where our API server asks for the directory.
pub(crate) const DIRECTORY_PATH: &str = "/kubewright/data-dir";
/// Connections at once; clients are one API server and whoever looks after it.
const MAX_CONNECTIONS: usize = 256;

pub(crate) async fn run(flags: &Flags) -> anyhow::Result<()> {
    for name in flags.others(KNOWN) {
        eprintln!("etcd: --{name} has no effect");
    }
    let directory = flags.value("data-dir").unwrap_or("default.etcd").to_owned();
    let mut listeners = JoinSet::new();
    for url in client_urls(flags) {
        let address = address(url).await?;
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        listeners.spawn(serve(listener, directory.clone()));
    }
    wait_for_signal().await
}

fn client_urls(flags: &Flags) -> Vec<&str> {
    let given = flags.values("listen-client-urls");
    if given.is_empty() {
        return vec!["http://localhost:2379"];
    }
    given
}

/// The address of a URL such as `http://127.0.0.1:2379`.
pub(crate) async fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let Some(host) = url.strip_prefix("http://") else {
        bail!("{url:?} cannot be used: it does not start with http://");
    };
    let host = host.trim_end_matches('/');
    let mut addresses = tokio::net::lookup_host(host)
        .await
        .with_context(|| format!("{host} cannot be found"))?;
    addresses
        .next()
        .with_context(|| format!("{host} cannot be found"))
}

/// Answers until it is dropped.
async fn serve(listener: TcpListener, directory: String) {
    let mut connections = JoinSet::new();
    loop {
        // Finished connections are taken first, so that their places are free for new ones.
        tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(speak(stream, directory.clone()));
                }
            }
        }
    }
}

async fn speak(stream: TcpStream, directory: String) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &directory);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = auto::Builder::new(TokioExecutor::new());
    // A client that goes away is nothing to tell of.
    let _ = connection
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(method: &Method, path: &str, directory: &str) -> Response<Full<Bytes>> {
    let body = match path {
        _ if method != Method::GET => None,
        "/health" | "/livez" | "/readyz" => Some(r#"{"health":"true","reason":""}"#.to_owned()),
        "/version" => Some(format!(
            r#"{{"etcdserver":"{VERSION}","etcdcluster":"3.6.0","storage":"3.6.0"}}"#
        )),
        DIRECTORY_PATH => Some(directory.to_owned()),
        _ => None,
    };
    let found = body.is_some();
    let mut response = Response::new(Full::from(body.unwrap_or_default()));
    if !found {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_well_and_is_asked_nothing_else() {
        for (method, path, status) in [
            (Method::GET, "/health", 200),
            (Method::GET, "/version", 200),
            (Method::GET, DIRECTORY_PATH, 200),
            (Method::POST, "/health", 404),
            (Method::GET, "/v3/kv/range", 404),
        ] {
            let answer = answer(&method, path, "/data");
            assert_eq!(answer.status().as_u16(), status, "{method} {path}");
        }
    }
}
