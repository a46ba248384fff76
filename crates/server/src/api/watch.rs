//! Watches: what exists, what changes, bookmarks, and a clean end.
//!
//! A watch is a cursor on the store's history, read when the client takes more. A client that does not read costs
//! nothing; when it comes back too late it gets the error that its version expired.

mod bookmarks;
mod render;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::StatusCode;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::flow::WatchPermit;
use bookmarks::Bookmarks;
use render::{Framing, Renderer};

use super::call::Call;
use super::matcher::Matcher;
use super::options::{InitialEventsEnd, Start, WatchOptions};
use crate::core::Core;
use crate::http::body::full;
use crate::http::respond::{self, Answer};
use crate::resource::Served;
use crate::status::ApiError;
use crate::storage::{At, Cursor, Delivery, Event, Record};

/// A watch without a time-out lasts this long, and up to as much again.
const SHORTEST_DEFAULT: u64 = 30 * 60;
/// How many events are taken from the history at once.
const BATCH: usize = 128;

/// Answers with a stream of events.
pub(crate) async fn watch(call: &Call) -> Result<Answer, ApiError> {
    let options = WatchOptions::read(&call.query)?;
    let matcher = Matcher::new(call, &options.list)?;
    let permit = call.core.watches.enter(&call.user.name)?;
    let Beginning {
        after,
        initial,
        end,
    } = Beginning::of(call, options.start, &matcher).await?;
    let framing = Framing::of(call);
    // A version from the future is waited for: what happens until then is not sent.
    let from = after.min(call.core.store.revision());
    let cursor = match call.served.collection.watch(from) {
        Ok(cursor) => cursor,
        Err(expired) => {
            let error = ApiError::too_old(after, expired.oldest);
            return Ok(respond::answer(
                StatusCode::OK,
                framing.content_type(),
                full(framing.error(&error)),
            ));
        }
    };
    let timeout = options.list.timeout.unwrap_or_else(|| {
        Duration::from_secs(SHORTEST_DEFAULT + call.core.environment.below(SHORTEST_DEFAULT))
    });
    let watcher = Watcher {
        renderer: Renderer::new(call)?,
        framing,
        core: call.core.clone(),
        served: call.served.clone(),
        matcher,
        after,
        initial: initial.into_iter(),
        end,
        cursor,
        batch: Vec::new(),
        bookmark: options.bookmarks.then(|| Bookmarks::new(Instant::now())),
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
        framing.content_type(),
        StreamBody::new(frames).boxed_unsync(),
    ))
}

/// Where a watch starts.
struct Beginning {
    /// Events up to here are not sent.
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
        let slices = &call.core.flow.slices;
        let initial = slices.filter(records, |r| matcher.may_match(r)).await;
        let initial = initial.into_iter().cloned().collect();
        let initial = matcher.decide(&call.core.converter, initial).await?;
        Ok(Self {
            after: snapshot.revision(),
            initial,
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
    framing: Framing,
    /// Events up to here are not sent.
    after: u64,
    initial: std::vec::IntoIter<Arc<Record>>,
    /// The version at which the initial events end, when the client wants to know.
    end: Option<u64>,
    cursor: Cursor,
    /// Events taken from the history, in reverse.
    batch: Vec<Arc<Event>>,
    bookmark: Option<Bookmarks>,
    deadline: Pin<Box<Sleep>>,
    finished: bool,
    _permit: WatchPermit,
}

/// What a watcher has to tell at once.
enum Ready {
    Frame(Bytes),
    /// An event of this kind with an object that was stored at a revision and is to be converted.
    Convert(&'static str, Bytes, u64),
    /// An event about an object that has to be converted to see whether it matches.
    Decide(Arc<Event>),
}

/// What a watcher waits for.
enum Wake {
    Events(Result<(), u64>),
    Bookmark,
    /// The definition was changed or removed.
    Redefined,
    End,
}

impl Watcher {
    /// The next frame; none when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        loop {
            match self.ready() {
                Some(Ready::Frame(frame)) => return Some(frame),
                Some(Ready::Convert(kind, body, revision)) => {
                    return Some(self.convert(kind, body, revision).await);
                }
                Some(Ready::Decide(event)) => match self.decide(&event).await {
                    Some(frame) => return Some(frame),
                    None => continue,
                },
                None if self.finished => return None,
                None => {}
            }
            match self.wake().await {
                Wake::Events(Ok(())) => {}
                Wake::Events(Err(oldest)) => {
                    self.finished = true;
                    let error = ApiError::too_old(self.cursor.progress(), oldest);
                    return Some(self.framing.error(&error));
                }
                Wake::Redefined => {
                    self.finished = true;
                    return None;
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

    /// What need not be waited for, but for a webhook.
    fn ready(&mut self) -> Option<Ready> {
        if let Some(record) = self.initial.next() {
            return Some(self.object("ADDED", record.body().clone(), record.revision()));
        }
        if let Some(revision) = self.end.take() {
            return Some(Ready::Frame(self.bookmark_frame(
                revision,
                r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
            )));
        }
        while let Some(event) = self.batch.pop() {
            if self.is_over(event.revision()) {
                self.batch.clear();
                self.finished = true;
                return None;
            }
            let concerns = event.revision() > self.after;
            if concerns && self.matcher.is_event_undecided(&event) {
                return Some(Ready::Decide(event));
            }
            if concerns
                && let Some(delivery) = event.delivery(|record| self.matcher.may_match(record))
            {
                return Some(self.event(&event, delivery));
            }
            self.pass_by();
        }
        None
    }

    /// An event does not concern the client: its next bookmark comes soon.
    fn pass_by(&mut self) {
        if let Some(bookmark) = &mut self.bookmark {
            bookmark.hasten();
        }
    }

    /// The frame about an object that is converted first.
    async fn convert(&mut self, kind: &str, body: Bytes, revision: u64) -> Bytes {
        let converter = &self.core.converter;
        let body = converter.present(&self.served, body, revision).await;
        self.render(kind, body)
    }

    /// The frame of an event, if it concerns the client, which is seen after a conversion. The watch ends when that
    /// fails: the client would miss the event.
    async fn decide(&mut self, event: &Event) -> Option<Bytes> {
        let delivery = match self.delivery(event).await {
            Ok(delivery) => delivery,
            Err(error) => {
                self.finished = true;
                return Some(self.framing.error(&error));
            }
        };
        let Some(delivery) = delivery else {
            self.pass_by();
            return None;
        };
        match self.event(event, delivery) {
            Ready::Frame(frame) => Some(frame),
            Ready::Convert(kind, body, revision) => Some(self.convert(kind, body, revision).await),
            Ready::Decide(_) => None,
        }
    }

    async fn delivery(&self, event: &Event) -> Result<Option<Delivery>, ApiError> {
        let (matcher, converter) = (&self.matcher, &self.core.converter);
        let matched = match event.previous() {
            Some(previous) => matcher.matches(converter, previous).await?,
            None => false,
        };
        let matches = matcher.matches(converter, event.record()).await?;
        let is_new = |record: &Record| record.revision() == event.revision();
        Ok(event.delivery(|record| if is_new(record) { matches } else { matched }))
    }

    /// Whether the definition was changed or removed before a revision. What came later may be of another version,
    /// scope or kind than this watch shows.
    fn is_over(&self, revision: u64) -> bool {
        let definition = self.served.definition.as_ref();
        let ended_at = definition.and_then(|definition| definition.ended_at());
        ended_at.is_some_and(|ended_at| revision > ended_at)
    }

    async fn wake(&mut self) -> Wake {
        let redefined = async {
            match &self.served.definition {
                Some(definition) => definition.ended().await,
                None => std::future::pending().await,
            }
        };
        let bookmark = async {
            match &mut self.bookmark {
                Some(bookmark) => bookmark.due().await,
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
            // After the events: those from before the change are still sent.
            () = redefined => Wake::Redefined,
            () = bookmark => Wake::Bookmark,
        }
    }

    fn bookmark_frame(&self, revision: u64, more: &str) -> Bytes {
        let revision = revision.max(self.after);
        let (kind, api_version) = self.renderer.object_type(&self.served);
        let object = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{revision}"{more}}}}}"#
        );
        self.framing.frame("BOOKMARK", object.as_bytes())
    }

    fn event(&mut self, event: &Event, delivery: Delivery) -> Ready {
        let as_stored = matches!(self.renderer, Renderer::Object) && self.framing == Framing::Json;
        if as_stored && !self.served.must_revive(event.revision()) {
            return Ready::Frame(event.frame(delivery));
        }
        self.object(delivery.as_str(), event.body(delivery), event.revision())
    }

    /// The event about an object, unless a webhook has to convert it first.
    fn object(&mut self, kind: &'static str, body: Bytes, revision: u64) -> Ready {
        if self.served.needs_webhook(revision) {
            return Ready::Convert(kind, body, revision);
        }
        let body = self.served.present(body, revision);
        Ready::Frame(self.render(kind, body))
    }

    fn render(&mut self, kind: &str, body: Result<Bytes, ApiError>) -> Bytes {
        let object = body.and_then(|body| self.renderer.represent(&self.core, &self.served, body));
        match object {
            Ok(object) => self.framing.frame(kind, &object),
            Err(error) => self.framing.error(&error),
        }
    }
}
