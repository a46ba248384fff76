//! Policies: expressions of an administrator that judge or change what is admitted.

mod binding;
mod definition;
mod mutating;
mod mutation;
mod params;
mod validating;
mod variables;

use super::cache::{Cache, Follow};
use binding::Binding;
use definition::Definition;
use mutation::Mutation;
use validating::Validation;

/// The policies of a server with their bindings.
#[derive(Debug)]
pub(super) struct Policies {
    validating: Cache<Definition<Validation>>,
    validating_bindings: Cache<Binding>,
    mutating: Cache<Definition<Mutation>>,
    mutating_bindings: Cache<Binding>,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            validating: Cache::of("validatingadmissionpolicies", |policy| {
                Definition::read(policy, "validations", Validation::read)
            }),
            validating_bindings: Cache::of("validatingadmissionpolicybindings", Binding::read),
            mutating: Cache::of("mutatingadmissionpolicies", |policy| {
                Definition::read(policy, "mutations", Mutation::read)
            }),
            mutating_bindings: Cache::of("mutatingadmissionpolicybindings", Binding::read),
        }
    }
}

impl Policies {
    /// What is compiled from each kind of configuration.
    pub(super) fn caches(&self) -> [&dyn Follow; 4] {
        [
            &self.mutating,
            &self.mutating_bindings,
            &self.validating,
            &self.validating_bindings,
        ]
    }
}

/// What an expression that fails means for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    Fail,
    Ignore,
}
