//! Rules on objects and in definitions, as the API server treats them.

mod definitions;
mod objects;
mod properties;

use serde_json::{Value, json};

use crate::crd::tests::{compile, compile_spec, lines};
use crate::crd::{validate, validate_definition, validate_definition_update};

/// A rule without a message.
fn rule(source: &str) -> Value {
    json!([{"rule": source}])
}
