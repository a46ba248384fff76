//! The shared informer: one list and one watch of a resource, one store, any number of handlers.
//!
//! Guarantees
//! - A handler hears of a change after it is in the store and its indexes.
//! - Each handler hears a story without gaps: first everything that is there, then changes, each from the state it saw
//!   last to a newer one. A slow handler may skip states in between, never the last one, and delays nobody else.
//! - Handlers come and go while it runs. One that panics loses one event and goes on.
//! - The server is asked once, however many handlers there are, and never for a resync.
//!
//! Owner of the store: this. Deliberately absent: order between handlers or between objects of different keys.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;

use crate::cached::Kind;
use crate::core::Core;
use crate::handler::{Handler, Typed};
use crate::listener::{HandlerOptions, Listener, Progress, Starting};
use crate::reader::Reader;
use crate::reflector;
use crate::source::{Failure, FailureKind, Source};
use crate::stats::Stats;
use crate::store;

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
    #[error("{}", refused(.0.kind))]
    Refused(#[source] Arc<Failure>),
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

fn refused(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Forbidden => {
            "the server refuses; a read from the cache needs the verbs get, list and watch"
        }
        _ => "the server refuses",
    }
}

impl<K: Kind> SharedInformer<K> {
    /// An informer over a source. It does nothing until it [runs](SharedInformer::run).
    pub fn new(source: impl Source, options: reflector::Options) -> Self {
        let options = reflector::Options {
            shape: options.shape.clone().of::<K>(),
            ..options
        };
        let (writer, reader) = store::with_reporter::<K>(options.reporter.clone());
        let core = Core::new(
            Arc::new(source),
            options,
            writer,
            reader.shared().clone(),
            reader.decoder().clone(),
        );
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

    /// Returns a reader of the store, which keeps the informer alive.
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

    /// The same informer for those who read its objects as another type.
    pub fn read_as<T: Kind>(&self) -> SharedInformer<T> {
        SharedInformer::of(self.core.clone(), self.lease.clone())
    }

    /// Whether this is the very same informer.
    pub fn is(&self, other: &WeakInformer) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.core), other.core.as_ptr())
    }

    /// The informer for those who look at it while others use it, and do not keep it running.
    pub fn downgrade(&self) -> WeakInformer {
        WeakInformer {
            core: Arc::downgrade(&self.core),
            lease: Arc::downgrade(&self.lease),
        }
    }

    /// Whether the store has had a first whole state.
    pub fn has_synced(&self) -> bool {
        self.core.status.look(|status| status.synced)
    }

    /// Waits until the store has a first whole state and changes are being watched. Any number of tasks may wait.
    ///
    /// # Errors
    /// When the server refuses the list or the watch, or the informer stops.
    pub async fn synced(&self) -> Result<(), SyncError> {
        self.core.synced().await
    }

    /// What it holds and what it has done so far.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Completes when the store next moves. It counts from this call, not from the first poll: look at the store after
    /// the call, and no movement is missed.
    pub fn advanced(&self) -> impl Future<Output = ()> + Send + '_ {
        self.core.advanced.notified()
    }

    /// Whether it has stopped.
    pub fn is_stopped(&self) -> bool {
        self.core.is_stopped()
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

/// An informer that others use. It stops when they do.
#[derive(Debug, Clone)]
pub struct WeakInformer {
    core: Weak<Core>,
    lease: Weak<Lease>,
}

impl WeakInformer {
    /// The informer, if somebody still uses it.
    pub fn upgrade<K: Kind>(&self) -> Option<SharedInformer<K>> {
        Some(SharedInformer::of(
            self.core.upgrade()?,
            self.lease.upgrade()?,
        ))
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
        self.listener.progress.look(|progress| progress.synced)
    }

    /// Waits until the handler has heard of everything that was there when it began to listen.
    ///
    /// # Errors
    /// When it ends before that.
    pub async fn synced(&self) -> Result<(), Stopped> {
        let verdict = |progress: &Progress| match progress {
            Progress { synced: true, .. } => Some(Ok(())),
            Progress { ended: true, .. } => Some(Err(Stopped)),
            _ => None,
        };
        self.listener.progress.wait_for(verdict).await
    }

    /// Removes the handler, once or more often. An event that it is hearing now is finished; no further one follows.
    pub fn remove(&self) {
        self.core.leave(&self.listener);
    }

    /// Waits until the handler has ended. A handler must not wait for itself.
    pub async fn ended(&self) {
        let ended = |progress: &Progress| progress.ended.then_some(());
        self.listener.progress.wait_for(ended).await;
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registration({:?})", self.listener.progress)
    }
}
