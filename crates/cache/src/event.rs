//! The events that handlers receive.

use std::sync::Arc;

use crate::cached::{Cached, Decoder};
use crate::object::Object;

/// A change of one object, as a handler sees it: always from the state that the same handler saw last.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event<K> {
    /// The object is new to the handler.
    Added {
        /// Its state.
        object: Cached<K>,
        /// Whether it was there before the handler could listen.
        initial: bool,
    },
    /// The object changed. With the same object as old and new it is a resync.
    Updated {
        /// The state that the handler saw before.
        old: Cached<K>,
        /// The present state.
        new: Cached<K>,
    },
    /// The object is gone.
    Deleted {
        /// The last state that is known.
        last: Cached<K>,
        /// Whether the server reported the deletion, with the last state. Otherwise the object was found missing, or
        /// another one has its name, and there may have been later states.
        observed: bool,
    },
}

impl<K> Event<K> {
    /// The object: the newest state that the event knows.
    pub fn object(&self) -> &Cached<K> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Whether nothing changed: a resync.
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if Arc::ptr_eq(old.object(), new.object()))
    }
}

/// A change before it has a type.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Added { object: Arc<Object>, initial: bool },
    Updated { old: Arc<Object>, new: Arc<Object> },
    Deleted { last: Arc<Object>, observed: bool },
}

impl Change {
    pub(crate) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    pub(crate) fn into_event<K>(self, decoder: &Arc<Decoder>) -> Event<K> {
        let cached = |object| Cached::of_event(object, decoder.clone());
        match self {
            Self::Added { object, initial } => Event::Added {
                object: cached(object),
                initial,
            },
            Self::Updated { old, new } => Event::Updated {
                old: cached(old),
                new: cached(new),
            },
            Self::Deleted { last, observed } => Event::Deleted {
                last: cached(last),
                observed,
            },
        }
    }
}
