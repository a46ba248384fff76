//! The audit log: one line of JSON for each request, who asked for what and how it was answered.
//!
//! Events are written by a thread of their own from a bounded queue. When the disk cannot keep up, events are
//! dropped and counted; requests never wait. Bodies, headers and tokens are not written.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use http::header::USER_AGENT;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Decision;
use super::attributes::{Attributes, Subject};
use crate::auth::User;
use crate::environment::Environment;
use crate::http::head::Head;

/// Most events that wait to be written.
const QUEUE: usize = 8192;
/// Longest path and user agent that is written.
const MAX_TEXT: usize = 4096;

/// Where events go. Dropping it writes what is waiting.
pub(crate) struct AuditLog {
    /// Gone once the log is closed.
    queue: Option<SyncSender<Value>>,
    dropped: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

/// What became known of a request while it was answered.
#[derive(Default)]
pub(crate) struct Trail {
    pub(crate) user: Option<User>,
    pub(crate) impersonated: Option<User>,
    pub(crate) decision: Option<Decision>,
}

/// An answered request.
pub(crate) struct Exchange<'a> {
    pub(crate) id: &'a str,
    pub(crate) head: &'a Head,
    pub(crate) asked: Attributes<'a>,
    pub(crate) trail: &'a Trail,
    pub(crate) code: u16,
    pub(crate) received: Timestamp,
}

impl AuditLog {
    /// Opens a log; events are added to what is in the file.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let (queue, events) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        let writer = std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(move || write_all(file, &events, &lost))?;
        Ok(Self {
            queue: Some(queue),
            dropped,
            writer: Some(writer),
        })
    }

    /// Writes a request down, unless too many are waiting.
    pub(crate) fn record(&self, exchange: &Exchange<'_>, environment: &Environment) {
        let event = event(exchange, environment.now());
        if let Some(queue) = &self.queue
            && queue.try_send(event).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // The writer ends when the queue does.
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn write_all(file: File, events: &Receiver<Value>, dropped: &AtomicU64) {
    let mut file = BufWriter::new(file);
    while let Ok(first) = events.recv() {
        let mut result = write_line(&mut file, &first);
        for event in events.try_iter().take(QUEUE) {
            result = result.and_then(|()| write_line(&mut file, &event));
        }
        if let Err(error) = result.and_then(|()| file.flush()) {
            tracing::warn!(%error, "audit events could not be written");
        }
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => tracing::warn!(count, "audit events were dropped: the log cannot keep up"),
        }
    }
}

fn write_line(file: &mut impl Write, event: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *file, event)?;
    file.write_all(b"\n")
}

/// An `Event` of `audit.k8s.io/v1` at the level of metadata.
fn event(exchange: &Exchange<'_>, now: Timestamp) -> Value {
    let verb = exchange.asked.verb.as_ref();
    // A watch is answered long before it ends.
    let stage = match verb {
        "watch" if exchange.code == 200 => "ResponseStarted",
        _ => "ResponseComplete",
    };
    let uri = exchange
        .head
        .uri
        .path_and_query()
        .map(|p| p.as_str())
        .unwrap_or("/");
    let mut event = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
        "auditID": exchange.id, "stage": stage, "requestURI": cut(uri), "verb": verb,
        "user": exchange.trail.user.as_ref().map(user).unwrap_or(json!({})),
        "responseStatus": { "metadata": {}, "code": exchange.code },
        "requestReceivedTimestamp": micro(exchange.received), "stageTimestamp": micro(now),
    });
    if let Some(impersonated) = &exchange.trail.impersonated {
        event["impersonatedUser"] = user(impersonated);
    }
    if let Some(agent) = exchange
        .head
        .headers
        .get(USER_AGENT)
        .and_then(|v| v.to_str().ok())
    {
        event["userAgent"] = json!(cut(agent));
    }
    if let Some(reference) = object_ref(&exchange.asked) {
        event["objectRef"] = reference;
    }
    if let Some(decision) = &exchange.trail.decision {
        event["annotations"] = json!({
            "authorization.k8s.io/decision": if decision.allowed { "allow" } else { "forbid" },
            "authorization.k8s.io/reason": decision.reason,
        });
    }
    event
}

fn user(user: &User) -> Value {
    let mut value = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        value["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        value["extra"] = json!(user.extra);
    }
    value
}

fn object_ref(asked: &Attributes<'_>) -> Option<Value> {
    let Subject::Resource(resource) = &asked.subject else {
        return None;
    };
    let mut reference = json!({ "resource": resource.plural, "apiVersion": resource.version });
    for (field, value) in [
        ("namespace", resource.namespace),
        ("name", &resource.name),
        ("apiGroup", resource.group),
        ("subresource", resource.subresource),
    ] {
        if !value.is_empty() {
            reference[field] = json!(value);
        }
    }
    Some(reference)
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// A moment with microseconds, as the API writes them.
fn micro(at: Timestamp) -> String {
    format!("{at:.6}")
}
