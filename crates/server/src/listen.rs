//! The socket side: TLS connections, with limits on what a stranger can cost.
//!
//! A connection is a stranger until a request on it was authenticated. Strangers are few: when a new one would be
//! too many, or all places are taken, the oldest is closed, so that a flood of silent connections cannot keep clients
//! out.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, User};
use crate::connection::{Distance, Stranger, Strangers};
use crate::http::websocket::Upgraded;
use crate::service::ApiService;

/// How long a stranger may take for the TLS handshake, and any client for the headers of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long requests may go on after the server was asked to stop.
const DRAIN: Duration = Duration::from_secs(5);
/// Most requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 1_000;
/// Largest set of headers.
const MAX_HEADERS: u32 = 64 * 1024;
/// Pause when the process has no file handles left.
const BREATHER: Duration = Duration::from_millis(20);

/// Limits of a listener.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListenLimits {
    /// Most connections at once.
    pub connections: usize,
    /// Most connections at once that have not been authenticated.
    pub strangers: usize,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            strangers: 256,
        }
    }
}

/// Serves TLS connections until cancelled, then lets requests finish for a moment.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    service: ApiService,
    limits: ListenLimits,
    cancel: CancellationToken,
) {
    let strangers = Arc::new(Strangers::new(limits.strangers));
    let mut connections = JoinSet::new();
    loop {
        // Finished connections are taken first, or a flood of new ones would let them pile up.
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < limits.connections || strangers.any() => match accepted {
                Ok((stream, peer)) => {
                    if connections.len() >= limits.connections {
                        strangers.evict_oldest();
                    }
                    let stranger = strangers.arrive();
                    let connection = Connection { tls: tls.clone(), service: service.clone(), cancel: cancel.clone() };
                    connections.spawn(connection.run(stream, peer, stranger));
                }
                Err(error) => out_of_handles(&error, &strangers).await,
            },
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, finished).await.is_err() {
        tracing::debug!("connections still open after {DRAIN:?} are closed");
    }
}

async fn out_of_handles(error: &io::Error, strangers: &Strangers) {
    tracing::warn!(%error, "a connection could not be accepted; the oldest stranger has to go");
    strangers.evict_oldest();
    tokio::time::sleep(BREATHER).await;
}

/// What one connection needs.
struct Connection {
    tls: TlsAcceptor,
    service: ApiService,
    cancel: CancellationToken,
}

/// Why a connection ended before its time.
#[derive(Debug, thiserror::Error)]
enum ConnectionError {
    #[error("TLS handshake took too long")]
    Slow,
    #[error("{0}")]
    Handshake(io::Error),
    #[error("{0}")]
    Http(Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}")]
    Upgraded(io::Error),
}

impl Connection {
    async fn run(self, stream: TcpStream, peer: SocketAddr, stranger: Stranger) {
        let evicted = stranger.evicted();
        tokio::select! {
            () = evicted.cancelled() => tracing::debug!(%peer, "too many strangers; connection closed"),
            result = self.speak(stream, stranger) => if let Err(error) = result {
                tracing::debug!(%peer, %error, "connection ended");
            },
        }
    }

    async fn speak(self, stream: TcpStream, stranger: Stranger) -> Result<(), ConnectionError> {
        let _ = stream.set_nodelay(true);
        let distance = match stream.peer_addr() {
            Ok(peer) if peer.ip().is_loopback() => Distance::SameMachine,
            _ => Distance::Network,
        };
        let handshake = tokio::time::timeout(PATIENCE, self.tls.accept(stream));
        let stream = handshake
            .await
            .map_err(|_| ConnectionError::Slow)?
            .map_err(ConnectionError::Handshake)?;
        let certificate = stream
            .get_ref()
            .1
            .peer_certificates()
            .and_then(|c| c.first());
        let user = certificate.and_then(|c| User::of_certificate(c));
        let upgraded = Upgraded::default();
        let caller = Caller::Peer(user);
        let service = self
            .service
            .for_connection(caller, stranger, distance, upgraded.clone());
        let builder = builder();
        let connection = builder.serve_connection_with_upgrades(
            TokioIo::new(stream),
            TowerToHyperService::new(service),
        );
        tokio::pin!(connection);
        let ended = tokio::select! {
            result = connection.as_mut() => result,
            () = self.cancel.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        ended.map_err(ConnectionError::Http)?;
        // A connection that was upgraded goes on within the same limits.
        match upgraded.take() {
            Some(rest) => rest.await.map_err(ConnectionError::Upgraded),
            None => Ok(()),
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(Some(Duration::from_secs(30)))
        .initial_stream_window_size(1024 * 1024)
        .initial_connection_window_size(4 * 1024 * 1024);
    builder
}
