//! The last reconciles of a controller: why each ran, what it read and wrote, how it ended.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kubewright_cache::Key;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cause::{Cause, Reasons};
use crate::client::{Read, Write};
use crate::stripes::Striped;

/// Reconciles that are remembered.
const KEPT: usize = 256;

/// One reconcile, after the fact.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Reconciled {
    /// The name of the controller.
    #[serde(serialize_with = "crate::cause::as_text")]
    pub controller: Arc<str>,
    /// The number of the reconcile.
    pub id: u64,
    /// The key that was reconciled.
    #[serde(serialize_with = "as_key")]
    pub key: Key,
    /// The moment at which it began.
    pub started: Timestamp,
    /// How long it took, in microseconds.
    #[serde(serialize_with = "as_microseconds", rename = "microseconds")]
    pub took: Duration,
    /// The reasons why it ran.
    pub causes: Vec<Cause>,
    /// What it read with the client of its context, as `get configmaps default/web: found`; the first reads if they are many.
    #[serde(serialize_with = "as_lines")]
    pub reads: Vec<Read>,
    /// What it wrote, as `patch deployments.apps default/web`.
    #[serde(serialize_with = "as_lines")]
    pub writes: Vec<Write>,
    /// How it ended: `done`, `requeue`, `requeue after 10s`, or the error.
    pub ended: Cow<'static, str>,
}

impl Reconciled {
    /// The reconcile as `/debug/causes` shows it: its fields, and under `written` the version that each write led to, by
    /// which a change can be followed to the reconciles that it caused.
    pub fn to_page(&self) -> Value {
        let written = self.writes.iter().map(|write| {
            let mut written = json!({
                "verb": write.verb, "resource": &*write.resource, "key": write.key.as_str(),
                "resourceVersion": write.resource_version,
            });
            if let Some(cluster) = &write.cluster {
                written["cluster"] = json!(&**cluster);
            }
            written
        });
        let mut page = serde_json::to_value(self).unwrap_or_default();
        page["written"] = written.collect();
        page
    }
}

/// One line: `#3 web default/a (ConfigMap default/a added): done, 2.1ms; wrote patch deployments.apps default/a`.
impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, controller, key) = (self.id, &self.controller, self.key.as_str());
        let (causes, ended, took) = (joined(&self.causes), &self.ended, self.took);
        write!(
            f,
            "#{id} {controller} {key} ({causes}): {ended}, {took:.1?}"
        )?;
        if !self.writes.is_empty() {
            write!(f, "; wrote {}", joined(&self.writes))?;
        }
        Ok(())
    }
}

fn joined<T: fmt::Display>(parts: &[T]) -> String {
    let parts: Vec<String> = parts.iter().map(T::to_string).collect();
    parts.join(", ")
}

/// A reconcile as it is remembered.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) key: Key,
    pub(crate) started: Timestamp,
    pub(crate) took: Duration,
    pub(crate) reasons: Reasons,
    pub(crate) reads: Vec<Read>,
    pub(crate) writes: Vec<Write>,
    pub(crate) ended: Cow<'static, str>,
}

/// The last reconciles. Cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    controller: Arc<str>,
    rings: Arc<Striped<Mutex<VecDeque<Entry>>>>,
    listeners: Arc<Listeners>,
}

/// Counts the tasks that wait for another entry. The count is zero most of the time, and then nobody is notified.
#[derive(Debug, Default)]
struct Listeners {
    count: AtomicUsize,
    grown: tokio::sync::Notify,
}

/// Counted as a listener until it is dropped.
struct Listening<'a>(&'a AtomicUsize);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl History {
    pub(crate) fn of(controller: Arc<str>) -> Self {
        Self {
            controller,
            rings: Arc::default(),
            listeners: Arc::default(),
        }
    }

    pub(crate) fn push(&self, entry: Entry) {
        let mut ring = self.rings.mine().lock();
        let oldest = if ring.len() == KEPT {
            ring.pop_front()
        } else {
            None
        };
        ring.push_back(entry);
        drop(ring);
        // It may be large, and is freed without the lock.
        drop(oldest);
        // Whoever counts as a listener later than this look finds the entry in the ring.
        if self.listeners.count.load(Ordering::SeqCst) > 0 {
            self.listeners.grown.notify_waiters();
        }
    }

    /// The reconciles that are remembered, in the order of their numbers.
    pub fn list(&self) -> Vec<Reconciled> {
        let mut list = Vec::new();
        for ring in self.rings.all() {
            list.extend(ring.lock().iter().map(|entry| self.describe(entry)));
        }
        list.sort_unstable_by_key(|reconciled| reconciled.id);
        list.split_off(list.len().saturating_sub(KEPT))
    }

    fn describe(&self, entry: &Entry) -> Reconciled {
        Reconciled {
            controller: self.controller.clone(),
            id: entry.id,
            key: entry.key.clone(),
            started: entry.started,
            took: entry.took,
            causes: entry.reasons.to_causes(),
            reads: entry.reads.clone(),
            writes: entry.writes.clone(),
            ended: entry.ended.clone(),
        }
    }

    /// Completes when another reconcile has ended. It counts from this call.
    pub fn grown(&self) -> impl Future<Output = ()> + Send + '_ {
        self.listeners.count.fetch_add(1, Ordering::SeqCst);
        let listening = Listening(&self.listeners.count);
        let grown = self.listeners.grown.notified();
        async move {
            grown.await;
            drop(listening);
        }
    }
}

fn as_key<S: serde::Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(key.as_str())
}

fn as_microseconds<S: serde::Serializer>(took: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

fn as_lines<T: fmt::Display, S: serde::Serializer>(lines: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(lines.iter().map(T::to_string))
}
