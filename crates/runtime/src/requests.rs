//! Requests: what a controller is to reconcile, on its way to the queue, with the causes.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewright_cache::{Event, Key, Object};
use kubewright_workqueue::{Add, Queue};

use crate::cause::{Raised, Reasons};
use crate::panics::HandlerPanics;

/// What a controller reconciles: the [`Key`] of an object, or anything else that can be compared and has a name.
///
/// ```
/// use kubewright_runtime::{Key, Request};
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Region(&'static str);
///
/// impl Request for Region {
///     fn key(&self) -> Key {
///         Key::cluster(self.0)
///     }
/// }
/// ```
pub trait Request: kubewright_workqueue::Request + Sync {
    /// The name under which the request is in logs, spans, causes and the history.
    fn key(&self) -> Key;
}

impl Request for Key {
    fn key(&self) -> Key {
        self.clone()
    }
}

/// Where sources put what is to be reconciled. Cheap to clone.
pub struct Requests<R: Request = Key> {
    queue: Queue<R, Reasons>,
    filter: Option<Filter>,
    panics: HandlerPanics,
}

/// Which events of all watches of a controller count.
pub(crate) type Filter = Arc<dyn Fn(&ObjectEvent<'_>) -> bool + Send + Sync>;

/// A change of an object of any kind, as an [event filter](crate::controller::Builder::event_filter) sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ObjectEvent<'a> {
    /// The object is new, or was there when the controller began.
    Added(&'a Object),
    /// The object changed, or a resync delivers it again.
    Updated {
        /// The state before.
        old: &'a Object,
        /// The state after.
        new: &'a Object,
    },
    /// The object is gone; this is its last known state.
    Deleted(&'a Object),
}

impl<'a> ObjectEvent<'a> {
    /// The newest state that the event knows.
    pub fn object(&self) -> &'a Object {
        match self {
            Self::Added(object) | Self::Updated { new: object, .. } | Self::Deleted(object) => {
                object
            }
        }
    }

    fn of<K>(event: &'a Event<K>) -> Self {
        match event {
            Event::Added { object, .. } => Self::Added(object),
            Event::Updated { old, new } => Self::Updated { old, new },
            other => Self::Deleted(other.object()),
        }
    }
}

impl<R: Request> Requests<R> {
    pub(crate) fn new(queue: Queue<R, Reasons>, filter: Option<Filter>) -> Self {
        Self {
            queue,
            filter,
            panics: HandlerPanics::default(),
        }
    }

    /// Asks for a reconcile.
    pub fn add(&self, request: R) {
        self.add_with(request, Add::now());
    }

    /// Asks for a reconcile once this time has passed.
    pub fn add_after(&self, request: R, delay: Duration) {
        self.add_with(request, Add::after(delay));
    }

    /// Asks for a reconcile after the delay that the controller's rate limiter decides.
    pub fn add_rate_limited(&self, request: R) {
        self.add_with(request, Add::rate_limited());
    }

    /// Asks for a reconcile, saying when and how urgently.
    pub fn add_with(&self, request: R, how: Add) {
        self.raise(request, Raised::Asked, how);
    }

    pub(crate) fn raise(&self, request: R, raised: Raised, how: Add) {
        self.queue.add_noting(request, raised.into(), how);
    }

    /// Whether an event counts, as the controller's event filter decides.
    pub(crate) fn admits<K>(&self, event: &Event<K>) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter(&ObjectEvent::of(event)))
    }

    /// The panics of whatever decides about events of the controller.
    pub(crate) fn panics(&self) -> &HandlerPanics {
        &self.panics
    }

    pub(crate) fn queue(&self) -> &Queue<R, Reasons> {
        &self.queue
    }
}

impl<R: Request> Clone for Requests<R> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            filter: self.filter.clone(),
            panics: self.panics.clone(),
        }
    }
}

impl<R: Request> fmt::Debug for Requests<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Requests({})", self.queue.name())
    }
}
