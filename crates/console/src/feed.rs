//! A feed: one informer of one kind for all viewers, its rows, and the changes as they come.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kubewright_cache::source::{Failure, FailureKind};
use kubewright_cache::{Event, Key, SharedInformer, SyncError, reflector};
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::cluster::Connection;
use crate::kinds::Kind;
use crate::rows::{Row, Rows, plain_columns};
use crate::table::{Column, Columns, TableSource};
use crate::timeline::{Change, Timeline};

/// Changes that a slow viewer may be behind before it is given everything anew.
const BEHIND: usize = 4_096;
/// How long the first state is waited for before it counts as slow.
const SLOW: Duration = Duration::from_secs(20);

/// The live objects of one kind.
pub(crate) struct Feed {
    pub(crate) kind: Kind,
    rows: RwLock<Rows>,
    columns: Columns,
    phase: watch::Sender<Phase>,
    changes: broadcast::Sender<Update>,
    pub(crate) opened: Instant,
    cancel: CancellationToken,
}

/// How far a feed is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "phase")]
pub(crate) enum Phase {
    Starting,
    /// It has all there is, of one namespace where the user may not see the others.
    Live {
        namespace: Option<String>,
        why: Option<String>,
    },
    /// The user may not see the kind.
    Refused {
        message: String,
    },
    /// The kind is not served any more.
    Gone,
}

/// A change of one row. The row is rendered once for all viewers.
#[derive(Debug, Clone)]
pub(crate) enum Update {
    Put(Bytes),
    Remove(Key),
}

/// What all feeds share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) connection: Connection,
    pub(crate) timeline: Arc<Mutex<Timeline>>,
    /// Counts changes of anything.
    pub(crate) ticks: Arc<watch::Sender<u64>>,
    /// The namespace to look at where the user may not look at all of them.
    pub(crate) namespace: String,
}

impl Feed {
    pub(crate) fn new(kind: Kind, cancel: CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            kind,
            rows: RwLock::default(),
            columns: Arc::new(Mutex::new(Arc::new(plain_columns()))),
            phase: watch::Sender::new(Phase::Starting),
            changes: broadcast::Sender::new(BEHIND),
            opened: Instant::now(),
            cancel,
        })
    }

    /// Follows the kind until it is cancelled or refused: in all namespaces, or else in the user's own.
    pub(crate) async fn run(self: Arc<Self>, shared: Shared) {
        let Some(refused) = self.follow(&shared, None, None).await else {
            return;
        };
        let message = refused.message.clone();
        let second = self.kind.namespaced && refused.kind == FailureKind::Forbidden;
        let refused = if second {
            let namespace = Some(shared.namespace.clone());
            self.follow(&shared, namespace, Some(message.clone())).await
        } else {
            Some(refused)
        };
        if let Some(failure) = refused {
            tracing::debug!(kind = self.kind.id, message, "a kind cannot be followed");
            let gone = failure.kind == FailureKind::NotFound;
            self.phase.send_replace(if gone {
                Phase::Gone
            } else {
                Phase::Refused { message }
            });
            shared.ticks.send_modify(|ticks| *ticks += 1);
        }
    }

    /// Runs an informer. Gives the refusal, if the server does not let us.
    async fn follow(
        self: &Arc<Self>,
        shared: &Shared,
        namespace: Option<String>,
        why: Option<String>,
    ) -> Option<Arc<Failure>> {
        let source = TableSource {
            connection: shared.connection.clone(),
            kind: self.kind.clone(),
            namespace: namespace.clone(),
            columns: self.columns.clone(),
        };
        let informer = SharedInformer::<Value>::new(source, reflector::Options::default());
        let (feed, listened) = (Arc::downgrade(self), shared.clone());
        let handler = move |event: Event<Value>| {
            if let Some(feed) = feed.upgrade() {
                feed.hear(&listened, event);
            }
        };
        let registration = informer.add_handler(handler).ok()?;
        let cancel = self.cancel.child_token();
        let running = tokio::spawn({
            let (informer, cancel) = (informer.clone(), cancel.clone());
            async move { informer.run(cancel).await }
        });
        let end = cancel.clone().drop_guard();
        loop {
            match timeout(SLOW, informer.synced()).await {
                Ok(Ok(())) => break,
                Ok(Err(SyncError::Refused(failure))) => return Some(failure),
                Ok(Err(_)) => return None,
                Err(_) => tracing::warn!(kind = self.kind.id, "still waiting for the first list"),
            }
        }
        let _ = registration.synced().await;
        self.phase.send_replace(Phase::Live { namespace, why });
        shared.ticks.send_modify(|ticks| *ticks += 1);
        let ended = running.await;
        drop(end);
        tracing::debug!(kind = self.kind.id, ?ended, "a feed ended");
        None
    }

    fn hear(&self, shared: &Shared, event: Event<Value>) {
        let (change, is_new) = match &event {
            Event::Added { initial, .. } => (Change::Added, !initial),
            Event::Updated { .. } if event.is_resync() => return,
            Event::Updated { .. } => (Change::Changed, true),
            _ => (Change::Deleted, true),
        };
        let object = event.object().object().clone();
        let key = object.key().clone();
        if is_new && !self.kind.is_noise() {
            let version = object.resource_version();
            shared
                .timeline
                .lock()
                .note(&self.kind.id, key.as_str(), &version, change);
        }
        let update = if change == Change::Deleted {
            self.rows.write().remove(&key);
            Update::Remove(key)
        } else {
            let row = Arc::new(Row::new(&self.kind, object));
            let update = Update::Put(row.json.clone());
            self.rows.write().put(row);
            update
        };
        // Nobody may be listening.
        let _ = self.changes.send(update);
        shared.ticks.send_modify(|ticks| *ticks += 1);
    }

    /// Reads the rows. The closure must be short: changes wait for it.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Rows) -> T) -> T {
        read(&self.rows.read())
    }

    pub(crate) fn columns(&self) -> Arc<Vec<Column>> {
        self.columns.lock().clone()
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Changes from now on. Whoever subscribes before reading the rows misses nothing.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Update> {
        self.changes.subscribe()
    }

    pub(crate) fn stop(&self) {
        self.cancel.cancel();
    }

    /// Waits until the feed is live or refused, for a while.
    pub(crate) async fn settled(&self, patience: Duration) {
        let mut phases = self.phases();
        let _ = timeout(patience, phases.wait_for(|phase| *phase != Phase::Starting)).await;
    }
}
