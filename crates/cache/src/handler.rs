//! Handlers: what users write to hear of changes.

use std::fmt;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt;

use crate::cached::{Decoder, Kind};
use crate::event::{Change, Event};
use crate::report::{Report, Reporter};
use crate::source::BoxFuture;

/// Hears of changes, one after the other. A closure over [`Event`] is one.
///
/// A handler that takes its time delays itself only. One that blocks its thread takes that thread from the runtime:
/// hand the work to a queue instead.
pub trait Handler<K>: Send + 'static {
    /// Hears of one change. The next comes when this is done.
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send;
}

impl<K, F: FnMut(Event<K>) + Send + 'static> Handler<K> for F {
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send {
        self(event);
        ready(())
    }
}

type OnAdded<K> = Box<dyn FnMut(Arc<K>) + Send>;
type OnUpdated<K> = Box<dyn FnMut(Arc<K>, Arc<K>) + Send>;

/// A handler made of up to three functions over decoded objects. What does not decode is reported and skipped.
#[must_use]
pub struct Callbacks<K> {
    added: Option<OnAdded<K>>,
    updated: Option<OnUpdated<K>>,
    deleted: Option<OnAdded<K>>,
}

impl<K> Default for Callbacks<K> {
    fn default() -> Self {
        Self {
            added: None,
            updated: None,
            deleted: None,
        }
    }
}

impl<K: Kind> Callbacks<K> {
    /// Called with each new object.
    pub fn added(mut self, call: impl FnMut(Arc<K>) + Send + 'static) -> Self {
        self.added = Some(Box::new(call));
        self
    }

    /// Called with the old and the new state of a changed object.
    pub fn updated(mut self, call: impl FnMut(Arc<K>, Arc<K>) + Send + 'static) -> Self {
        self.updated = Some(Box::new(call));
        self
    }

    /// Called with the last known state of an object that is gone.
    pub fn deleted(mut self, call: impl FnMut(Arc<K>) + Send + 'static) -> Self {
        self.deleted = Some(Box::new(call));
        self
    }

    fn call(&mut self, event: &Event<K>) -> Option<()> {
        match event {
            Event::Added { object, .. } => self.added.as_mut()?(object.value()?),
            Event::Updated { old, new } => self.updated.as_mut()?(old.value()?, new.value()?),
            Event::Deleted { last, .. } => self.deleted.as_mut()?(last.value()?),
        }
        Some(())
    }
}

impl<K: Kind> Handler<K> for Callbacks<K> {
    fn handle(&mut self, event: Event<K>) -> impl Future<Output = ()> + Send {
        self.call(&event);
        ready(())
    }
}

impl<K> fmt::Debug for Callbacks<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callbacks")
    }
}

/// Passes on what a predicate selects. An object that begins to match is delivered as added, one that ceases to match as
/// deleted, so that the inner handler sees a complete sequence.
pub struct Filtered<K, P, H> {
    choose: P,
    handler: H,
    kind: PhantomData<fn() -> K>,
}

impl<K, P, H> Filtered<K, P, H>
where
    P: FnMut(&crate::Cached<K>) -> bool + Send + 'static,
    H: Handler<K>,
{
    /// Filters what `handler` hears.
    pub fn new(choose: P, handler: H) -> Self {
        Self {
            choose,
            handler,
            kind: PhantomData,
        }
    }

    fn filter(&mut self, event: Event<K>) -> Option<Event<K>> {
        let (old, new) = match event {
            Event::Updated { old, new } => (old, new),
            other => return (self.choose)(other.object()).then_some(other),
        };
        match ((self.choose)(&old), (self.choose)(&new)) {
            (true, true) => Some(Event::Updated { old, new }),
            (false, true) => Some(Event::Added {
                object: new,
                initial: false,
            }),
            (true, false) => Some(Event::Deleted {
                last: old,
                observed: true,
            }),
            (false, false) => None,
        }
    }
}

impl<K, P, H> Handler<K> for Filtered<K, P, H>
where
    K: Kind,
    P: FnMut(&crate::Cached<K>) -> bool + Send + 'static,
    H: Handler<K>,
{
    async fn handle(&mut self, event: Event<K>) {
        if let Some(event) = self.filter(event) {
            self.handler.handle(event).await;
        }
    }
}

impl<K, P, H> fmt::Debug for Filtered<K, P, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Filtered")
    }
}

/// A handler whose type nobody needs to know.
pub(crate) trait Deliver: Send {
    fn deliver(&mut self, change: Change) -> BoxFuture<'_, ()>;
}

/// Gives changes their type. A panic is reported and costs one event.
pub(crate) struct Typed<K, H> {
    pub(crate) handler: H,
    pub(crate) decoder: Arc<Decoder>,
    pub(crate) reporter: Reporter,
    pub(crate) kind: PhantomData<fn() -> K>,
}

impl<K: Kind, H: Handler<K>> Deliver for Typed<K, H> {
    fn deliver(&mut self, change: Change) -> BoxFuture<'_, ()> {
        let key = change.object().key().clone();
        let event = change.into_event(&self.decoder);
        let handler = &mut self.handler;
        let reporter = &self.reporter;
        Box::pin(async move {
            let call = std::panic::AssertUnwindSafe(async move { handler.handle(event).await });
            if call.catch_unwind().await.is_err() {
                reporter.report(&Report::HandlerPanicked { key });
            }
        })
    }
}
