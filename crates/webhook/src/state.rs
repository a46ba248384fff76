//! What the functions of an operator share: clients of other systems, configuration, flags, caches of their own.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values by their type, one of each: what a program gives to its controllers and webhooks. Cheap to clone once it is complete.
///
/// ```
/// use kubewright_webhook::States;
///
/// let mut states = States::default();
/// states.insert("eu-west");
/// assert_eq!(states.get::<&str>(), Ok(&"eu-west"));
/// assert!(states.get::<u8>().is_err());
/// ```
#[derive(Clone, Default)]
pub struct States(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl States {
    /// Adds a value, in place of another one of its type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        Arc::make_mut(&mut self.0).insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// Adds the values of types that are missing here.
    pub fn add_missing(&mut self, others: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&others.0);
            return;
        }
        let states = Arc::make_mut(&mut self.0);
        for (id, value) in &*others.0 {
            states.entry(*id).or_insert_with(|| value.clone());
        }
    }

    /// Returns the value of a type.
    ///
    /// # Errors
    /// When there is no value of this type.
    pub fn get<T: Send + Sync + 'static>(&self) -> Result<&T, MissingState> {
        let value = self.0.get(&TypeId::of::<T>());
        let value = value.and_then(|value| value.downcast_ref());
        value.ok_or(MissingState(type_name::<T>()))
    }

    /// Returns whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "States({})", self.0.len())
    }
}

/// A state was asked for that the program did not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no state of type {0}: give it to the manager with `Manager::state`")]
pub struct MissingState(&'static str);
