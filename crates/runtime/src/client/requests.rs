//! How long the client's requests may take, and when they are made again.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::{ClientError, Object, Objects};

/// How often a request is made again because the server asked for it; the same number as client-go's.
const RETRIES: usize = 10;

/// How long requests may take. A connection that is half open never ends by itself, so every request has a limit.
///
/// The limit covers the whole call: connecting, the answer with its body, and the waits that the server asks for with
/// `Retry-After`, which are honoured as long as they fit into it. Informers have limits of their own.
///
/// ```no_run
/// use std::time::Duration;
/// use kubewright_runtime::client::{Client, RequestPolicy};
///
/// # fn example(kube: kube::Client) {
/// let patient = RequestPolicy::new().write_timeout(Duration::from_secs(60));
/// let client = Client::builder(kube).requests(patient).build();
/// # drop(client);
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct RequestPolicy {
    pub(super) read: Duration,
    pub(super) write: Duration,
}

impl Default for RequestPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestPolicy {
    /// A policy that gives each read and each write 30 seconds.
    pub fn new() -> Self {
        Self {
            read: Duration::from_secs(30),
            write: Duration::from_secs(30),
        }
    }

    /// Sets how long a read from the server may take.
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.read = timeout;
        self
    }

    /// Sets how long a write may take. A write that timed out may have happened.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write = timeout;
        self
    }
}

impl<K: Object> Objects<K> {
    /// Sends a request and decodes the answer, within a time limit.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        name: &str,
        within: Duration,
        request: Request<Vec<u8>>,
    ) -> Result<(StatusCode, T), ClientError> {
        let deadline = Instant::now() + within;
        let answer = timeout_at(deadline, ask(self.client.kube(), request, deadline)).await;
        match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.failed(verb, name, error)),
            Err(_) => Err(ClientError::Timeout {
                verb,
                resource: self.form.entry.name.clone(),
                name: name.to_owned(),
                waited: within,
            }),
        }
    }
}

/// Asks, and asks again where the server says when to: any verb, since a server that says so has done nothing, as
/// client-go's `withRetry.IsNextRetry` does it.
async fn ask<T: DeserializeOwned>(
    kube: &kube::Client,
    request: Request<Vec<u8>>,
    deadline: Instant,
) -> Result<(StatusCode, T), kube::Error> {
    for _ in 0..RETRIES {
        let response = kube.send(request.clone().map(Body::from)).await?;
        let wait = retry_after(response.status(), response.headers());
        match wait.filter(|wait| Instant::now() + *wait < deadline) {
            Some(wait) => sleep(wait).await,
            None => return decode(response).await,
        }
    }
    decode(kube.send(request.map(Body::from)).await?).await
}

/// How long the server wants us to wait, if it wants us to come back.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse::<u32>();
    let wait = Duration::from_secs(u64::from(seconds.ok()?));
    busy.then_some(wait)
}

async fn decode<T: DeserializeOwned>(
    response: Response<Body>,
) -> Result<(StatusCode, T), kube::Error> {
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    if head.status.is_client_error() || head.status.is_server_error() {
        // A proxy or an overloaded server answers with text.
        let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body);
            let reason = head.status.canonical_reason().unwrap_or_default();
            Status::failure(text.trim(), reason).with_code(head.status.as_u16())
        });
        return Err(kube::Error::Api(status.boxed()));
    }
    let answer = kubewright_cache::decode(&body).map_err(kube::Error::SerdeError)?;
    Ok((head.status, answer))
}
