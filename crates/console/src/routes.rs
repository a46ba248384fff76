//! Which request is answered by what. Everything under `/api/` needs the bearer token, but for the exchange of the ticket.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
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
use crate::{access, actions, assets, change, dependents, drain, exec, read, rights};

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
    let (mut head, body) = request.into_parts();
    route(state, &mut head, body)
        .await
        .unwrap_or_else(Problem::into_response)
}

async fn route(
    state: &Arc<State>,
    head: &mut Parts,
    body: Incoming,
) -> Result<Response<Body>, Problem> {
    state.sessions.check_origin(head)?;
    let path = head.uri.path().to_owned();
    let path = path.as_str();
    if head.method == Method::GET
        && let Some(asset) = assets::at(path)
    {
        return Ok(whole(
            StatusCode::OK,
            asset.content_type,
            Bytes::from_static(asset.bytes),
        ));
    }
    if head.method == Method::POST && !is_json(head) {
        return Err(Problem::ContentType);
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
    match head.method {
        Method::GET if path == "/api/exec" => {
            if state.mode == Mode::ReadOnly {
                return Err(Problem::ReadOnly);
            }
            exec::exec(state, head, &query).await
        }
        Method::GET => look(state, path, &query).await,
        Method::POST if path == "/api/stream" => Ok(stream(state, parse(body).await?)),
        Method::POST if state.mode == Mode::ReadOnly => Err(Problem::ReadOnly),
        Method::POST => act(state, path, body).await,
        _ => Err(Problem::NotFound),
    }
}

/// Requests that change nothing.
async fn look(state: &Arc<State>, path: &str, query: &Query) -> Result<Response<Body>, Problem> {
    match path {
        "/api/about" => read::about(state).await,
        "/api/object" => read::object(state, query).await,
        "/api/logs" => read::logs(state, query).await,
        "/api/time" => read::time(state, query).await,
        "/api/change" => change::change(state, query).await,
        "/api/changes" => change::changes(state, query).await,
        "/api/rights" => rights::rights(state, query).await,
        "/api/dependents" => dependents::dependents(state, query).await,
        "/api/access" => access::access(state, query).await,
        "/api/snapshots" => Ok(state.snapshots.list()),
        "/api/snapshots/compare" => change::since_snapshot(state, query).await,
        _ => Err(Problem::NotFound),
    }
}

/// Requests that change the cluster, or start another one.
async fn act(state: &Arc<State>, path: &str, body: Incoming) -> Result<Response<Body>, Problem> {
    match path {
        "/api/edit" => actions::edit(state, parse(body).await?).await,
        "/api/scale" => actions::scale(state, parse(body).await?).await,
        "/api/restart" => actions::restart(state, parse(body).await?).await,
        "/api/cordon" => actions::cordon(state, parse(body).await?).await,
        "/api/delete" => actions::delete(state, parse(body).await?).await,
        "/api/drain" => drain::drain(state, parse(body).await?).await,
        "/api/snapshots" => state.snapshots.take(parse(body).await?).await,
        "/api/snapshots/fork" => state.snapshots.fork(parse(body).await?).await,
        _ => Err(Problem::NotFound),
    }
}

/// Whether a body is announced as JSON, which a form of another page cannot do.
fn is_json(head: &Parts) -> bool {
    let announced = head.headers.get(CONTENT_TYPE);
    let announced = announced.and_then(|value| value.to_str().ok());
    announced.is_some_and(|text| text.split(';').next().map(str::trim) == Some("application/json"))
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
