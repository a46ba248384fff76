//! The socket: connections, plain or TLS, each with limits on its number, headers and time.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Handler, Tls, method_not_allowed, text};
use crate::panics;

/// Most connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;
/// How long a client may take for the TLS handshake, and for the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take to be made, with the reading of the body.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a connection may last: who reads slowly, or not at all, does not stay.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// How long answers under way may take after the end.
const DRAIN: Duration = Duration::from_secs(5);
/// Largest set of headers.
const HEADERS: usize = 64 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS: u32 = 16;
/// Pause when the process has no file handles left.
const BREATHER: Duration = Duration::from_millis(20);

/// An address cannot be listened at.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
pub struct BindError {
    address: String,
    #[source]
    source: io::Error,
}

/// A socket that is bound and does not answer yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    tls: Option<Tls>,
}

impl Listener {
    /// Binds `host:port`, or `:port` for all addresses of the machine. An empty text or `0` means that nothing is to be
    /// served, as in controller-runtime.
    ///
    /// # Errors
    /// When the address is none, or taken.
    pub async fn bind(address: &str) -> Result<Option<Self>, BindError> {
        if address.is_empty() || address == "0" {
            return Ok(None);
        }
        let bound = match address.strip_prefix(':') {
            None => TcpListener::bind(address).await,
            // Both families at once where the machine has both.
            Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
                Ok(socket) => Ok(socket),
                Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
            },
        };
        let failed = |source| BindError {
            address: address.into(),
            source,
        };
        bound.map(|socket| Some(Self::of(socket))).map_err(failed)
    }

    /// A socket that somebody else bound.
    pub fn of(socket: TcpListener) -> Self {
        Self { socket, tls: None }
    }

    /// Serves over TLS with this certificate.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the operating system does not know.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Answers until cancelled, then lets answers under way finish for a moment.
    pub async fn serve(self, handler: impl Handler, cancel: CancellationToken) {
        let handler = Arc::new(handler);
        let mut connections = JoinSet::new();
        loop {
            // The end comes first; then finished connections, or new ones would let them pile up.
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.socket.accept(), if connections.len() < CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        let speaks = accept(stream, self.tls.clone(), handler.clone(), cancel.clone());
                        connections.spawn(speaks);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(BREATHER).await;
                    }
                },
            }
        }
        drop(self.socket);
        let finished = async { while connections.join_next().await.is_some() {} };
        if timeout(DRAIN, finished).await.is_err() {
            tracing::debug!("connections still open after {DRAIN:?} are closed");
        }
    }
}

async fn accept<H: Handler>(
    stream: TcpStream,
    tls: Option<Tls>,
    handler: Arc<H>,
    cancel: CancellationToken,
) {
    // Without it answers are slower, not wrong.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return speak(stream, handler, cancel).await;
    };
    let acceptor = tls.acceptor().await;
    match timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => speak(stream, handler, cancel).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn speak<S, H>(stream: S, handler: Arc<H>, cancel: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Handler,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let handler = handler.clone();
        async move { Ok::<_, Infallible>(respond(&*handler, request).await) }
    });
    let builder = builder();
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    // The end of the connection comes first; the order of the others does not matter.
    let ended = tokio::select! {
        biased;
        result = connection.as_mut() => Some(result),
        () = cancel.cancelled() => None,
        () = sleep(LIFETIME) => None,
    };
    let ended = match ended {
        Some(result) => result,
        None => {
            connection.as_mut().graceful_shutdown();
            // What is still unread after another while is not going to be read.
            match timeout(ANSWER, connection).await {
                Ok(result) => result,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn respond<H: Handler>(handler: &H, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let answered = async {
        match head.method {
            Method::GET | Method::HEAD => handler.handle(&head).await,
            Method::POST if H::LARGEST_BODY > 0 => match read(body, H::LARGEST_BODY).await {
                Ok(body) => handler.post(&head, body).await,
                Err(refused) => refused,
            },
            _ => method_not_allowed(),
        }
    };
    let path = head.uri.path();
    let answered = AssertUnwindSafe(answered).catch_unwind();
    let response = match timeout(ANSWER, answered).await {
        Ok(Ok(response)) => response,
        // A panic costs one answer, not the connection, let alone the server.
        Ok(Err(panic)) => {
            let message = panics::text(&*panic);
            tracing::error!(path, message, "answering a request panicked");
            text(StatusCode::INTERNAL_SERVER_ERROR, "the answer panicked\n")
        }
        Err(_) => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the answer took too long\n",
        ),
    };
    response.map(Full::new)
}

/// Reads the whole body, or returns what to answer when it cannot be read.
async fn read(body: Incoming, largest: usize) -> Result<Bytes, Response<Bytes>> {
    match Limited::new(body, largest).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(text(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("more than {largest} bytes\n"),
        )),
        Err(error) => Err(text(StatusCode::BAD_REQUEST, format!("{error}\n"))),
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADERS as u32)
        .keep_alive_interval(Some(PATIENCE));
    builder
}
