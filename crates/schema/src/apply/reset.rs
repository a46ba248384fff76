//! Which fields an endpoint resets, and nobody therefore manages through it.

use super::compare::Comparison;
use super::path::{Path, PathElement};
use super::set::Set;

/// The fields that a request cannot change where it is sent to. A request that tries does not become their manager.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Reset {
    /// The endpoint resets no fields.
    #[default]
    Nothing,
    /// These and all below them.
    These(Set),
    /// All but what is below these top-level fields.
    AllBut(Vec<Box<str>>),
}

impl Reset {
    /// Resets one field after the other, each named by the steps to it.
    pub fn these(fields: &[&[&str]]) -> Self {
        let path = |steps: &&[&str]| -> Path {
            steps.iter().map(|name| PathElement::field(name)).collect()
        };
        Reset::These(fields.iter().map(path).collect())
    }

    /// Takes the fields that are reset out of a set.
    pub(super) fn filter(&self, set: &mut Set) {
        match self {
            Reset::Nothing => {}
            Reset::These(fields) => set.subtract_recursive(fields),
            Reset::AllBut(kept) => set.retain(|element| {
                let is_kept = |name: &str| kept.iter().any(|kept| **kept == *name);
                element.as_field().is_some_and(is_kept)
            }),
        }
    }

    pub(super) fn filter_comparison(&self, comparison: &mut Comparison) {
        self.filter(&mut comparison.removed);
        self.filter(&mut comparison.modified);
        self.filter(&mut comparison.added);
    }
}
