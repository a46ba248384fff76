//! Predicates: which changes of an object matter, to be joined with `and`, `or`, `not`.
//!
//! They work on metadata, without decoding the object, where they can. As in controller-runtime those about a change
//! let creations and deletions pass.

use std::fmt;
use std::ops::Not;
use std::sync::Arc;

use kubewright_cache::{Cached, Event, Kind, Object, Selector, SelectorError};

/// Whether a change matters. Cheap to clone.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kubewright_runtime::Predicate;
///
/// let interesting: Predicate<Deployment> = Predicate::generation_changed()
///     .or(Predicate::labels_changed())
///     .and(Predicate::label_selector("app=web,!legacy")?);
/// # Ok::<(), kubewright_runtime::SelectorError>(())
/// ```
pub struct Predicate<K>(Arc<Holds<K>>);

type Holds<K> = dyn Fn(&Event<K>) -> bool + Send + Sync;

impl<K: 'static> Predicate<K> {
    /// A predicate from a function.
    pub fn new(holds: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(holds))
    }

    /// Whether it holds for a change.
    pub fn holds(&self, event: &Event<K>) -> bool {
        (self.0)(event)
    }

    /// The specification changed: `metadata.generation` did. Kinds without a generation, as config maps, never do.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let controller = Controller::of::<Deployment>("example").when(Predicate::generation_changed());
    /// # drop(controller);
    /// ```
    pub fn generation_changed() -> Self {
        Self::changed(|old, new| old.generation() != new.generation())
    }

    /// The object changed at all: leaves resyncs out.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let controller = Controller::of::<Deployment>("example").when(Predicate::resource_version_changed());
    /// # drop(controller);
    /// ```
    pub fn resource_version_changed() -> Self {
        Self::changed(|old, new| old.resource_version() != new.resource_version())
    }

    /// Lets updates pass that change labels.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let controller = Controller::of::<Deployment>("example").when(Predicate::labels_changed());
    /// # drop(controller);
    /// ```
    pub fn labels_changed() -> Self {
        Self::changed(|old, new| old.labels() != new.labels())
    }

    /// Lets updates pass that change annotations.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let controller = Controller::of::<Deployment>("example").when(Predicate::annotations_changed());
    /// # drop(controller);
    /// ```
    pub fn annotations_changed() -> Self {
        Self::changed(|old, new| old.annotations() != new.annotations())
    }

    /// The newest state has such labels. As in controller-runtime, an update that takes an object out of the selection
    /// does not count; join it with [`Predicate::labels_changed`] where that matters.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// // Text, pairs, a `Selector`, or one of the API or of `kube`.
    /// let web = Predicate::label_selector("app=web,tier!=cache").unwrap();
    /// let controller = Controller::of::<Deployment>("example").when(web);
    /// # drop(controller);
    /// assert!(Predicate::<Deployment>::label_selector("app in (").is_err());
    /// ```
    ///
    /// # Errors
    /// When the text, or the selector of the API, does not select.
    pub fn label_selector(
        selector: impl TryInto<Selector, Error: Into<SelectorError>>,
    ) -> Result<Self, SelectorError> {
        let selector = selector.try_into().map_err(Into::into)?;
        Ok(Self::object(move |object| {
            selector.matches_by(|label| object.label(label))
        }))
    }

    /// What this function says of the newest state, undecoded: labels, annotations, owners.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let ours = Predicate::object(|it| it.annotation("example.com/managed").is_some());
    /// let controller = Controller::of::<Deployment>("example").when(ours);
    /// # drop(controller);
    /// ```
    pub fn object(holds: impl Fn(&Object) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |event| holds(event.object()))
    }

    /// What this function says of the newest state, decoded. One that does not decode passes: whoever reads it has to
    /// know.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let paused = Predicate::value(|it: &Deployment| it.spec.paused == Some(true));
    /// let controller = Controller::of::<Deployment>("example").when(!paused);
    /// # drop(controller);
    /// ```
    pub fn value(holds: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self
    where
        K: Kind,
    {
        Self::new(move |event| event.object().value().is_none_or(|value| holds(&value)))
    }

    /// All changes, to be narrowed by their sort with [`Predicate::created`], [`Predicate::updated`] and
    /// [`Predicate::deleted`].
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let not_deleted = Predicate::<Deployment>::any().deleted(|_| false);
    /// let controller = Controller::of::<Deployment>("example").when(not_deleted);
    /// # drop(controller);
    /// ```
    pub fn any() -> Self {
        Self::new(|_| true)
    }

    /// And, of creations, those of which this function says so.
    #[must_use]
    pub fn created(self, holds: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static) -> Self {
        self.and(Self::new(move |event| match event {
            Event::Added { object, .. } => holds(object),
            _ => true,
        }))
    }

    /// And, of updates, those of whose old and new state this function says so.
    #[must_use]
    pub fn updated(
        self,
        holds: impl Fn(&Cached<K>, &Cached<K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.and(Self::new(move |event| match event {
            Event::Updated { old, new } => holds(old, new),
            _ => true,
        }))
    }

    /// And, of deletions, those of whose last state this function says so.
    #[must_use]
    pub fn deleted(self, holds: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static) -> Self {
        self.and(Self::new(move |event| match event {
            Event::Deleted { last, .. } => holds(last),
            _ => true,
        }))
    }

    /// Combines two predicates that must both hold.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let both = Predicate::<Deployment>::generation_changed().and(Predicate::object(|it| !it.is_terminating()));
    /// let controller = Controller::of::<Deployment>("example").when(both);
    /// # drop(controller);
    /// ```
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |event| self.holds(event) && other.holds(event))
    }

    /// One of them holds, or both.
    ///
    /// ```
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use kubewright_runtime::{Controller, Predicate};
    /// let either = Predicate::<Deployment>::generation_changed().or(Predicate::labels_changed());
    /// let controller = Controller::of::<Deployment>("example").when(either);
    /// # drop(controller);
    /// ```
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |event| self.holds(event) || other.holds(event))
    }

    fn changed(differ: fn(&Object, &Object) -> bool) -> Self {
        Self::new(move |event| match event {
            Event::Updated { old, new } => differ(old, new),
            _ => true,
        })
    }
}

/// It does not hold.
impl<K: 'static> Not for Predicate<K> {
    type Output = Self;

    fn not(self) -> Self {
        Self::new(move |event| !self.holds(event))
    }
}

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

#[cfg(test)]
mod tests;
