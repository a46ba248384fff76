//! Watches: what exists, what changes, bookmarks, and a clean end.
//!
//! A watch is a cursor on the store's history, read when the client takes more. A client that does not read costs
//! nothing; when it comes back too late it is told that its version expired.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep_until};

use super::call::Call;
use super::list::Matcher;
use super::options::{InitialEventsEnd, Start, WatchOptions};
use crate::core::Core;
use crate::http::accept::Representation;
use crate::http::body::full;
use crate::http::respond::{self, Answer};
use crate::printers::{self, Headers, MetaVersion, Options};
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{At, Cursor, Delivery, Event, Record};

/// How often a bookmark is sent.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// A watch without a time-out lasts this long, and up to as much again.
const SHORTEST_DEFAULT: u64 = 30 * 60;
/// How many events are taken from the history at once.
const BATCH: usize = 128;

/// Answers with a stream of events.
pub(crate) async fn watch(call: &mut Call) -> Result<Answer, ApiError> {
    let options = WatchOptions::read(&call.query)?;
    let matcher = Matcher::new(call, &options.list)?;
    let permit = call.core.watches.enter(&call.user.name)?;
    let Beginning {
        after,
        initial,
        end,
    } = Beginning::of(call, options.start, &matcher).await?;
    // A version from the future is waited for: what happens until then is not told.
    let from = after.min(call.core.store.revision());
    let cursor = match call.served.collection.watch(from) {
        Ok(cursor) => cursor,
        Err(expired) => {
            let error = ApiError::too_old(after, expired.oldest);
            return Ok(respond::answer(
                StatusCode::OK,
                "application/json",
                full(error_frame(&error)),
            ));
        }
    };
    let timeout = options.list.timeout.unwrap_or_else(|| {
        Duration::from_secs(SHORTEST_DEFAULT + call.core.environment.below(SHORTEST_DEFAULT))
    });
    let watcher = Watcher {
        renderer: Renderer::new(call)?,
        core: call.core.clone(),
        served: call.served.clone(),
        matcher,
        after,
        initial: initial.into_iter(),
        end,
        cursor,
        batch: Vec::new(),
        bookmark: options
            .bookmarks
            .then(|| Box::pin(sleep_until(Instant::now() + BOOKMARK_EVERY))),
        deadline: Box::pin(sleep_until(Instant::now() + timeout)),
        finished: false,
        _permit: permit,
    };
    let frames = stream::unfold(watcher, |mut watcher| async move {
        let frame = watcher.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(frame)), watcher))
    });
    Ok(respond::answer(
        StatusCode::OK,
        "application/json",
        StreamBody::new(frames).boxed_unsync(),
    ))
}

/// Where a watch starts.
struct Beginning {
    /// Events up to here are not told.
    after: u64,
    /// What is there already, when the client wants to know.
    initial: Vec<Arc<Record>>,
    /// The version at which the initial events end, when the client wants to know.
    end: Option<u64>,
}

impl Beginning {
    async fn of(call: &Call, start: Start, matcher: &Matcher) -> Result<Self, ApiError> {
        let (not_older_than, marked) = match start {
            Start::After(revision) => return Ok(Self::after(revision)),
            Start::Now => return Ok(Self::after(call.core.store.revision())),
            Start::State {
                not_older_than,
                end,
            } => (not_older_than, end),
        };
        if let Some(revision) = not_older_than {
            call.core.wait_until_fresh(revision).await?;
        }
        let snapshot = call.served.collection.snapshot(At::Latest);
        let snapshot = snapshot.map_err(ApiError::internal)?;
        let records = snapshot.range("", None);
        Ok(Self {
            after: snapshot.revision(),
            initial: records.filter(|r| matcher.matches(r)).cloned().collect(),
            end: (marked == InitialEventsEnd::Marked).then(|| snapshot.revision()),
        })
    }

    fn after(revision: u64) -> Self {
        Self {
            after: revision,
            initial: Vec::new(),
            end: None,
        }
    }
}

/// One client's view of the history.
struct Watcher {
    core: Arc<Core>,
    served: Arc<Served>,
    matcher: Matcher,
    renderer: Renderer,
    /// Events up to here are not told.
    after: u64,
    initial: std::vec::IntoIter<Arc<Record>>,
    /// The version at which the initial events end, when the client wants to know.
    end: Option<u64>,
    cursor: Cursor,
    /// Events taken from the history, in reverse.
    batch: Vec<Arc<Event>>,
    bookmark: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
    finished: bool,
    _permit: WatchPermit,
}

/// What a watcher waits for.
enum Wake {
    Events(Result<(), u64>),
    Bookmark,
    End,
}

impl Watcher {
    /// The next frame; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        loop {
            if let Some(frame) = self.ready() {
                return Some(frame);
            }
            match self.wake().await {
                Wake::Events(Ok(())) => {}
                Wake::Events(Err(oldest)) => {
                    self.finished = true;
                    return Some(error_frame(&ApiError::too_old(
                        self.cursor.progress(),
                        oldest,
                    )));
                }
                Wake::Bookmark => return Some(self.bookmark_frame(self.cursor.progress(), "")),
                Wake::End => {
                    self.finished = true;
                    // A last bookmark lets the client go on from here rather than from its last event.
                    self.bookmark.as_ref()?;
                    return Some(self.bookmark_frame(self.cursor.progress(), ""));
                }
            }
        }
    }

    /// A frame that need not be waited for.
    fn ready(&mut self) -> Option<Bytes> {
        if let Some(record) = self.initial.next() {
            return Some(self.renderer.initial(&self.core, &self.served, &record));
        }
        if let Some(revision) = self.end.take() {
            return Some(self.bookmark_frame(
                revision,
                r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
            ));
        }
        while let Some(event) = self.batch.pop() {
            if event.revision() > self.after
                && let Some(delivery) = event.delivery(|record| self.matcher.matches(record))
            {
                return Some(
                    self.renderer
                        .event(&self.core, &self.served, &event, delivery),
                );
            }
        }
        None
    }

    async fn wake(&mut self) -> Wake {
        let bookmark = async {
            match &mut self.bookmark {
                Some(timer) => {
                    timer.as_mut().await;
                    timer.as_mut().reset(Instant::now() + BOOKMARK_EVERY);
                }
                None => std::future::pending().await,
            }
        };
        // The end comes first, so that a busy watch ends in time; events come before bookmarks, so that a bookmark
        // never tells of a version whose events are still waiting.
        tokio::select! {
            biased;
            () = self.core.stopping.cancelled() => Wake::End,
            () = self.deadline.as_mut() => Wake::End,
            result = self.cursor.next_batch(&mut self.batch, BATCH) => {
                self.batch.reverse();
                Wake::Events(result.map_err(|e| e.oldest))
            }
            () = bookmark => Wake::Bookmark,
        }
    }

    fn bookmark_frame(&self, revision: u64, more: &str) -> Bytes {
        let revision = revision.max(self.after);
        let (kind, api_version) = self.renderer.object_type(&self.served);
        let object = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{revision}"{more}}}}}"#
        );
        frame("BOOKMARK", object.as_bytes())
    }
}

/// Writes events in the representation that the client asked for.
enum Renderer {
    Object,
    PartialMetadata(MetaVersion),
    Table { options: Options, headers: Headers },
}

impl Renderer {
    fn new(call: &Call) -> Result<Self, ApiError> {
        Ok(match call.accept.representation {
            Representation::Object | Representation::Discovery(_) => Renderer::Object,
            Representation::PartialMetadata(version) => Renderer::PartialMetadata(version),
            Representation::Table(version) => Renderer::Table {
                options: call.table_options(version)?,
                headers: Headers::Shown,
            },
        })
    }

    /// Kind and version of what is sent.
    fn object_type(&self, served: &Served) -> (String, String) {
        match self {
            Renderer::Object => (served.resource.kind.to_string(), served.api_version.clone()),
            Renderer::PartialMetadata(version) => {
                ("PartialObjectMetadata".into(), version.api_version().into())
            }
            Renderer::Table { options, .. } => {
                ("Table".into(), options.version.api_version().into())
            }
        }
    }

    fn initial(&mut self, core: &Core, served: &Served, record: &Record) -> Bytes {
        let body = served.body(record);
        self.render(core, served, "ADDED", body)
    }

    fn event(&mut self, core: &Core, served: &Served, event: &Event, delivery: Delivery) -> Bytes {
        if matches!(self, Renderer::Object) && !served.must_revive(event.revision()) {
            return event.frame(delivery);
        }
        let body = served.present(event.body(delivery), event.revision());
        self.render(core, served, delivery.as_str(), body)
    }

    fn render(
        &mut self,
        core: &Core,
        served: &Served,
        kind: &str,
        body: Result<Bytes, ApiError>,
    ) -> Bytes {
        match body.and_then(|body| self.represent(core, served, body)) {
            Ok(object) => frame(kind, &object),
            Err(error) => error_frame(&error),
        }
    }

    fn represent(&mut self, core: &Core, served: &Served, body: Bytes) -> Result<Bytes, ApiError> {
        match self {
            Renderer::Object => Ok(body),
            Renderer::PartialMetadata(version) => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                Ok(printers::partial_metadata(&object, *version).into())
            }
            Renderer::Table { options, headers } => {
                let object: Value = serde_json::from_slice(&body).map_err(ApiError::internal)?;
                let now = core.environment.now();
                // Only the first event describes the columns.
                let headers = std::mem::replace(headers, Headers::Omitted);
                Ok(served
                    .printer
                    .single(*options, headers, &object, &body, now)
                    .into())
            }
        }
    }
}

fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(object.len() + 40);
    frame.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.into()
}

fn error_frame(error: &ApiError) -> Bytes {
    frame(
        "ERROR",
        &respond::encode_typed(respond::STATUS, &error.to_value()),
    )
}

/// Counts the watches of each user, so that one cannot take them all.
#[derive(Debug)]
pub(crate) struct Watches {
    most_per_user: usize,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Watches {
    pub(crate) fn new(most_per_user: usize) -> Self {
        Self {
            most_per_user,
            open: Arc::default(),
        }
    }

    fn enter(&self, user: &str) -> Result<WatchPermit, ApiError> {
        let mut open = self.open.lock();
        let count = open.entry(user.to_owned()).or_default();
        if *count >= self.most_per_user {
            let most = self.most_per_user;
            return Err(ApiError::too_many_requests(
                format!("more than {most} watches are open for this user"),
                1,
            ));
        }
        *count += 1;
        Ok(WatchPermit {
            user: user.to_owned(),
            open: self.open.clone(),
        })
    }

    /// How many watches are open.
    pub(crate) fn len(&self) -> usize {
        self.open.lock().values().sum()
    }
}

/// One open watch; its place is free again when this goes.
struct WatchPermit {
    user: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl Drop for WatchPermit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}
