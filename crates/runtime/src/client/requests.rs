//! How long the client's requests may take, and when they are made again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use super::write::Built;
use super::{Client, ClientError};

/// How often a request is made again because the server asked for it; the same number as client-go's.
const RETRIES: usize = 10;

/// How long requests may take. A connection that is half open never ends by itself, so every request has a limit.
///
/// The limit covers the whole call: connecting, the answer with its body, and the waits that the server asks for with
/// `Retry-After`, which are honoured as long as they fit into it. The requests of informers go on for as long as the server says
/// something now and then.
///
/// ```no_run
/// use std::time::Duration;
/// use kubewright_runtime::Manager;
/// use kubewright_runtime::client::{Client, RequestPolicy};
///
/// # fn example(kube: kube::Client) {
/// let patient = RequestPolicy::new().write_timeout(Duration::from_secs(60));
/// let client = Client::builder(kube.clone()).requests(patient).build();
/// let manager = Manager::new(kube).requests(patient.silence(Duration::from_secs(60)));
/// # drop((client, manager));
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct RequestPolicy {
    pub(super) read: Duration,
    pub(super) write: Duration,
    /// That of the factory, unless it is set.
    pub(super) silence: Option<Duration>,
}

impl Default for RequestPolicy {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestPolicy {
    /// A policy that gives each read and each write 30 seconds, and informers the silence of their factory, 30 seconds as well.
    pub fn new() -> Self {
        Self {
            read: Duration::from_secs(30),
            write: Duration::from_secs(30),
            silence: None,
        }
    }

    /// Sets how long a read from the server may take; of a long list, each page.
    pub fn read_timeout(mut self, timeout: Duration) -> Self {
        self.read = timeout;
        self
    }

    /// Sets how long a write may take. A write that timed out may have happened.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write = timeout;
        self
    }

    /// Sets how long a server may say nothing while an informer opens a watch or reads a list. After that the request counts as
    /// failed and is made again. It is for informers that are made from then on.
    pub fn silence(mut self, duration: Duration) -> Self {
        self.silence = Some(duration);
        self
    }
}

/// What a request is about, for the errors that come of it.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) verb: &'static str,
    /// As in `deployments.apps`.
    pub(super) resource: &'a Arc<str>,
    /// Namespace and name; empty for a list.
    pub(super) name: &'a str,
}

/// What the server answered, if it did not refuse.
pub(super) struct Answer {
    pub(super) code: StatusCode,
    pub(super) body: Bytes,
}

impl Call<'_> {
    pub(super) fn failed(self, error: kube::Error) -> ClientError {
        ClientError::of_request(self.verb, self.resource.clone(), self.name, error)
    }

    /// Decodes an answer.
    pub(super) fn decode<T: DeserializeOwned>(self, body: &[u8]) -> Result<T, ClientError> {
        let decoded = kubewright_cache::decode(body);
        decoded.map_err(|error| self.failed(kube::Error::SerdeError(error)))
    }
}

// Requests are sent here for all kinds. What depends on the type of an object, encoding and decoding, is left to the caller, so that
// this is compiled once and not for every kind that a program writes.
impl Client {
    /// Sends a request that reads, within the time limit of reads.
    pub(super) async fn send_read(
        &self,
        call: Call<'_>,
        built: Built,
    ) -> Result<Answer, ClientError> {
        self.send(call, self.settings().requests.read, built).await
    }

    /// Sends a request that writes, within the time limit of writes, unless the lease is lost.
    pub(super) async fn send_write(
        &self,
        call: Call<'_>,
        built: Built,
    ) -> Result<Answer, ClientError> {
        // Asked by the clock: a process that was held for long finds its lease gone before it is notified.
        let fence = self.fence.as_ref();
        if fence.is_some_and(|lease| !lease.is_leading()) {
            return Err(ClientError::LeaseLost {
                verb: call.verb,
                resource: call.resource.clone(),
                name: call.name.to_owned(),
            });
        }
        let validation = self.write.field_validation;
        let built = match call.verb {
            "create" | "update" | "patch" => validation.asked_for_by(built),
            _ => built,
        };
        self.send(call, self.settings().requests.write, built).await
    }

    async fn send(
        &self,
        call: Call<'_>,
        within: Duration,
        built: Built,
    ) -> Result<Answer, ClientError> {
        let request = built.map_err(|error| call.failed(kube::Error::BuildRequest(error)))?;
        let deadline = Instant::now() + within;
        let answer = async {
            let response = ask(self.kube(), request, deadline).await?;
            let warnings = &self.shared.warnings;
            warnings.heed(call.verb, call.resource, call.name, response.headers());
            receive(response).await
        };
        match timeout_at(deadline, answer).await {
            Ok(answer) => answer.map_err(|error| call.failed(error)),
            Err(_) => Err(ClientError::Timeout {
                verb: call.verb,
                resource: call.resource.clone(),
                name: call.name.to_owned(),
                waited: within,
            }),
        }
    }
}

/// Asks, and asks again where the server says when to: any verb, since a server that says so has done nothing, as
/// client-go's `withRetry.IsNextRetry` does it.
async fn ask(
    kube: &kube::Client,
    request: Request<Vec<u8>>,
    deadline: Instant,
) -> Result<Response<Body>, kube::Error> {
    for _ in 0..RETRIES {
        let response = kube.send(request.clone().map(Body::from)).await?;
        let wait = retry_after(response.status(), response.headers());
        match wait.filter(|wait| Instant::now() + *wait < deadline) {
            Some(wait) => sleep(wait).await,
            None => return Ok(response),
        }
    }
    kube.send(request.map(Body::from)).await
}

/// How long the server wants us to wait, if it wants us to come back.
fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let busy = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.parse::<u32>();
    let wait = Duration::from_secs(u64::from(seconds.ok()?));
    busy.then_some(wait)
}

/// Reads an answer to its end. A refusal is an error.
async fn receive(response: Response<Body>) -> Result<Answer, kube::Error> {
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
    let code = head.status;
    Ok(Answer { code, body })
}
