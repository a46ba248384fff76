//! What a change changed: an object at two revisions, and all objects that differ between two moments.

use http::{Method, Response};
use serde_json::{Value, json};

use crate::cluster::{Call, ClusterError, escape};
use crate::compare::compare;
use crate::http::{Body, Problem, json_of};
use crate::kinds::Kind;
use crate::past::Past;
use crate::query::Query;
use crate::state::State;
use crate::{mask, read};

/// An object before and after a revision, or between two of them. One that did not exist is null.
///
/// # Errors
/// When the history does not reach that far, or the user may not see the object.
pub(crate) async fn change(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let kind = read::kind(state, query).await?;
    let missing = || Problem::BadRequest("the parameter to is missing".to_owned());
    let to = query.number("to")?.ok_or_else(missing)?;
    let from = query.number("from")?.unwrap_or(to.saturating_sub(1));
    let before = at(state, (&kind, query), from).await?;
    let after = at(state, (&kind, query), to).await?;
    Ok(json_of(&json!({"before": before, "after": after})))
}

/// The object at a revision, by an exact list of one name.
async fn at(
    state: &State,
    (kind, query): (&Kind, &Query),
    revision: u64,
) -> Result<Value, Problem> {
    let name = escape(&format!("metadata.name={}", read::name(query)?));
    let uri = format!(
        "{}?fieldSelector={name}&resourceVersion={revision}&resourceVersionMatch=Exact",
        kind.path(query.get("ns"))
    );
    let list = state
        .feeds
        .shared
        .connection
        .json(Call::new(Method::GET, uri))
        .await?;
    let mut object = list["items"][0].clone();
    if let Some(fields) = object.as_object_mut() {
        fields
            .entry("kind")
            .or_insert_with(|| kind.kind.as_str().into());
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            // They change with every write and say nothing of it.
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    mask::secret(kind, &mut object);
    Ok(object)
}

/// All objects that differ between two revisions.
///
/// # Errors
/// When the history does not reach that far.
pub(crate) async fn changes(state: &State, query: &Query) -> Result<Response<Body>, Problem> {
    let missing = || Problem::BadRequest("the parameters from and to are needed".to_owned());
    let from = query.number("from")?.ok_or_else(missing)?;
    let to = query.number("to")?.ok_or_else(missing)?;
    let connection = &state.feeds.shared.connection;
    let (before, after) = (state.pasts.at(from), state.pasts.at(to));
    let read = async |past: &crate::past::Past| -> Result<(), ClusterError> {
        past.read_all(connection, state.tree_kinds()).await
    };
    read(&before).await?;
    read(&after).await?;
    Ok(json_of(&compare(&*before, &*after)))
}

/// Answers what differs between a snapshot and the present.
pub(crate) async fn since_snapshot(
    state: &State,
    query: &Query,
) -> Result<Response<Body>, Problem> {
    let snapshot = state.snapshots.connection(query.need("name")?)?;
    let then = Past::present();
    then.read_all(&snapshot, state.tree_kinds()).await?;
    let now = Past::present();
    let connection = &state.feeds.shared.connection;
    now.read_all(connection, state.tree_kinds()).await?;
    Ok(json_of(&compare(&then, &now)))
}
