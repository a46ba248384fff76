//! Selectors: which objects a list, a watch or a controller means, by their labels or by some of their fields.

mod field;
mod label;
mod parse;
mod structured;
#[cfg(test)]
mod tests;

pub use field::{FieldOperator, FieldSelector, FieldTerm};
pub use label::{LabelSelector, Labels, Requirement, Rule};
pub use structured::validate_label_selector;

/// Longest selector that is read.
const MAX_BYTES: usize = 64 * 1024;
/// Most requirements or terms of a selector.
const MAX_REQUIREMENTS: usize = 1_000;
/// Most values of one `in` or `notin`.
const MAX_VALUES: usize = 10_000;

/// Why a text or an object is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// It breaks the grammar or a rule; the text is the one of the API server.
    #[error("{0}")]
    Invalid(String),
    /// It is larger than the server reads.
    #[error("selector is too large: {what} is limited to {max}, got {actual}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        max: usize,
        /// How much there is.
        actual: usize,
    },
}

impl SelectorError {
    fn limit(what: &'static str, max: usize, actual: usize) -> Result<(), Self> {
        if actual <= max {
            return Ok(());
        }
        Err(Self::TooLarge { what, max, actual })
    }
}
