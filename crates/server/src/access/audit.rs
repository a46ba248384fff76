//! The audit log: one line of JSON for each request, who asked for what and how it was answered.
//!
//! Events are written by a thread of their own from a bounded queue. When the disk cannot keep up, events are
//! dropped and counted; requests never wait, and neither does the end of the server. Whoever records an event says so
//! when the thread is stuck, because the thread itself cannot. Bodies, headers and tokens are not written.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use http::header::USER_AGENT;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
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

/// How long nothing may be written while events wait before that is reported.
const STALLED: SignedDuration = SignedDuration::from_secs(5);
/// How long the end of the server waits for events to be written.
const DRAIN: Duration = Duration::from_secs(2);

/// Where events go. Dropping it writes what is waiting, within limits.
pub(crate) struct AuditLog {
    /// Gone once the log is closed.
    queue: Option<SyncSender<Value>>,
    counts: Arc<Counts>,
    stall: Mutex<Stall>,
    /// Closed by the writer when it has written everything.
    finished: Mutex<Receiver<()>>,
}

/// What happened to events.
#[derive(Default)]
struct Counts {
    queued: AtomicU64,
    written: AtomicU64,
    dropped: AtomicU64,
}

/// Whether the writer gets anywhere.
#[derive(Default)]
struct Stall {
    /// How many events had been written when this was last looked at and different.
    written: u64,
    /// When that was, while events have been waiting.
    since: Option<Timestamp>,
    reported: bool,
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
        let counts = Arc::<Counts>::default();
        let (own, (running, finished)) = (counts.clone(), sync_channel(1));
        // The thread is not joined: it may be stuck in a write for ever, and ends with the process then.
        std::thread::Builder::new()
            .name("audit-log".into())
            .spawn(move || {
                write_all(file, &events, &own);
                drop(running);
            })?;
        Ok(Self {
            queue: Some(queue),
            counts,
            stall: Mutex::default(),
            finished: Mutex::new(finished),
        })
    }

    /// Writes a request down, unless too many are waiting.
    pub(crate) fn record(&self, exchange: &Exchange<'_>, environment: &Environment) {
        let now = environment.now();
        let event = event(exchange, now);
        let waiting = self.counts.waiting();
        if let Some(queue) = &self.queue {
            match queue.try_send(event) {
                Ok(()) => self.counts.queued.fetch_add(1, Ordering::Relaxed),
                Err(_) => self.counts.dropped.fetch_add(1, Ordering::Relaxed),
            };
        }
        let written = self.counts.written.load(Ordering::Relaxed);
        if self.stall.lock().observe(now, written, waiting) {
            tracing::warn!(
                waiting,
                "audit events are not being written: the log's device is stuck"
            );
        }
    }
}

impl Counts {
    /// Events that have been queued and not written.
    fn waiting(&self) -> u64 {
        let written = self.written.load(Ordering::Relaxed);
        let queued = self.queued.load(Ordering::Relaxed);
        queued.saturating_sub(written)
    }
}

impl Stall {
    /// Whether to report that nothing gets written although events wait. Once for each time that it begins.
    fn observe(&mut self, now: Timestamp, written: u64, waiting: u64) -> bool {
        if waiting == 0 || written != self.written {
            *self = Self {
                written,
                ..Self::default()
            };
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let stalled = now.duration_since(since) >= STALLED;
        stalled && !std::mem::replace(&mut self.reported, stalled)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // The writer ends when the queue does.
        self.queue = None;
        if self.finished.get_mut().recv_timeout(DRAIN) == Err(RecvTimeoutError::Timeout) {
            let count = self.counts.waiting();
            tracing::warn!(
                count,
                "audit events were not written: the log's device is stuck"
            );
        }
    }
}

fn write_all(file: File, events: &Receiver<Value>, counts: &Counts) {
    let mut file = BufWriter::new(file);
    while let Ok(first) = events.recv() {
        let mut result = write_line(&mut file, &first);
        let mut count = 1;
        for event in events.try_iter().take(QUEUE) {
            result = result.and_then(|()| write_line(&mut file, &event));
            count += 1;
        }
        if let Err(error) = result.and_then(|()| file.flush()) {
            tracing::warn!(%error, "audit events could not be written");
        }
        counts.written.fetch_add(count, Ordering::Relaxed);
        match counts.dropped.swap(0, Ordering::Relaxed) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_device_is_reported_once_and_again_after_it_has_moved() {
        let at = |second| Timestamp::from_second(second).expect("a small number");
        let mut stall = Stall::default();
        assert!(!stall.observe(at(0), 0, 0), "nothing waits");
        assert!(!stall.observe(at(100), 0, 1), "it has just come");
        assert!(!stall.observe(at(104), 0, 9));
        assert!(stall.observe(at(105), 0, 9));
        assert!(!stall.observe(at(300), 0, 9), "it has been said");
        assert!(!stall.observe(at(301), 4, 5), "it moves");
        assert!(!stall.observe(at(302), 4, 5));
        assert!(stall.observe(at(310), 4, 5));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stuck_device_does_not_block_the_end() {
        // A pipe that this process has open and nobody reads: it takes 64 KiB, then writes block.
        let dir = tempfile::TempDir::new().expect("there is room");
        let path = dir.path().join("audit");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo is there").success());
        let _reader = File::options().read(true).write(true).open(&path);
        let log = AuditLog::open(&path).expect("it can be opened");
        let queue = log.queue.as_ref().expect("it is open");
        for _ in 0..100 {
            queue.send(json!("x".repeat(4096))).expect("it is not full");
            log.counts.queued.fetch_add(1, Ordering::Relaxed);
        }
        let (ended, end) = sync_channel(1);
        std::thread::spawn(move || {
            drop(log);
            ended.send(())
        });
        let waited = end.recv_timeout(Duration::from_secs(20));
        assert_eq!(waited, Ok(()), "dropping the log did not end");
    }
}
