//! Where orders come in, and reports go out.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The largest order that is read.
const LARGEST: usize = 64 * 1024;
/// Connections at once.
const MOST_CONNECTIONS: usize = 64;
/// How long a client may take to send its headers.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who takes orders.
pub(super) trait Obeys: Send + Sync + 'static {
    /// Why it is not ready; nothing when it is.
    fn unready(&self) -> Option<String>;
    /// The report as JSON.
    fn report(&self) -> serde_json::Result<Vec<u8>>;
    /// Obeys an order in JSON, or says why not.
    fn order(&self, body: &[u8]) -> Result<(), (StatusCode, String)>;
}

/// Answers until it is dropped.
pub(super) async fn serve<O: Obeys>(listener: TcpListener, shared: Arc<O>) {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let shared = shared.clone();
        connections.spawn(async move {
            let answer = service_fn(|request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(answer(request, &*shared).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // A client that hangs up is nothing to report.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &impl Obeys) -> Response<Full<Bytes>> {
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => text(StatusCode::OK, "ok".to_owned()),
        (&Method::GET, "/readyz") => match shared.unready() {
            None => text(StatusCode::OK, "ok".to_owned()),
            Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, why),
        },
        (&Method::GET, "/status") => report(shared),
        (&Method::POST, "/order") => order(request, shared).await,
        _ => text(StatusCode::NOT_FOUND, "not found".to_owned()),
    }
}

async fn order(request: Request<Incoming>, shared: &impl Obeys) -> Response<Full<Bytes>> {
    let body = Limited::new(request.into_body(), LARGEST).collect().await;
    let Ok(body) = body.map(|body| body.to_bytes()) else {
        return text(StatusCode::BAD_REQUEST, "the order is too large".to_owned());
    };
    match shared.order(&body) {
        Ok(()) => report(shared),
        Err((status, why)) => text(status, why),
    }
}

fn report(shared: &impl Obeys) -> Response<Full<Bytes>> {
    match shared.report() {
        Ok(body) => respond(StatusCode::OK, "application/json", Bytes::from(body)),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    respond(status, "text/plain; charset=utf-8", Bytes::from(text))
}

fn respond(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let kind = ::http::HeaderValue::from_static(kind);
    response
        .headers_mut()
        .insert(::http::header::CONTENT_TYPE, kind);
    response
}
