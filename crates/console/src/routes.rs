//! Which request is answered by what. Everything under `/api/` needs the bearer token, but for the exchange of the ticket.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::mpsc;

use crate::console::{Mode, State};
use crate::http::{Body, Problem, json_of, pieces, whole};
use crate::topics::Subscription;
use crate::{assets, read};

/// The largest body that a page may send: an object with room for its quotes.
const LARGEST: usize = 8 << 20;
/// Messages that wait for a page that reads slowly.
const WAITING: usize = 64;

/// The parameters of a request.
pub(crate) struct Query(BTreeMap<String, String>);

#[derive(Deserialize)]
struct Ticket {
    ticket: String,
}

/// Answers a request, whoever sent it.
pub(crate) async fn answer(state: &Arc<State>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    route(state, &head, body)
        .await
        .unwrap_or_else(Problem::into_response)
}

async fn route(
    state: &Arc<State>,
    head: &Parts,
    body: Incoming,
) -> Result<Response<Body>, Problem> {
    state.sessions.check_origin(head)?;
    let path = head.uri.path();
    if head.method == Method::GET
        && let Some(asset) = assets::at(path)
    {
        return Ok(whole(
            StatusCode::OK,
            asset.content_type,
            Bytes::from_static(asset.bytes),
        ));
    }
    if (&head.method, path) == (&Method::POST, "/api/session") {
        let ticket: Ticket = parse(body).await?;
        let bearer = state.sessions.exchange(&ticket.ticket)?;
        return Ok(json_of(&json!({"bearer": bearer})));
    }
    if !path.starts_with("/api/") {
        return Err(Problem::NotFound);
    }
    state.sessions.check_bearer(head)?;
    let query = Query::of(head);
    match (&head.method, path) {
        (&Method::GET, "/api/about") => read::about(state).await,
        (&Method::GET, "/api/object") => read::object(state, &query).await,
        (&Method::GET, "/api/logs") => read::logs(state, &query).await,
        (&Method::GET, "/api/time") => read::time(state, &query).await,
        (&Method::POST, "/api/stream") => Ok(stream(state, parse(body).await?)),
        (&Method::POST, _) if state.mode == Mode::ReadOnly => Err(Problem::ReadOnly),
        _ => Err(Problem::NotFound),
    }
}

fn stream(state: &Arc<State>, subscription: Subscription) -> Response<Body> {
    let (page, messages) = mpsc::channel(WAITING);
    let tasks = subscription.start(state, &page);
    pieces("application/x-ndjson", messages, tasks)
}

/// Reads a body of bounded size as JSON.
pub(crate) async fn parse<T: DeserializeOwned>(body: Incoming) -> Result<T, Problem> {
    let read = Limited::new(body, LARGEST).collect().await;
    let read = read
        .map_err(|error| Problem::BadRequest(format!("the request could not be read: {error}")))?;
    serde_json::from_slice(&read.to_bytes())
        .map_err(|error| Problem::BadRequest(format!("the request is not understood: {error}")))
}

impl Query {
    fn of(head: &Parts) -> Self {
        let pairs = head
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        Self(
            pairs
                .map(|(name, value)| (unescape(name), unescape(value)))
                .collect(),
        )
    }

    /// A parameter, if it is there and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// A parameter that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<&str, Problem> {
        self.get(name)
            .ok_or_else(|| Problem::BadRequest(format!("the parameter {name} is missing")))
    }

    /// A parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let wrong = |_| Problem::BadRequest(format!("the parameter {name} is not a number"));
        self.get(name)
            .map(|text| text.parse().map_err(wrong))
            .transpose()
    }
}

fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match (
            bytes[at],
            digits.and_then(|pair| u8::from_str_radix(pair, 16).ok()),
        ) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 3;
            }
            (b'+', _) => {
                plain.push(b' ');
                at += 1;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_unescaped() {
        for (escaped, plain) in [
            ("a%20b", "a b"),
            ("a+b", "a b"),
            ("%", "%"),
            ("%e4%zz", "\u{fffd}%zz"),
            ("%0A", "\n"),
        ] {
            assert_eq!(unescape(escaped), plain, "{escaped}");
        }
    }
}
