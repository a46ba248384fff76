//! The shared informer without its type: applies deltas, tells listeners, starts and ends them.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::batch::{self, Prepared};
use crate::cached::Decoder;
use crate::delta::{self, Delta};
use crate::hub::Hub;
use crate::latest::Latest;
use crate::listener::{Listener, Starting};
use crate::reflector::{self, Reflector, Status};
use crate::report::Reporter;
use crate::shared::{AlreadyRan, Stopped, SyncError};
use crate::source::Source;
use crate::stats::{Counters, Stats};
use crate::store::{Shared, Writer};

/// Deltas that may wait between the reflector and the store.
const QUEUE: usize = 1024;

/// The informer without its type.
pub(crate) struct Core {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) reporter: Reporter,
    /// Taken when it runs.
    options: Mutex<Option<reflector::Options>>,
    pub(crate) store: Arc<Shared>,
    pub(crate) decoder: Arc<Decoder>,
    /// Held while deltas are applied and passed on, and while handlers come and go. No code of users runs under it.
    audience: Mutex<Audience>,
    starting: Mutex<Vec<Starting>>,
    came: Notify,
    counters: Arc<Counters>,
    queue: Mutex<delta::Depth>,
    /// Wakes whoever waits for the store to move.
    pub(crate) advanced: Notify,
    pub(crate) status: Latest<Status>,
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
            counters: Arc::default(),
            queue: Mutex::default(),
            advanced: Notify::new(),
            status: Latest::default(),
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.audience.lock().stopped
    }

    pub(crate) async fn run(self: Arc<Self>, cancel: CancellationToken) -> Result<(), AlreadyRan> {
        let options = self.options.lock().take().ok_or(AlreadyRan)?;
        let (sender, receiver) = delta::queue(QUEUE);
        let core = self.clone();
        let sender = sender.with_taker(move |delta| core.take(delta));
        let reflector = Reflector::new(self.source.clone(), sender, options)
            .knowing(self.store.clone())
            .telling(self.status.clone())
            .counting(self.counters.clone());
        *self.queue.lock() = receiver.depth();
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
                biased; // The order must not be random; cancellation comes first.
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
        let mut next = None;
        loop {
            let delta = match next.take() {
                Some(delta) => delta,
                None => match deltas.pop().await {
                    Some(delta) => delta,
                    None => return,
                },
            };
            let (batch, rest) = batch::take(delta, &mut deltas, &self.store);
            next = rest;
            self.apply(batch);
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Applies one delta.
    fn take(&self, delta: Delta) {
        let prepared = Prepared::new(delta, &self.store, &self.store.indexers());
        self.apply(VecDeque::from([prepared]));
    }

    /// Applies a batch. When an index comes while it is under way, the rest is prepared again, with nothing locked.
    fn apply(&self, mut batch: VecDeque<Prepared>) {
        while let Some(stale) = self.commit(&mut batch) {
            batch.push_front(stale);
            let renewed = batch
                .into_iter()
                .map(|prepared| prepared.renew(&self.store));
            batch = renewed.collect();
        }
    }

    /// Applies a batch, or what comes before a delta that has to be prepared again, and wakes whoever has something to
    /// hear.
    fn commit(&self, batch: &mut VecDeque<Prepared>) -> Option<Prepared> {
        let mut audience = self.audience.lock();
        let before = audience.hub.is_synced();
        let (mut stale, mut news) = (None, false);
        while stale.is_none()
            && let Some(prepared) = batch.pop_front()
        {
            // A bookmark is nothing to handlers.
            news |= !matches!(prepared, Prepared::Bookmark(_));
            stale = audience.apply(prepared, &self.store).err();
        }
        for listener in audience.listeners.iter().filter(|_| news) {
            listener.wake.notify_one();
        }
        if !before && audience.hub.is_synced() {
            self.status.change(|status| status.synced = true);
        }
        drop(audience);
        self.advanced.notify_waiters();
        stale
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
        listener.remove();
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

    pub(crate) fn stats(&self) -> Stats {
        let counters = &self.counters;
        let backlogs = {
            let audience = self.audience.lock();
            let waiting = |listener: &Arc<Listener>| listener.backlog.lock().len();
            audience.listeners.iter().map(waiting).collect()
        };
        let state = self.store.state.read();
        Stats {
            cluster: String::new(),
            name: self.source.describe(),
            objects: state.table.len(),
            bytes: state.table.bytes(),
            resource_version: state.resource_version.clone(),
            synced: self.status.look(|status| status.synced),
            lists: counters.lists.get(),
            streams: counters.streams.get(),
            watches: counters.watches.get(),
            relists: counters.states.get().saturating_sub(1),
            events: counters.events.get(),
            failures: counters.failures.get(),
            queued: self.queue.lock().len(),
            backlogs,
        }
    }

    fn stop(&self) {
        let mut audience = self.audience.lock();
        audience.stopped = true;
        for listener in audience.listeners.drain(..) {
            listener.remove();
        }
        self.starting.lock().clear();
        self.status.change(|status| status.stopped = true);
    }

    pub(crate) async fn synced(&self) -> Result<(), SyncError> {
        self.status.wait_for(Status::verdict).await
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
    fn apply(&mut self, prepared: Prepared, store: &Shared) -> Result<(), Prepared> {
        let listeners = &self.listeners;
        // The first state is delivered as a walk over the store, which costs nothing while it waits.
        let first = !self.hub.is_synced();
        self.hub.apply(prepared, |change| {
            for listener in listeners.iter().filter(|_| !first) {
                listener.backlog.lock().push(change.clone());
            }
        })?;
        if first && self.hub.is_synced() {
            let blocks = store.state.read().table.blocks();
            for listener in listeners {
                let mut backlog = listener.backlog.lock();
                backlog.push_initial(blocks.clone());
                backlog.push_synced();
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core({})", self.source.describe())
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
