//! One handler at its place: its backlog, and the task that tells it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backlog::{Backlog, Next};
use crate::core::Core;
use crate::handler::Deliver;
use crate::latest::Latest;

/// The shortest time between two resyncs.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// How a handler listens.
#[derive(Debug, Clone)]
#[must_use]
pub struct HandlerOptions {
    pub(crate) resync: Option<Duration>,
    pub(crate) backlog: usize,
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            resync: None,
            backlog: 1024,
        }
    }
}

impl HandlerOptions {
    /// Tells every object again in this interval, from the store; the server is not asked. At least a second.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(SHORTEST_RESYNC));
        self
    }

    /// How many changes may wait before states in between are skipped.
    pub fn backlog(mut self, changes: usize) -> Self {
        self.backlog = changes;
        self
    }
}

/// What others see of a handler.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) backlog: Mutex<Backlog>,
    pub(crate) wake: Notify,
    pub(crate) removed: CancellationToken,
    pub(crate) progress: Latest<Progress>,
}

/// How far a handler is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Progress {
    pub(crate) synced: bool,
    pub(crate) ended: bool,
}

impl Listener {
    pub(crate) fn new(options: &HandlerOptions) -> Arc<Self> {
        Arc::new(Self {
            backlog: Mutex::new(Backlog::new(options.backlog)),
            wake: Notify::new(),
            removed: CancellationToken::new(),
            progress: Latest::default(),
        })
    }

    /// Waits until there may be something to do. Whoever removes a handler wakes it.
    async fn rest(&self, due: Option<Instant>) {
        let woken = self.wake.notified();
        match due {
            None => woken.await,
            // That the time is over says as much as being woken.
            Some(due) => tokio::time::timeout_at(due, woken).await.unwrap_or(()),
        }
    }

    /// Ends what tells the handler.
    pub(crate) fn remove(&self) {
        self.removed.cancel();
        self.wake.notify_one();
    }
}

/// A handler that has not begun.
pub(crate) struct Starting {
    pub(crate) listener: Arc<Listener>,
    pub(crate) handler: Box<dyn Deliver>,
    pub(crate) resync: Option<Duration>,
}

impl Starting {
    /// Tells the handler everything until it is removed or the informer stops.
    pub(crate) async fn run(mut self, core: Arc<Core>) {
        let mut due = self.resync.map(|period| Instant::now() + period);
        while !self.listener.removed.is_cancelled() {
            if due.is_some_and(|due| due <= Instant::now()) {
                core.resync(&self.listener);
                due = self.resync.map(|period| Instant::now() + period);
            }
            let next = self.listener.backlog.lock().pop();
            match next {
                Some(Next::Change(change)) => self.handler.deliver(change).await,
                Some(Next::Synced) => self.tell(|progress| progress.synced = true),
                None => self.listener.rest(due).await,
            }
            // A handler with much to do must not keep a thread from everybody else.
            tokio::task::coop::consume_budget().await;
        }
        self.tell(|progress| progress.ended = true);
    }

    fn tell(&self, change: impl FnOnce(&mut Progress)) {
        self.listener.progress.change(change);
    }
}

impl Drop for Starting {
    /// However it ends, nobody waits for it for ever.
    fn drop(&mut self) {
        self.tell(|progress| progress.ended = true);
    }
}
