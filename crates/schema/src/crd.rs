//! CustomResourceDefinitions: from the JSON of a CRD to compiled types, and what is done with objects of them.
//!
//! A CRD is read by [`Definition::parse`]. [`CompiledVersion`] holds the types of one version; with it objects are
//! pruned ([`prune`]), defaulted ([`default`]) and validated ([`validate`]), with the expressions of
//! `x-kubernetes-validations`.

mod columns;
mod compile;
mod defaulting;
mod defaults;
mod definition;
mod embedded;
mod expressions;
mod failure;
mod field_path;
mod jsonpath;
mod list_type;
mod numbers;
mod openapi;
mod path;
mod prune;
mod ratchet;
mod scale;
mod schema;
mod schema_defaults;
mod selectable;
mod step;
mod structural;
mod validate;
mod validation;
mod values;
mod warnings;

pub use columns::{ColumnDefinition, Columns};
pub use compile::{CompileError, CompiledVersion};
pub use defaulting::default;
pub use defaults::{carry_status, default_definition, reset_status};
pub use definition::{Column, Conversion, Definition, Names, Scale, Version};
pub use jsonpath::{JsonPath, JsonPathError};
pub use kubewright_cel::pattern::{Pattern, PatternError};
pub use prune::prune;
pub use scale::ScaleError;
pub use schema::SizeError;
pub use selectable::SelectableFields;
pub use validate::{blocks_expressions, validate, validate_status};
pub use validation::{validate_definition, validate_definition_status, validate_definition_update};
pub use warnings::definition_warnings;

#[cfg(test)]
mod tests;
