//! Brings requests to members: over HTTP, with TLS where the cluster has it. Tests put something else here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a member may take to answer. Elections take a second.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long a member may take to defragment its data.
const DEFRAGMENTS_WITHIN: Duration = Duration::from_secs(120);
/// How large an answer may be; those that are asked for are a few kilobytes.
const LARGEST_ANSWER: usize = 1 << 20;

/// Where a member is, and how it proves that.
#[derive(Clone)]
pub struct Endpoint {
    /// The name of the member, for messages and tests.
    pub member: String,
    /// The namespace of its pod.
    pub namespace: String,
    /// Its address, without a port.
    pub address: String,
    /// The name in its certificate.
    pub host: String,
    /// How TLS is talked; plain HTTP without it.
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} at {}", self.namespace, self.member, self.address)
    }
}

/// What a member answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The JSON of it.
    pub body: Bytes,
}

/// What happened to a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// There is no connection to it.
    #[error("cannot connect to {0}")]
    Connect(String, #[source] std::io::Error),
    /// The name in the certificate of a member is not a name.
    #[error("{0:?} is not a name of a server")]
    Name(String),
    /// The connection broke, or does not speak HTTP.
    #[error("the connection failed")]
    Http(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

/// Brings a request to a member and its answer back.
pub trait Transport: Send + Sync + 'static {
    /// Posts JSON to a path of a member's client port.
    ///
    /// # Errors
    /// When there is no answer. The request may have been carried out.
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, TransportError>>;
}

/// Requests over the network, one connection each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network;

impl Transport for Network {
    fn post<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        path: &'static str,
        body: Bytes,
    ) -> BoxFuture<'a, Result<Answer, TransportError>> {
        let limit = if path.ends_with("/defragment") {
            DEFRAGMENTS_WITHIN
        } else {
            ANSWERS_WITHIN
        };
        Box::pin(async move {
            let answer = timeout(limit, exchange(endpoint, path, body)).await;
            answer.unwrap_or(Err(TransportError::Timeout(limit)))
        })
    }
}

async fn exchange(endpoint: &Endpoint, path: &str, body: Bytes) -> Result<Answer, TransportError> {
    let address = format!("{}:2379", endpoint.address);
    let connect = |error| TransportError::Connect(address.clone(), error);
    let stream = TcpStream::connect(&address).await.map_err(connect)?;
    let Some(tls) = &endpoint.tls else {
        return send(stream, endpoint, path, body).await;
    };
    let name = ServerName::try_from(endpoint.host.clone());
    let name = name.map_err(|_| TransportError::Name(endpoint.host.clone()))?;
    let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
    send(stream.map_err(connect)?, endpoint, path, body).await
}

async fn send<S>(
    stream: S,
    endpoint: &Endpoint,
    path: &str,
    body: Bytes,
) -> Result<Answer, TransportError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| TransportError::Http(error.into());
    let request = Request::post(path)
        .header(header::HOST, &endpoint.host)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| TransportError::Http(error.into()))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(failed)?;
        let code = response.status().as_u16();
        let body = Limited::new(response.into_body(), LARGEST_ANSWER).collect();
        let body = body.await.map_err(TransportError::Http)?.to_bytes();
        Ok(Answer { code, body })
    };
    tokio::select! { biased; // The answer may be complete when the connection ends.
        answer = exchange => answer,
        ended = connection => Err(TransportError::Http(match ended {
            Ok(()) => "closed before the answer".into(),
            Err(error) => error.into(),
        })),
    }
}
