//! What pages read once: who the user is, an object with its managed fields, logs, and how far the past reaches.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Call, escape};
use crate::feed::Phase;
use crate::http::{Body, Problem, json_of, pieces};
use crate::kinds::Kind;
use crate::query::Query;
use crate::state::{Mode, State};
use crate::{mask, past};

/// Pieces of a log that wait for a page that reads slowly.
const WAITING: usize = 32;
/// How long the oldest revision is believed to be the oldest.
const BELIEVED: Duration = Duration::from_secs(60);
/// Changes of the timeline that are sent at most.
const MOMENTS: usize = 5_000;

/// Who looks at what.
pub(crate) async fn about(state: &State) -> Result<Response<Body>, Problem> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let call = Call::new(
        Method::POST,
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    )
    .body("application/json", review.to_string().into());
    let connection = &state.feeds.shared.connection;
    let user = connection.json(call).await.ok();
    let version = connection
        .json(Call::new(Method::GET, "/version"))
        .await
        .ok();
    Ok(json_of(&json!({
        "cluster": state.cluster,
        "user": user.map(|review| review["status"]["userInfo"]["username"].clone()),
        "version": version.map(|version| version["gitVersion"].clone()),
        "namespace": state.namespace,
        "readOnly": state.mode == Mode::ReadOnly,
    })))
}

/// The kind that a request names.
pub(crate) async fn kind(state: &State, query: &Query) -> Result<Kind, Problem> {
    let id = query.need("kind")?;
    let unknown = || Problem::BadRequest(format!("the cluster serves no kind {id:?}"));
    state.feeds.kind(id).await.ok_or_else(unknown)
}

/// An object as the server has it now, with managed fields. Secrets are masked unless `reveal` is given.
pub(crate) async fn object(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let kind = kind(state, query).await?;
    let path = kind.object_path(query.get("ns"), name(query)?);
    let mut object = state
        .feeds
        .shared
        .connection
        .json(Call::new(Method::GET, path))
        .await?;
    if query.get("reveal").is_none() {
        mask::secret(&kind, &mut object);
    }
    Ok(json_of(&object))
}

/// The name of an object: one part of a path, and not a way out of it.
pub(crate) fn name(query: &Query) -> Result<&str, Problem> {
    let name = query.need("name")?;
    if name == "." || name == ".." {
        return Err(Problem::BadRequest(format!(
            "{name:?} is not the name of an object"
        )));
    }
    Ok(name)
}

/// The log of a container as it is written.
pub(crate) async fn logs(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let namespace = query.need("ns")?;
    let mut uri = format!(
        "/api/v1/namespaces/{}/pods/{}/log?",
        escape(namespace),
        escape(name(query)?)
    );
    for (parameter, ours) in [
        ("container", "container"),
        ("follow", "follow"),
        ("previous", "previous"),
        ("tailLines", "tail"),
        ("timestamps", "timestamps"),
    ] {
        if let Some(value) = query.get(ours) {
            uri.push_str(&format!("{parameter}={}&", escape(value)));
        }
    }
    let call = Call::new(Method::GET, uri).accept("*/*");
    let mut body = state.feeds.shared.connection.open(call).await?;
    let (page, received) = mpsc::channel::<Bytes>(WAITING);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if page.send(data).await.is_err() {
                return;
            }
        }
    });
    Ok(pieces("text/plain; charset=utf-8", received, tasks))
}

/// How far the past reaches, and what changed between two revisions.
pub(crate) async fn time(state: &Arc<State>, query: &Query) -> Result<Response<Body>, Problem> {
    let (kind, namespace) = anchor(state).ok_or(Problem::NotFound)?;
    let connection = &state.feeds.shared.connection;
    let newest = past::newest(connection, &kind, namespace.as_deref()).await?;
    let oldest = oldest(state, &kind, namespace.as_deref(), newest).await;
    let (after, until) = (query.number("after")?, query.number("until")?);
    let mut moments = state
        .feeds
        .shared
        .timeline
        .lock()
        .between(after.unwrap_or(0), until.unwrap_or(u64::MAX));
    let all = moments.len();
    moments.drain(..all.saturating_sub(MOMENTS));
    Ok(json_of(
        &json!({"oldest": oldest, "newest": newest, "moments": moments, "count": all}),
    ))
}

/// A kind that the user may list, to ask for revisions with.
fn anchor(state: &State) -> Option<(Kind, Option<String>)> {
    let live = state
        .feeds
        .open_all()
        .into_iter()
        .find_map(|feed| match feed.phase() {
            Phase::Live { namespace, .. } => Some((feed.kind.clone(), namespace)),
            _ => None,
        });
    live.or_else(|| {
        let kinds = state.feeds.kinds();
        kinds
            .iter()
            .find(|kind| kind.id == "v1/namespaces")
            .map(|kind| (kind.clone(), None))
    })
}

async fn oldest(state: &State, kind: &Kind, namespace: Option<&str>, newest: u64) -> u64 {
    let mut known = state.oldest.lock().await;
    if let Some((found, oldest)) = *known
        && found.elapsed() < BELIEVED
    {
        return oldest;
    }
    let oldest = past::oldest(&state.feeds.shared.connection, kind, namespace, newest).await;
    *known = Some((Instant::now(), oldest));
    oldest
}
