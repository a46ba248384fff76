//! The informers of one kind: one, or one for each of several namespaces, used as one.

use std::fmt;
use std::sync::Arc;

use futures::future::select_all;
use kubewright_cache::{
    Handler, HandlerOptions, Key, Kind, Reader, Registration, SharedInformer, Stopped, SyncError,
};

use super::entry::Watched;

/// Follows the objects of one kind that a client's cache holds. Cheap to clone; clones are the same informers, which run as
/// long as somebody has them, a reader of theirs, or a handler.
pub struct Informers<K> {
    pub(super) parts: Arc<[Part<K>]>,
    reader: Reader<K>,
}

/// One informer, of one namespace or of all.
pub(super) struct Part<K> {
    pub(super) informer: SharedInformer<K>,
    pub(super) namespace: Option<String>,
    pub(super) watched: Arc<Watched>,
}

impl<K: Kind> Informers<K> {
    pub(super) fn new(parts: Vec<Part<K>>) -> Self {
        let readers = parts.iter().map(|part| part.informer.reader());
        let reader = Reader::joined(readers).expect("there is at least one informer");
        Self {
            parts: parts.into(),
            reader,
        }
    }

    /// The informer that can have this key.
    pub(super) fn part_of(&self, key: &Key) -> Option<&Part<K>> {
        let has = |part: &&Part<K>| {
            part.namespace.is_none() || part.namespace.as_deref() == key.namespace()
        };
        self.parts.iter().find(has)
    }

    /// The objects that the cache holds.
    pub fn reader(&self) -> Reader<K> {
        self.reader.clone()
    }

    /// Adds a handler, a clone of it to each informer. It hears first of everything that is there.
    ///
    /// # Errors
    /// When an informer has stopped.
    pub fn add_handler(&self, handler: impl Handler<K> + Clone) -> Result<Registrations, Stopped> {
        self.add_handler_with(handler, &HandlerOptions::default())
    }

    /// Adds a handler that listens in its own way, a clone of it to each informer.
    ///
    /// # Errors
    /// When an informer has stopped.
    pub fn add_handler_with(
        &self,
        handler: impl Handler<K> + Clone,
        options: &HandlerOptions,
    ) -> Result<Registrations, Stopped> {
        let mut registrations = Registrations(Vec::new());
        for part in self.parts.iter() {
            let registered = part
                .informer
                .add_handler_with(handler.clone(), options.clone());
            match registered {
                Ok(registration) => registrations.0.push(registration),
                Err(stopped) => {
                    registrations.remove();
                    return Err(stopped);
                }
            }
        }
        Ok(registrations)
    }

    /// Whether every informer has had a first whole state.
    pub fn has_synced(&self) -> bool {
        self.parts.iter().all(|part| part.informer.has_synced())
    }

    /// Waits until every informer has a first whole state and watches changes.
    ///
    /// # Errors
    /// When the server refuses the list or the watch of one, or one stops.
    pub async fn synced(&self) -> Result<(), SyncError> {
        for part in self.parts.iter() {
            part.informer.synced().await?;
        }
        Ok(())
    }

    /// Completes when the cache next moves. It counts from this call, not from the first poll: look at the cache after the
    /// call, and no movement is missed.
    pub fn advanced(&self) -> impl Future<Output = ()> + Send + '_ {
        let parts = self.parts.iter();
        let moves: Vec<_> = parts
            .map(|part| Box::pin(part.informer.advanced()))
            .collect();
        async move {
            select_all(moves).await;
        }
    }

    /// Whether an informer has stopped.
    pub fn is_stopped(&self) -> bool {
        self.parts.iter().any(|part| part.informer.is_stopped())
    }
}

impl<K> Clone for Informers<K> {
    fn clone(&self) -> Self {
        Self {
            parts: self.parts.clone(),
            reader: self.reader.clone(),
        }
    }
}

impl<K> fmt::Debug for Informers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.parts.iter().map(|part| &part.informer);
        f.debug_list().entries(informers).finish()
    }
}

/// A handler that listens to the informers of a kind. Dropping this changes nothing for the handler.
#[derive(Debug)]
pub struct Registrations(Vec<Registration>);

impl Registrations {
    /// Whether the handler has heard of everything that was there when it began to listen.
    pub fn has_synced(&self) -> bool {
        self.0.iter().all(Registration::has_synced)
    }

    /// Waits until the handler has heard of everything that was there when it began to listen.
    ///
    /// # Errors
    /// When it ends before that.
    pub async fn synced(&self) -> Result<(), Stopped> {
        for registration in &self.0 {
            registration.synced().await?;
        }
        Ok(())
    }

    /// Removes the handler, once or more often. An event that it is hearing now is finished; no further one follows.
    pub fn remove(&self) {
        for registration in &self.0 {
            registration.remove();
        }
    }

    /// Waits until the handler has ended. A handler must not wait for itself.
    pub async fn ended(&self) {
        for registration in &self.0 {
            registration.ended().await;
        }
    }
}
