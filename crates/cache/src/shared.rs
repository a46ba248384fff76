//! The shared informer: one list and one watch of a resource, one store, any number of handlers.
//!
//! Guarantees
//! - A handler hears of a change after it is in the store and its indexes.
//! - Each handler hears a story without gaps: first everything that is there, then changes, each from the state it was told
//!   last to a newer one. A slow handler may skip states in between, never the last one, and delays nobody else.
//! - Handlers come and go while it runs. One that panics loses one event and goes on.
//! - The server is asked once, however many handlers there are, and never for a resync.
//!
//! Owner of the store: this. Deliberately absent: order between handlers or between objects of different keys.

use std::fmt;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cached::{Decoder, Kind};
use crate::delta::{self, Delta};
use crate::handler::{Handler, Typed};
use crate::hub::Hub;
use crate::listener::{HandlerOptions, Listener, Starting};
use crate::reader::Reader;
use crate::reflector::{self, Reflector, Status};
use crate::report::Reporter;
use crate::source::{Failure, Source};
use crate::store::{self, Shared};

/// Deltas that may wait between the reflector and the store.
const QUEUE: usize = 1024;
/// Deltas that are applied before handlers are added or removed.
const BATCH: usize = 256;

/// Follows a resource for many. Cheap to clone; clones are the same informer.
pub struct SharedInformer<K> {
    pub(crate) core: Arc<Core>,
    pub(crate) lease: Arc<Lease>,
    kind: PhantomData<fn() -> K>,
}

/// Something is using the informer. One that a factory made stops when nothing does.
#[derive(Debug)]
pub(crate) struct Lease(pub(crate) CancellationToken);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The informer has run before; it cannot run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an informer runs once")]
pub struct AlreadyRan;

/// The informer has stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the informer has stopped")]
pub struct Stopped;

/// Why waiting for the first state is pointless.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The server refuses the list or the watch. It is still tried, in case somebody allows it.
    #[error("the server refuses")]
    Refused(#[source] Arc<Failure>),
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

impl<K: Kind> SharedInformer<K> {
    /// An informer over a source. It does nothing until it [runs](SharedInformer::run).
    pub fn new(source: impl Source, options: reflector::Options) -> Self {
        let options = reflector::Options {
            shape: options.shape.clone().of::<K>(),
            ..options
        };
        let (writer, reader) = store::with_reporter::<K>(options.reporter.clone());
        let core = Core {
            source: Arc::new(source),
            reporter: options.reporter.clone(),
            options: Mutex::new(Some(options)),
            store: reader.shared().clone(),
            decoder: reader.decoder().clone(),
            audience: Mutex::new(Audience {
                hub: Hub::new(writer),
                listeners: Vec::new(),
                stopped: false,
            }),
            starting: Mutex::default(),
            came: Notify::new(),
            status: watch::Sender::default(),
        };
        let lease = Arc::new(Lease(CancellationToken::new()));
        Self::of(Arc::new(core), lease)
    }

    pub(crate) fn of(core: Arc<Core>, lease: Arc<Lease>) -> Self {
        Self {
            core,
            lease,
            kind: PhantomData,
        }
    }

    /// Follows the resource until it is cancelled. All handlers have ended when this returns.
    ///
    /// # Errors
    /// When it runs already or has run before.
    pub async fn run(&self, cancel: CancellationToken) -> Result<(), AlreadyRan> {
        self.core.clone().run(cancel).await
    }

    /// The store.
    pub fn reader(&self) -> Reader<K> {
        Reader::new(self.core.store.clone(), self.core.decoder.clone())
            .keeping_alive(self.lease.clone())
    }

    /// Adds a handler. It hears first of everything that is there.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn add_handler(&self, handler: impl Handler<K>) -> Result<Registration, Stopped> {
        self.add_handler_with(handler, HandlerOptions::default())
    }

    /// Adds a handler that listens in its own way.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn add_handler_with(
        &self,
        handler: impl Handler<K>,
        options: HandlerOptions,
    ) -> Result<Registration, Stopped> {
        let listener = Listener::new(&options);
        let typed = Typed {
            handler,
            decoder: self.core.decoder.clone(),
            reporter: self.core.reporter.clone(),
            kind: PhantomData::<fn() -> K>,
        };
        self.core.join(Starting {
            listener: listener.clone(),
            handler: Box::new(typed),
            resync: options.resync,
        })?;
        Ok(Registration {
            listener,
            core: self.core.clone(),
            _lease: self.lease.clone(),
        })
    }

    /// Whether the store has had a first whole state.
    pub fn has_synced(&self) -> bool {
        self.core.status.borrow().synced
    }

    /// Waits until the store has a first whole state and changes are being watched. Any number of tasks may wait.
    ///
    /// # Errors
    /// When the server refuses the list or the watch, or the informer stops.
    pub async fn synced(&self) -> Result<(), SyncError> {
        self.core.synced().await
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        self.core.audience.lock().stopped
    }
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            lease: self.lease.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedInformer({})", self.core.source.describe())
    }
}

/// A handler that listens. Dropping this changes nothing for the handler.
pub struct Registration {
    listener: Arc<Listener>,
    core: Arc<Core>,
    _lease: Arc<Lease>,
}

impl Registration {
    /// Whether the handler has heard of everything that was there when it began to listen.
    pub fn has_synced(&self) -> bool {
        self.listener.progress.borrow().synced
    }

    /// Waits until the handler has heard of everything that was there when it began to listen.
    ///
    /// # Errors
    /// When it ends before that.
    pub async fn synced(&self) -> Result<(), Stopped> {
        let mut progress = self.listener.progress.subscribe();
        let state = progress.wait_for(|p| p.synced || p.ended).await;
        match state.is_ok_and(|progress| progress.synced) {
            true => Ok(()),
            false => Err(Stopped),
        }
    }

    /// Removes the handler, once or more often. An event that it is hearing now is finished; no further one follows.
    pub fn remove(&self) {
        self.core.leave(&self.listener);
    }

    /// Waits until the handler has ended. A handler must not wait for itself.
    pub async fn ended(&self) {
        let mut progress = self.listener.progress.subscribe();
        // An error means that the sender is gone, which lives as long as this.
        let _ = progress.wait_for(|p| p.ended).await;
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({:?})", *self.listener.progress.borrow())
    }
}

/// The informer without its type.
pub(crate) struct Core {
    pub(crate) source: Arc<dyn Source>,
    reporter: Reporter,
    /// Taken when it runs.
    options: Mutex<Option<reflector::Options>>,
    store: Arc<Shared>,
    decoder: Arc<Decoder>,
    /// Held while deltas are applied and told, and while handlers come and go.
    audience: Mutex<Audience>,
    starting: Mutex<Vec<Starting>>,
    came: Notify,
    pub(crate) status: watch::Sender<Status>,
}

struct Audience {
    hub: Hub,
    listeners: Vec<Arc<Listener>>,
    stopped: bool,
}

impl Core {
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
    }

    fn join(&self, starting: Starting) -> Result<(), Stopped> {
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

    fn leave(&self, listener: &Arc<Listener>) {
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
