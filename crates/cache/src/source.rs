//! The seam: where lists and watches come from, as bytes.
//!
//! Anything that can answer a list and a watch in the wire format of the Kubernetes API can feed a reflector.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;

/// A future that can be sent and named.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where objects come from.
pub trait Source: Send + Sync + 'static {
    /// Asks for a list. The chunks are the body of one list object.
    fn list(&self, request: ListRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>>;

    /// Opens a watch. The chunks are watch events as JSON lines, cut anywhere.
    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Chunks>, Failure>>;

    /// Whether it is worth asking for the initial state as a stream.
    fn streaming_list(&self) -> StreamingList {
        StreamingList::Try
    }

    /// What this is a source of, for logs.
    fn describe(&self) -> String;
}

/// A response body that arrives in chunks.
pub trait Chunks: Send {
    /// The next bytes; nothing at a clean end.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, Failure>>>;
}

/// Whether a source can stream the initial state through a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StreamingList {
    /// It is asked; where it refuses, a list is made instead.
    #[default]
    Try,
    /// It cannot; lists are used.
    No,
}

/// What is asked of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListRequest {
    /// Empty for the newest state, `0` for any, else a state not older than this.
    pub resource_version: String,
    /// The largest number of items in an answer; 0 for no limit.
    pub limit: u32,
    /// Where to go on.
    pub continue_token: String,
}

/// What is asked of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WatchRequest {
    /// Changes after this version are sent.
    pub resource_version: String,
    /// Whether the present state is sent first.
    pub initial: Initial,
    /// How long the server is to keep it open.
    pub timeout: Duration,
}

/// Whether a watch starts with the present state. A source has to know every way, so that these can be matched without a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initial {
    /// The watch sends only changes.
    #[default]
    None,
    /// Everything that exists, then a bookmark that says so, then changes.
    Events,
}

/// Why a list or a watch failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
#[non_exhaustive]
pub struct Failure {
    /// What it means for what is done next.
    pub kind: FailureKind,
    /// What the server or the transport reported, for people.
    pub message: String,
    /// How long to wait at least, if the server asked for that.
    pub retry_after: Option<Duration>,
}

/// Failures by what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The version is too old (410).
    Expired,
    /// The server has not reached that version yet.
    VersionTooLarge,
    /// The server asks for patience (429).
    TooManyRequests,
    /// Nobody answers at the address.
    ConnectionRefused,
    /// Not logged in or not allowed (401, 403).
    Forbidden,
    /// The server knows no such resource (404).
    NotFound,
    /// The server does not take the question (400, 405, 406, 415, 422).
    Invalid,
    /// The server failed (500).
    Internal,
    /// The connection broke in the middle of an answer.
    Interrupted,
    /// The answer cannot be parsed.
    Malformed,
    /// A watch ended within a second without an event.
    ShortWatch,
    /// Nothing came for too long.
    Silence,
    /// Any failure that is not listed here.
    Other,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Reads the `Status` that comes with an HTTP code, or in an error event with code 0.
    pub fn from_status(code: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let code = if code == 0 { status.code } else { code };
        let suggested = status.details.retry_after_seconds.map(Duration::from_secs);
        let message = if status.message.is_empty() {
            String::from_utf8_lossy(&body[..body.len().min(256)]).into_owned()
        } else {
            status.message.clone()
        };
        Self {
            kind: status.kind(code),
            message,
            retry_after: retry_after.or(suggested),
        }
    }

    /// Whether waiting for the first state is pointless until somebody changes something.
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, FailureKind::Forbidden | FailureKind::NotFound)
    }
}

/// The parts of a `Status` that decide anything.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: u16,
    reason: String,
    message: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    fn kind(&self, code: u16) -> FailureKind {
        let causes = &self.details.causes;
        if causes.iter().any(|c| c.reason == "ResourceVersionTooLarge")
            || (code == 504 && self.message.contains("Too large resource version"))
        {
            return FailureKind::VersionTooLarge;
        }
        match (code, self.reason.as_str()) {
            (410, _) | (_, "Expired" | "Gone") => FailureKind::Expired,
            (429, _) => FailureKind::TooManyRequests,
            (401 | 403, _) => FailureKind::Forbidden,
            (404, _) => FailureKind::NotFound,
            (400 | 405 | 406 | 415 | 422, _) => FailureKind::Invalid,
            (500, _) => FailureKind::Internal,
            _ => FailureKind::Other,
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the version expired",
            Self::VersionTooLarge => "the server has not reached the version",
            Self::TooManyRequests => "too many requests",
            Self::ConnectionRefused => "the connection was refused",
            Self::Forbidden => "not allowed",
            Self::NotFound => "not found",
            Self::Invalid => "the request was not understood",
            Self::Internal => "the server failed",
            Self::Interrupted => "the connection broke",
            Self::Malformed => "the answer was not understood",
            Self::ShortWatch => "the watch ended at once",
            Self::Silence => "nothing came for too long",
            Self::Other => "failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_for_what_it_means() {
        let large = br#"{"code":504,"reason":"Timeout","message":"Timeout: Too large resource version: 9, current: 3","details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}}"#;
        let cases: &[(u16, &[u8], FailureKind)] = &[
            (
                0,
                br#"{"code":410,"reason":"Expired","message":"m"}"#,
                FailureKind::Expired,
            ),
            (410, b"gone", FailureKind::Expired),
            (504, large, FailureKind::VersionTooLarge),
            (504, b"upstream", FailureKind::Other),
            (429, b"{}", FailureKind::TooManyRequests),
            (403, br#"{"reason":"Forbidden"}"#, FailureKind::Forbidden),
            (422, b"{}", FailureKind::Invalid),
            (500, b"{}", FailureKind::Internal),
        ];
        for (code, body, kind) in cases {
            assert_eq!(
                Failure::from_status(*code, body, None).kind,
                *kind,
                "{code}"
            );
        }
        let suggested = Failure::from_status(504, large, None).retry_after;
        assert_eq!(suggested, Some(Duration::from_secs(1)));
    }
}
