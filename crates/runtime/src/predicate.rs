//! Predicates: which changes of an object matter.

use std::fmt;
use std::sync::Arc;

use kubewright_cache::Event;

/// Whether a change matters. Cheap to clone.
pub struct Predicate<K>(Arc<dyn Fn(&Event<K>) -> bool + Send + Sync>);

impl<K> Predicate<K> {
    /// A predicate from a function.
    pub fn new(holds: impl Fn(&Event<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(holds))
    }

    /// Whether it holds for a change.
    pub fn holds(&self, event: &Event<K>) -> bool {
        (self.0)(event)
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
