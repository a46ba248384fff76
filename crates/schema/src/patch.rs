//! Patches: JSON patch (RFC 6902), JSON merge patch (RFC 7396) and strategic merge patch.
//!
//! All three take a document and a patch from outside and give a new document or an error. None of them recurses
//! deeper than [`MAX_DEPTH`], and none does more work than its limits allow.

pub mod json;
pub mod merge;
pub mod strategic;

use serde_json::Value;

/// Deepest nesting of a patch and of a patched document; what the JSON decoder accepts as well.
pub use crate::decode::MAX_DEPTH;

/// Whether no array or object is nested deeper than `depth` levels.
fn is_within_depth(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => {
            depth > 0 && items.iter().all(|item| is_within_depth(item, depth - 1))
        }
        Value::Object(members) => {
            depth > 0
                && members
                    .values()
                    .all(|member| is_within_depth(member, depth - 1))
        }
        _ => true,
    }
}
