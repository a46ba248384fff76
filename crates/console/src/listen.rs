//! The socket of the console: connections with limits, and headers that every answer carries.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::http::Body;
use crate::routes;
use crate::state::State;

/// Most connections at once; more wait to be accepted.
const CONNECTIONS: usize = 512;
/// How long a client may take for the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long answers under way may take after the end.
const DRAIN: Duration = Duration::from_millis(300);
/// Pause when the process has no file handles left.
const BREATHER: Duration = Duration::from_millis(20);

/// What every answer says to the browser: run and fetch nothing but what comes from here, and keep nothing.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Answers until cancelled.
pub(crate) async fn serve(socket: TcpListener, state: Arc<State>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut kinds = tokio::spawn(state.feeds.clone().follow_kinds());
    loop {
        // The end comes first; then finished connections, or new ones would let them pile up.
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = socket.accept(), if connections.len() < CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(speak(stream, state.clone(), stop.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(BREATHER).await;
                }
            },
        }
    }
    let finished = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(DRAIN, finished).await;
    let _ = (&mut kinds).await;
}

async fn speak(stream: TcpStream, state: Arc<State>, stop: CancellationToken) {
    // Without it answers are slower, not wrong.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(finish(routes::answer(&state, request).await)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        },
    }
}

fn finish(mut response: Response<Body>) -> Response<Body> {
    let headers: &mut HeaderMap = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
