//! Which request is answered by what. Everything under `/api/` needs the bearer token, but for the exchange of the ticket.

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

use crate::http::{Body, Problem, json_of, pieces, whole};
use crate::query::Query;
use crate::state::{Mode, State};
use crate::topics::Subscription;
use crate::{assets, read};

/// The largest body that a page may send: an object with room for its quotes.
const LARGEST: usize = 8 << 20;
/// Messages that wait for a page that reads slowly.
const WAITING: usize = 64;

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
async fn parse<T: DeserializeOwned>(body: Incoming) -> Result<T, Problem> {
    let read = Limited::new(body, LARGEST).collect().await;
    let read = read
        .map_err(|error| Problem::BadRequest(format!("the request could not be read: {error}")))?;
    serde_json::from_slice(&read.to_bytes())
        .map_err(|error| Problem::BadRequest(format!("the request is not understood: {error}")))
}
