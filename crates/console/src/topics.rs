//! What a page can subscribe to. Each topic is a task that writes messages to the page's stream, one JSON object a line.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubewright_cache::Key;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::feed::{Feed, Phase, Update};
use crate::kinds::Kind;
use crate::state::State;
use crate::world::World;
use crate::{mask, overview, tree};

/// Rows in one message of a first state.
const CHUNK: usize = 1_000;
/// Changes in one message.
const BATCH: usize = 500;
/// How long a first state is waited for before a page shows that it takes longer.
const FIRST: Duration = Duration::from_millis(1_500);
/// Pause between two states of something that is computed anew.
const PAUSE: Duration = Duration::from_millis(80);
/// How often operators are asked.
const MIND: Duration = Duration::from_millis(400);

/// What a page wants to see.
#[derive(Debug, Deserialize)]
pub(crate) struct Subscription {
    #[serde(default)]
    topics: Vec<Topic>,
    /// The revision to look at; the present, unless given.
    #[serde(default)]
    at: Option<u64>,
}

/// Topics that a page may have at once.
const MOST: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(tag = "topic", rename_all = "lowercase")]
enum Topic {
    Kinds,
    Overview,
    Mind,
    Table {
        kind: String,
    },
    Object {
        kind: String,
        #[serde(default)]
        ns: Option<String>,
        name: String,
    },
}

/// Where messages go. A closed one means that the page is gone.
type Page = mpsc::Sender<Bytes>;
/// The page is gone.
struct Left;

impl Subscription {
    /// Starts the topics in a set of tasks that ends them when it is dropped.
    pub(crate) fn start(self, state: &Arc<State>, page: &Page) -> tokio::task::JoinSet<()> {
        let mut tasks = tokio::task::JoinSet::new();
        for topic in self.topics.into_iter().take(MOST) {
            let (state, page, at) = (state.clone(), page.clone(), self.at);
            tasks.spawn(async move {
                // A page that left needs nothing more.
                let _ = follow(&state, &page, topic, at).await;
            });
        }
        let page = page.clone();
        tasks.spawn(async move {
            while page
                .send(Bytes::from_static(b"{\"t\":\"alive\"}\n"))
                .await
                .is_ok()
            {
                sleep(Duration::from_secs(15)).await;
            }
        });
        tasks
    }
}

async fn follow(
    state: &Arc<State>,
    page: &Page,
    topic: Topic,
    at: Option<u64>,
) -> Result<(), Left> {
    match (topic, at) {
        (Topic::Kinds, _) => follow_kinds(state, page).await,
        (Topic::Mind, _) => follow_mind(state, page).await,
        (Topic::Overview, None) => follow_overview(state, page).await,
        (Topic::Overview, Some(revision)) => past_overview(state, page, revision).await,
        (Topic::Table { kind }, at) => match (known(state, page, &kind).await?, at) {
            (None, _) => Ok(()),
            (Some(kind), None) => follow_table(&state.feeds.open(&kind), page).await,
            (Some(kind), Some(revision)) => past_table(state, page, &kind, revision).await,
        },
        (Topic::Object { kind, ns, name }, at) => {
            let key = ns.map_or_else(|| Key::cluster(&name), |ns| Key::new(&ns, &name));
            match (known(state, page, &kind).await?, at) {
                (None, _) => Ok(()),
                (Some(kind), None) => follow_object(state, page, &kind, &key).await,
                (Some(kind), Some(revision)) => {
                    past_object(state, page, (&kind, &key), revision).await
                }
            }
        }
    }
}

async fn send(page: &Page, message: &Value) -> Result<(), Left> {
    let mut line = message.to_string();
    line.push('\n');
    page.send(line.into()).await.map_err(|_| Left)
}

/// Finds the kind of an id. If the cluster does not serve it, the page gets the reason.
async fn known(state: &State, page: &Page, id: &str) -> Result<Option<Kind>, Left> {
    let kind = state.feeds.kind(id).await;
    if kind.is_none() {
        let why = state.feeds.trouble.lock().clone();
        let why = why.unwrap_or_else(|| "the cluster does not serve this kind".to_owned());
        send(
            page,
            &json!({"t": "table", "kind": id, "reset": true, "columns": [], "rows": [],
            "state": {"phase": "refused", "message": why}}),
        )
        .await?;
        send(page, &json!({"t": "object", "kind": id, "refused": why})).await?;
    }
    Ok(kind)
}

async fn follow_kinds(state: &State, page: &Page) -> Result<(), Left> {
    let mut kinds = state.feeds.kind_changes();
    loop {
        let now = kinds.borrow_and_update().clone();
        let trouble = state.feeds.trouble.lock().clone();
        if !now.is_empty() || trouble.is_some() {
            send(
                page,
                &json!({"t": "kinds", "kinds": *now, "trouble": trouble}),
            )
            .await?;
        }
        if now.is_empty() {
            let _ = tokio::time::timeout(Duration::from_secs(1), kinds.changed()).await;
        } else if kinds.changed().await.is_err() {
            return Ok(());
        }
    }
}

async fn follow_overview(state: &State, page: &Page) -> Result<(), Left> {
    let mut ticks = state.feeds.shared.ticks.subscribe();
    let mut kinds = state.feeds.kind_changes();
    loop {
        // Kinds that came since the last look join in.
        state.feeds.open_all();
        let tick = *ticks.borrow_and_update();
        kinds.borrow_and_update();
        page.send(state.overview(tick)).await.map_err(|_| Left)?;
        sleep(PAUSE * 3).await;
        tokio::select! {
            changed = ticks.changed() => changed.map_err(|_| Left)?,
            changed = kinds.changed() => changed.map_err(|_| Left)?,
        }
    }
}

async fn past_overview(state: &State, page: &Page, revision: u64) -> Result<(), Left> {
    let past = state.pasts.at(revision);
    match past
        .read_all(&state.feeds.shared.connection, state.tree_kinds())
        .await
    {
        Ok(()) => {
            let mut message = overview::of(&*past);
            message["t"] = "overview".into();
            message["at"] = revision.into();
            send(page, &message).await
        }
        Err(error) => send(page, &json!({"t": "past", "refused": error})).await,
    }
}

async fn past_table(state: &State, page: &Page, kind: &Kind, revision: u64) -> Result<(), Left> {
    let phase = state.feeds.open(kind).phase();
    let past = state.pasts.at(revision);
    match past
        .read(&state.feeds.shared.connection, (kind, &phase))
        .await
    {
        Ok(read) => {
            let rows = read.rows.iter().map(|row| row.json.clone()).collect();
            send_table(page, kind, (&read.columns, &read.phase), rows).await
        }
        Err(error) => send(page, &json!({"t": "past", "refused": error})).await,
    }
}

async fn past_object(
    state: &State,
    page: &Page,
    (kind, key): (&Kind, &Key),
    revision: u64,
) -> Result<(), Left> {
    let past = state.pasts.at(revision);
    let mut kinds = state.tree_kinds();
    if let Some(events) = state.feeds.kinds().iter().find(|kind| kind.is("", "Event")) {
        kinds.push((events.clone(), state.feeds.open(events).phase()));
    }
    match past.read_all(&state.feeds.shared.connection, kinds).await {
        Ok(()) => send(page, &object_message(&*past, kind, key)).await,
        Err(error) => send(page, &json!({"t": "past", "refused": error})).await,
    }
}

async fn follow_object(state: &State, page: &Page, kind: &Kind, key: &Key) -> Result<(), Left> {
    let feed = state.feeds.open(kind);
    if let Some(events) = state.feeds.kinds().iter().find(|kind| kind.is("", "Event")) {
        state.feeds.open(events);
    }
    feed.settled(FIRST * 4).await;
    let mut ticks = state.feeds.shared.ticks.subscribe();
    let mut last = Value::Null;
    loop {
        state.feeds.open_all();
        ticks.borrow_and_update();
        let mut message = object_message(&*state.feeds, kind, key);
        if let Phase::Refused { message: why } = feed.phase() {
            message["refused"] = why.into();
        }
        if message != last {
            send(page, &message).await?;
            last = message;
        }
        sleep(PAUSE).await;
        ticks.changed().await.map_err(|_| Left)?;
    }
}

/// A message with the object, its events and its tree. The object is left out if it does not exist.
fn object_message(world: &dyn World, kind: &Kind, key: &Key) -> Value {
    let mut found = None;
    world.each(&mut |collection| {
        if collection.kind.id == kind.id {
            found = collection.rows.get(key).cloned();
        }
    });
    let Some(row) = found else {
        return json!({"t": "object", "kind": kind.id, "key": key.as_str(), "object": null});
    };
    let mut object = row.value(kind);
    mask::secret(kind, &mut object);
    json!({
        "t": "object", "kind": kind.id, "key": key.as_str(), "object": object,
        "health": row.verdict.health, "why": row.verdict.sentence,
        "events": tree::events(world, &row.uid), "tree": tree::around(world, &kind.id, key),
    })
}

async fn follow_table(feed: &Feed, page: &Page) -> Result<(), Left> {
    loop {
        let mut changes = feed.subscribe();
        let mut phases = feed.phases();
        feed.settled(FIRST).await;
        let phase = phases.borrow_and_update().clone();
        let rows = feed.with(|rows| rows.iter().map(|row| row.json.clone()).collect());
        let mut columns = feed.columns();
        send_table(page, &feed.kind, (&columns, &phase), rows).await?;
        loop {
            let first = tokio::select! {
                changed = phases.changed() => {
                    changed.map_err(|_| Left)?;
                    break;
                }
                received = changes.recv() => match received {
                    Ok(update) => update,
                    // Whoever is too far behind gets everything anew.
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Ok(()),
                },
            };
            let mut operations = vec![first];
            let mut lagged = false;
            while operations.len() < BATCH {
                match changes.try_recv() {
                    Ok(update) => operations.push(update),
                    Err(TryRecvError::Lagged(_)) => {
                        lagged = true;
                        break;
                    }
                    Err(_) => break,
                }
            }
            if lagged || !Arc::ptr_eq(&columns, &feed.columns()) && *columns != *feed.columns() {
                break;
            }
            columns = feed.columns();
            page.send(changes_message(&feed.kind, &operations))
                .await
                .map_err(|_| Left)?;
        }
    }
}

fn changes_message(kind: &Kind, operations: &[Update]) -> Bytes {
    let mut line = format!(r#"{{"t":"changes","kind":{},"ops":["#, json!(kind.id)).into_bytes();
    for (at, operation) in operations.iter().enumerate() {
        if at > 0 {
            line.push(b',');
        }
        match operation {
            Update::Put(row) => line.extend_from_slice(row),
            Update::Remove(key) => {
                line.extend_from_slice(json!(key.as_str()).to_string().as_bytes())
            }
        }
    }
    line.extend_from_slice(b"]}\n");
    line.into()
}

async fn send_table(
    page: &Page,
    kind: &Kind,
    (columns, phase): (&[crate::table::Column], &Phase),
    rows: Vec<Bytes>,
) -> Result<(), Left> {
    let total = rows.len();
    let chunks = rows
        .chunks(CHUNK)
        .map(Some)
        .chain(rows.is_empty().then_some(None));
    for (at, chunk) in chunks.enumerate() {
        let head = json!({
            "t": "table", "kind": kind.id, "reset": at == 0, "columns": columns, "state": phase, "total": total,
        });
        let head = head.to_string();
        let mut line = head.as_bytes()[..head.len() - 1].to_vec();
        line.extend_from_slice(br#","rows":["#);
        line.extend_from_slice(&chunk.unwrap_or_default().join(&b","[..]));
        line.extend_from_slice(b"]}\n");
        page.send(line.into()).await.map_err(|_| Left)?;
    }
    Ok(())
}

async fn follow_mind(state: &State, page: &Page) -> Result<(), Left> {
    let mut last = Value::Null;
    loop {
        let message = json!({"t": "mind", "operators": state.minds.ask(&state.feeds.shared.connection).await});
        if message != last {
            send(page, &message).await?;
            last = message;
        }
        sleep(MIND).await;
    }
}
