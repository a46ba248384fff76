//! Which fields an endpoint resets, and nobody therefore manages through it.

use std::borrow::Cow;

use super::compare::Comparison;
use super::path::{Path, PathElement};
use super::set::Set;

/// The fields that a request cannot change where it is sent to. A request that tries does not become their manager.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Reset {
    /// None.
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

    /// The set without the fields that are reset.
    pub(super) fn filter<'s>(&self, set: &'s Set) -> Cow<'s, Set> {
        match self {
            Reset::Nothing => Cow::Borrowed(set),
            Reset::These(_) | Reset::AllBut(_) if set.is_empty() => Cow::Borrowed(set),
            Reset::These(fields) => Cow::Owned(set.recursive_difference(fields)),
            Reset::AllBut(kept) => {
                let mut out = Set::new();
                for node in set.nodes() {
                    let is_kept = |name: &str| kept.iter().any(|kept| **kept == *name);
                    if node.element.as_field().is_some_and(is_kept) {
                        out.put(node.element.clone(), node.member, node.below.clone());
                    }
                }
                Cow::Owned(out)
            }
        }
    }

    pub(super) fn filter_comparison(&self, comparison: Comparison) -> Comparison {
        match self {
            Reset::Nothing => comparison,
            _ => Comparison {
                removed: self.filter(&comparison.removed).into_owned(),
                modified: self.filter(&comparison.modified).into_owned(),
                added: self.filter(&comparison.added).into_owned(),
            },
        }
    }
}
