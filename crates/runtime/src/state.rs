//! What an operator's reconcilers share beside the client: clients of other systems, configuration, caches of their own.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::Error;

/// Values by their type, one of each. Cheap to clone once it is complete.
#[derive(Clone, Default)]
pub(crate) struct States(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl States {
    /// Adds a value, in place of another one of its type.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The value of a type.
    pub(crate) fn get<T: Any + Send + Sync>(&self) -> Result<&T, Error> {
        let value = self.0.get(&TypeId::of::<T>());
        let value = value.and_then(|value| value.downcast_ref());
        // Another run does not find it either.
        value.ok_or_else(|| Error::terminal(MissingState(type_name::<T>())))
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}

/// A reconcile asked for a state that the manager was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no state of type {0}: give it to the manager with `Manager::state`")]
struct MissingState(&'static str);
