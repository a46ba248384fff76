//! A request that is passed on to another server whole, and its answer as it comes.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::client::ResolvesClientCert;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::client::{Callout, Failure, tls_error, transport};
use super::target::Target;
use crate::http::body::ResponseBody;

/// How long the other server may take for the head of its answer. Its body may go on, as that of a watch does.
const PATIENCE: Duration = Duration::from_secs(60);

/// The certificate by which other servers know this one.
#[derive(Clone)]
pub(crate) struct ClientIdentity(pub(crate) Arc<dyn ResolvesClientCert>);

impl fmt::Debug for ClientIdentity {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

/// Why a request could not be passed on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PassOnError(String);

impl Callout {
    /// Passes a request on. The answer ends when the other server's does, or when its connection breaks.
    pub(crate) async fn pass_on(
        &self,
        target: &Target,
        identity: &ClientIdentity,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, PassOnError> {
        let exchange = self.exchange_whole(target, identity, request);
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Failure::Transport(why) | Failure::Answer(why))) => Err(PassOnError(why)),
            Err(_) => Err(PassOnError("context deadline exceeded".to_owned())),
        }
    }

    async fn exchange_whole(
        &self,
        target: &Target,
        identity: &ClientIdentity,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let stream = self.connect(target).await?;
        let mut tls = rustls::ClientConfig::clone(&target.tls);
        tls.client_auth_cert_resolver = identity.0.clone();
        let tls = TlsConnector::from(Arc::new(tls));
        let stream = tls.connect(target.server_name.clone(), stream).await;
        let stream = stream.map_err(|e| Failure::Transport(tls_error(&e)))?;
        let connected = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = connected.map_err(transport)?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let answer = sender.send_request(request).await.map_err(transport)?;
        Ok(answer.map(|body| {
            let passed_on = PassedOn {
                body,
                _driver: driver,
            };
            passed_on.boxed_unsync()
        }))
    }
}

/// The body of another server's answer. Its connection ends with it.
struct PassedOn {
    body: Incoming,
    _driver: JoinSet<Result<(), hyper::Error>>,
}

impl Body for PassedOn {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => Poll::Ready(Some(Ok(frame))),
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "an answer that is passed on broke off");
                Poll::Ready(None)
            }
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
