//! The shared informer without its type: applies deltas, tells listeners, starts and ends them.

use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cached::Decoder;
use crate::delta::{self, Delta};
use crate::hub::Hub;
use crate::listener::{Listener, Starting};
use crate::reflector::{self, Reflector, Status};
use crate::report::Reporter;
use crate::shared::{AlreadyRan, Stopped, SyncError};
use crate::source::Source;
use crate::store::{Shared, Writer};

/// Deltas that may wait between the reflector and the store.
const QUEUE: usize = 1024;
/// Deltas that are applied before handlers are added or removed.
const BATCH: usize = 256;

/// The informer without its type.
pub(crate) struct Core {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) reporter: Reporter,
    /// Taken when it runs.
    options: Mutex<Option<reflector::Options>>,
    pub(crate) store: Arc<Shared>,
    pub(crate) decoder: Arc<Decoder>,
    /// Held while deltas are applied and told, and while handlers come and go.
    audience: Mutex<Audience>,
    starting: Mutex<Vec<Starting>>,
    came: Notify,
    /// Wakes whoever waits for the store to move.
    pub(crate) advanced: Notify,
    pub(crate) status: watch::Sender<Status>,
}

struct Audience {
    hub: Hub,
    listeners: Vec<Arc<Listener>>,
    stopped: bool,
}

impl Core {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        options: reflector::Options,
        writer: Writer,
        store: Arc<Shared>,
        decoder: Arc<Decoder>,
    ) -> Self {
        Self {
            source,
            reporter: options.reporter.clone(),
            options: Mutex::new(Some(options)),
            store,
            decoder,
            audience: Mutex::new(Audience {
                hub: Hub::new(writer),
                listeners: Vec::new(),
                stopped: false,
            }),
            starting: Mutex::default(),
            came: Notify::new(),
            advanced: Notify::new(),
            status: watch::Sender::default(),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.audience.lock().stopped
    }

    pub(crate) async fn run(self: Arc<Self>, cancel: CancellationToken) -> Result<(), AlreadyRan> {
        let options = self.options.lock().take().ok_or(AlreadyRan)?;
        let (sender, receiver) = delta::queue(QUEUE);
        let reflector = Reflector::new(self.source.clone(), sender, options)
            .knowing(self.store.clone())
            .telling(self.status.clone());
        // Dropping this future stops everything that it started.
        let _stop = StopOnDrop(self.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(reflector.run(cancel.clone()));
        tasks.spawn(self.clone().distribute(receiver));
        while !cancel.is_cancelled() {
            for starting in std::mem::take(&mut *self.starting.lock()) {
                tasks.spawn(starting.run(self.clone()));
            }
            tokio::select! {
                biased; // An order must not depend on chance; the end is worth most.
                () = cancel.cancelled() => {}
                () = self.came.notified() => {}
                Some(ended) = tasks.join_next() => pass_on_panic(ended),
            }
        }
        self.stop();
        while let Some(ended) = tasks.join_next().await {
            pass_on_panic(ended);
        }
        tracing::debug!(name = %self.source.describe(), "informer stopped");
        Ok(())
    }

    async fn distribute(self: Arc<Self>, mut deltas: delta::Receiver) {
        while let Some(delta) = deltas.pop().await {
            self.apply(delta, &mut deltas);
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Applies a delta and those that wait behind it, then wakes whoever has something to hear.
    fn apply(&self, first: Delta, deltas: &mut delta::Receiver) {
        let mut audience = self.audience.lock();
        let before = audience.hub.is_synced();
        audience.apply(first, &self.store);
        for _ in 1..BATCH {
            let Some(delta) = deltas.try_pop() else { break };
            audience.apply(delta, &self.store);
        }
        for listener in &audience.listeners {
            listener.wake.notify_one();
        }
        if !before && audience.hub.is_synced() {
            self.status.send_modify(|status| status.synced = true);
        }
        drop(audience);
        self.advanced.notify_waiters();
    }

    /// Takes a handler in, with everything that is there to hear first.
    pub(crate) fn join(&self, starting: Starting) -> Result<(), Stopped> {
        let mut audience = self.audience.lock();
        if audience.stopped {
            return Err(Stopped);
        }
        if audience.hub.is_synced() {
            let mut backlog = starting.listener.backlog.lock();
            backlog.push_initial(self.store.state.read().table.blocks());
            backlog.push_synced();
        }
        audience.listeners.push(starting.listener.clone());
        self.starting.lock().push(starting);
        self.came.notify_one();
        Ok(())
    }

    pub(crate) fn leave(&self, listener: &Arc<Listener>) {
        let mut audience = self.audience.lock();
        audience
            .listeners
            .retain(|other| !Arc::ptr_eq(other, listener));
        listener.removed.cancel();
        // One that has not begun never will.
        let is_it = |starting: &Starting| Arc::ptr_eq(&starting.listener, listener);
        self.starting.lock().retain(|starting| !is_it(starting));
    }

    pub(crate) fn resync(&self, listener: &Listener) {
        let audience = self.audience.lock();
        if audience.hub.is_synced() {
            let blocks = self.store.state.read().table.blocks();
            listener.backlog.lock().push_resync(blocks);
        }
    }

    fn stop(&self) {
        let mut audience = self.audience.lock();
        audience.stopped = true;
        for listener in audience.listeners.drain(..) {
            listener.removed.cancel();
        }
        self.starting.lock().clear();
        self.status.send_modify(|status| status.stopped = true);
    }

    pub(crate) async fn synced(&self) -> Result<(), SyncError> {
        let mut status = self.status.subscribe();
        let decided = |status: &Status| status.verdict().is_some();
        let status = status.wait_for(decided).await;
        match status.ok().and_then(|status| status.verdict()) {
            Some(verdict) => verdict,
            None => Err(SyncError::Stopped),
        }
    }
}

impl Status {
    fn verdict(&self) -> Option<Result<(), SyncError>> {
        match &self.failure {
            _ if self.synced && self.live => Some(Ok(())),
            _ if self.stopped => Some(Err(SyncError::Stopped)),
            Some(failure) if failure.is_refusal() => Some(Err(SyncError::Refused(failure.clone()))),
            _ => None,
        }
    }
}

impl Audience {
    fn apply(&mut self, delta: Delta, store: &Shared) {
        let listeners = &self.listeners;
        // The first state is told as a walk over the store, which costs nothing while it waits.
        let first = !self.hub.is_synced();
        self.hub.apply(delta, |change| {
            for listener in listeners.iter().filter(|_| !first) {
                listener.backlog.lock().push(change.clone());
            }
        });
        if first && self.hub.is_synced() {
            let blocks = store.state.read().table.blocks();
            for listener in listeners {
                let mut backlog = listener.backlog.lock();
                backlog.push_initial(blocks.clone());
                backlog.push_synced();
            }
        }
    }
}

struct StopOnDrop(Arc<Core>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Handlers catch their own panics: one that comes here is a broken invariant of ours, and hiding it helps nobody.
fn pass_on_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        resume_unwind(panic);
    }
}
