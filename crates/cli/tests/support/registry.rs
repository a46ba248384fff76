//! A registry on this machine: the distribution API, in memory, with tokens for those who know the password.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use bytes::Bytes;
use http::header::{AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

/// A registry, which is there as long as the test is.
pub(crate) struct Registry {
    pub(crate) address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    blobs: BTreeMap<String, Bytes>,
    manifests: BTreeMap<String, Bytes>,
    uploads: usize,
}

impl Registry {
    pub(crate) fn start() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = socket.local_addr().expect("it has an address");
        let kept = Arc::new(Mutex::new(Kept::default()));
        let shared = kept.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(serve(socket, address, shared));
        });
        Self { address, kept }
    }

    pub(crate) fn manifest(&self, name: &str) -> Option<Vec<u8>> {
        let kept = self.kept.lock().expect("nobody panicked");
        kept.manifests.get(name).map(|bytes| bytes.to_vec())
    }

    pub(crate) fn blob(&self, digest: &str) -> Option<Vec<u8>> {
        let kept = self.kept.lock().expect("nobody panicked");
        kept.blobs.get(digest).map(|bytes| bytes.to_vec())
    }

    pub(crate) fn uploads(&self) -> usize {
        self.kept.lock().expect("nobody panicked").uploads
    }
}

async fn serve(socket: TcpListener, address: SocketAddr, kept: Arc<Mutex<Kept>>) {
    socket.set_nonblocking(true).expect("it is a socket");
    let socket = tokio::net::TcpListener::from_std(socket).expect("it is a socket");
    loop {
        let (stream, _) = socket.accept().await.expect("somebody connects");
        let kept = kept.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, address, kept.clone()));
            let connection = hyper::server::conn::http1::Builder::new();
            // A client that hangs up is of no interest.
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    address: SocketAddr,
    kept: Arc<Mutex<Kept>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let authorization = head
        .headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let path = head.uri.path().to_owned();
    if path == "/token" {
        let password = base64::engine::general_purpose::STANDARD.encode("me:secret");
        let known = authorization == Some(&format!("Basic {password}"));
        let status = if known {
            StatusCode::OK
        } else {
            StatusCode::UNAUTHORIZED
        };
        return Ok(reply(status, r#"{"token": "let-me-in"}"#));
    }
    if authorization != Some("Bearer let-me-in") {
        let mut refused = reply(StatusCode::UNAUTHORIZED, "{}");
        let scheme = format!(r#"Bearer realm="http://{address}/token",service="test""#);
        refused
            .headers_mut()
            .insert(WWW_AUTHENTICATE, scheme.parse().expect("a header"));
        return Ok(refused);
    }
    let query = head.uri.query().unwrap_or_default().to_owned();
    Ok(distribute(
        &head.method,
        (&path, &query),
        body,
        &mut kept.lock().expect("nobody panicked"),
    ))
}

fn distribute(
    method: &Method,
    (path, query): (&str, &str),
    body: Bytes,
    kept: &mut Kept,
) -> Response<Full<Bytes>> {
    let rest = path.strip_prefix("/v2/team/book/").unwrap_or_default();
    let found = |bytes: Option<&Bytes>| match bytes {
        Some(bytes) => Response::new(Full::new(bytes.clone())),
        None => reply(
            StatusCode::NOT_FOUND,
            r#"{"errors": [{"message": "unknown"}]}"#,
        ),
    };
    match (method, rest.split_once('/')) {
        (_, None) => reply(StatusCode::OK, "{}"),
        (&Method::POST, Some(("blobs", "uploads/"))) => {
            let mut begun = reply(StatusCode::ACCEPTED, "");
            let place = "/v2/team/book/blobs/uploads/1?state=a";
            begun
                .headers_mut()
                .insert(LOCATION, place.parse().expect("a header"));
            begun
        }
        (&Method::PUT, Some(("blobs", _))) => {
            let digest = query.rsplit("digest=").next().unwrap_or_default();
            kept.blobs.insert(digest.replace("%3A", ":"), body);
            kept.uploads += 1;
            reply(StatusCode::CREATED, "")
        }
        (&Method::PUT, Some(("manifests", name))) => {
            kept.manifests.insert(name.to_owned(), body);
            reply(StatusCode::CREATED, "")
        }
        (_, Some(("blobs", digest))) => found(kept.blobs.get(digest)),
        (_, Some((_, name))) => found(kept.manifests.get(name)),
    }
}

fn reply(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}
