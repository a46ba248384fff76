//! CustomResourceDefinitions: from the JSON of a CRD to compiled types, and what is done with objects of them.
//!
//! A CRD is read by [`Definition::parse`]. [`CompiledVersion`] holds the types of one version; with it objects are
//! pruned ([`prune`]), defaulted ([`default`]) and validated ([`validate`]). Expressions of
//! `x-kubernetes-validations` are kept with the types and are not evaluated here.

mod compile;
mod defaulting;
mod defaults;
mod definition;
mod dns;
mod embedded;
mod failure;
mod formats;
mod go;
mod list_type;
mod numbers;
mod path;
mod pattern;
mod prune;
mod ratchet;
mod scale;
mod schema;
mod step;
mod validate;
mod values;

pub use compile::{CompileError, CompiledVersion};
pub use defaulting::default;
pub use defaults::{carry_status, default_definition, reset_status};
pub use definition::{Column, Conversion, Definition, Names, Scale, Version};
pub use pattern::{Pattern, PatternError};
pub use prune::prune;
pub use schema::SizeError;
pub use validate::{blocks_expressions, validate, validate_status};

#[cfg(test)]
mod tests;
