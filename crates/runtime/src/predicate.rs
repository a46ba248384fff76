//! Decides which changes are worth a reconcile: predicates over informer events, to be joined with `and`, `or`, `not`.
//!
//! They work on metadata, without decoding the object, where they can. As in controller-runtime those about a change
//! let creations and deletions pass.

use std::marker::PhantomData;

use kubewright_cache::{Cached, Event, Kind};

use crate::selector::{Selector, SelectorError};

/// Whether an event goes on. Functions from `&Event<K>` to `bool` are predicates.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewright_runtime::predicate::{self, Join, Predicate};
///
/// let interesting = predicate::generation_changed()
///     .or(predicate::labels_changed())
///     .and(predicate::label_selector("app=web")?);
/// # fn is_one(_: impl Predicate<Pod>) {}
/// # is_one(interesting);
/// # Ok::<(), kubewright_runtime::selector::SelectorError>(())
/// ```
pub trait Predicate<K>: Send + Sync + 'static {
    /// Whether this event is of interest.
    fn admits(&self, event: &Event<K>) -> bool;
}

impl<K, F: Fn(&Event<K>) -> bool + Send + Sync + 'static> Predicate<K> for F {
    fn admits(&self, event: &Event<K>) -> bool {
        self(event)
    }
}

/// Joins predicates; all of ours have it. Wrap functions with [`events`] to join them.
pub trait Join: Sized {
    /// Both admit the event.
    fn and<P>(self, other: P) -> And<Self, P> {
        And(self, other)
    }

    /// One of them admits the event.
    fn or<P>(self, other: P) -> Or<Self, P> {
        Or(self, other)
    }

    /// It does not admit the event.
    fn not(self) -> Not<Self> {
        Not(self)
    }
}

/// Both of two predicates.
#[derive(Debug, Clone, Copy)]
pub struct And<A, B>(A, B);
/// One of two predicates, or both.
#[derive(Debug, Clone, Copy)]
pub struct Or<A, B>(A, B);
/// The opposite of a predicate.
#[derive(Debug, Clone, Copy)]
pub struct Not<A>(A);
/// A change of something between the old and the new state; creations and deletions pass.
#[derive(Debug, Clone, Copy)]
pub struct Changed(What);
/// Labels of the newest state.
#[derive(Debug, Clone)]
pub struct Labelled(Selector);
/// A function of the event.
#[derive(Debug, Clone, Copy)]
pub struct Events<F>(F);
/// A function of the newest state.
#[derive(Debug, Clone, Copy)]
pub struct Objects<F>(F);
/// A function of the newest state, decoded.
pub struct Values<K, F>(F, PhantomData<fn(K)>);

#[derive(Debug, Clone, Copy)]
enum What {
    Generation,
    ResourceVersion,
    Labels,
    Annotations,
}

/// The specification changed: `metadata.generation` did. Kinds without a generation, as config maps, never do.
pub fn generation_changed() -> Changed {
    Changed(What::Generation)
}

/// The object changed at all: leaves resyncs out.
pub fn resource_version_changed() -> Changed {
    Changed(What::ResourceVersion)
}

/// The labels changed.
pub fn labels_changed() -> Changed {
    Changed(What::Labels)
}

/// The annotations changed.
pub fn annotations_changed() -> Changed {
    Changed(What::Annotations)
}

/// The newest state has such labels. As in controller-runtime, an update that takes an object out of the selection is not
/// admitted; add [`labels_changed`] with `or` where that matters.
///
/// # Errors
/// When the text is no label selector.
pub fn label_selector(text: &str) -> Result<Labelled, SelectorError> {
    Selector::parse(text).map(Labelled)
}

/// What this function says of the event.
pub fn events<K, F: Fn(&Event<K>) -> bool>(function: F) -> Events<F> {
    Events(function)
}

/// What this function says of the newest state, undecoded: labels, annotations, owners.
pub fn objects<K, F: Fn(&Cached<K>) -> bool>(function: F) -> Objects<F> {
    Objects(function)
}

/// What this function says of the newest state, decoded. One that does not decode passes: whoever reads it has to know.
pub fn values<K, F: Fn(&K) -> bool>(function: F) -> Values<K, F> {
    Values(function, PhantomData)
}

/// Switches by the sort of event, all of them on.
pub fn switches<K>() -> Switches<K> {
    Switches {
        created: Box::new(|_| true),
        updated: Box::new(|_, _| true),
        deleted: Box::new(|_| true),
    }
}

/// One function for each sort of event.
#[must_use]
pub struct Switches<K> {
    created: Box<dyn Fn(&Cached<K>) -> bool + Send + Sync>,
    updated: Box<dyn Fn(&Cached<K>, &Cached<K>) -> bool + Send + Sync>,
    deleted: Box<dyn Fn(&Cached<K>) -> bool + Send + Sync>,
}

impl<K> Switches<K> {
    /// Which creations pass.
    pub fn created(mut self, f: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static) -> Self {
        self.created = Box::new(f);
        self
    }

    /// Which updates pass, by the old and the new state.
    pub fn updated(
        mut self,
        f: impl Fn(&Cached<K>, &Cached<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.updated = Box::new(f);
        self
    }

    /// Which deletions pass.
    pub fn deleted(mut self, f: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static) -> Self {
        self.deleted = Box::new(f);
        self
    }
}

impl<K: 'static> Predicate<K> for Switches<K> {
    fn admits(&self, event: &Event<K>) -> bool {
        match event {
            Event::Added { object, .. } => (self.created)(object),
            Event::Updated { old, new } => (self.updated)(old, new),
            Event::Deleted { last, .. } => (self.deleted)(last),
            // A sort of event that these switches do not know yet.
            _ => true,
        }
    }
}

impl<K> Predicate<K> for Changed {
    fn admits(&self, event: &Event<K>) -> bool {
        let Event::Updated { old, new } = event else {
            return true;
        };
        match self.0 {
            What::Generation => old.generation() != new.generation(),
            What::ResourceVersion => old.resource_version() != new.resource_version(),
            What::Labels => old.labels() != new.labels(),
            What::Annotations => old.annotations() != new.annotations(),
        }
    }
}

impl<K> Predicate<K> for Labelled {
    fn admits(&self, event: &Event<K>) -> bool {
        let object = event.object();
        self.0.matches_by(|label| object.label(label))
    }
}

impl<K, F: Fn(&Event<K>) -> bool + Send + Sync + 'static> Predicate<K> for Events<F> {
    fn admits(&self, event: &Event<K>) -> bool {
        self.0(event)
    }
}

impl<K, F: Fn(&Cached<K>) -> bool + Send + Sync + 'static> Predicate<K> for Objects<F> {
    fn admits(&self, event: &Event<K>) -> bool {
        self.0(event.object())
    }
}

impl<K: Kind, F: Fn(&K) -> bool + Send + Sync + 'static> Predicate<K> for Values<K, F> {
    fn admits(&self, event: &Event<K>) -> bool {
        event.object().value().is_none_or(|value| self.0(&value))
    }
}

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for And<A, B> {
    fn admits(&self, event: &Event<K>) -> bool {
        self.0.admits(event) && self.1.admits(event)
    }
}

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Or<A, B> {
    fn admits(&self, event: &Event<K>) -> bool {
        self.0.admits(event) || self.1.admits(event)
    }
}

impl<K, A: Predicate<K>> Predicate<K> for Not<A> {
    fn admits(&self, event: &Event<K>) -> bool {
        !self.0.admits(event)
    }
}

impl<A, B> Join for And<A, B> {}
impl<A, B> Join for Or<A, B> {}
impl<A> Join for Not<A> {}
impl Join for Changed {}
impl Join for Labelled {}
impl<F> Join for Events<F> {}
impl<F> Join for Objects<F> {}
impl<K, F> Join for Values<K, F> {}
impl<K> Join for Switches<K> {}

#[cfg(test)]
mod tests;
