//! The HTTP client of the exporter: hyper and rustls, as everything else here, with a bound on time and answers.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long one export may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const LARGEST: usize = 1 << 20;

/// Sends from the runtime in which it was made: the exporter's own thread has none.
#[derive(Debug)]
pub(super) struct Transport {
    runtime: Handle,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Transport {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client })
    }
}

#[async_trait::async_trait]
impl HttpClient for Transport {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let exchange = async move {
            let response = client.request(request.map(Full::new)).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        // The timer, too, is made within the runtime.
        let sent = self
            .runtime
            .spawn(async move { timeout(PATIENCE, exchange).await });
        sent.await??
    }
}
