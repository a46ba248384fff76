//! Writing values as YAML.

use serde_json::Value;

/// A value could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the value cannot be written as YAML: {0}")]
pub struct WriteError(String);

/// A value as YAML, keys in their order.
///
/// # Errors
/// When the value cannot be written.
pub fn to_string(value: &Value) -> Result<String, WriteError> {
    serde_saphyr::to_string(value).map_err(|e| WriteError(e.to_string()))
}
