//! Server-side apply: who manages which field of an object, and merging what several managers want of it.
//!
//! Every write of an object goes through a [`FieldManager`]. An update takes over the fields that it changes; an
//! apply says which fields its manager wants, is refused when that would change a field of somebody else, and takes
//! back what the manager applied before and no longer does. Who manages what stands in `metadata.managedFields`.
//!
//! Fields are named by [`Path`]s and kept in [`Set`]s. What a path can name depends on the type: the items of a list
//! with keys have names, those of an atomic list have none; see [`Typed`]. All walks are as deep as the objects they
//! walk over, which [`decode`](crate::decode) limits.

mod applying;
mod atomics;
mod compare;
mod conflict;
mod entry;
mod fields;
mod form;
mod last_applied;
mod manager;
mod merge;
mod path;
mod reconcile;
mod remove;
mod reset;
mod scale;
mod set;
mod to_set;
mod validate;
mod value;
mod versions;

#[cfg(test)]
mod tests;

pub use applying::ApplyError;
pub use atomics::atomics;
pub use compare::{Comparison, compare};
pub use conflict::{Conflict, Conflicts};
pub use entry::{Entry, Managed, ManagedError, Operation};
pub use fields::{FieldsError, from_fields, to_fields};
pub use form::Typed;
pub use manager::{FieldManager, Force, keep_times};
pub use merge::merge;
pub use path::{Path, PathElement};
pub use reconcile::reconcile;
pub use remove::{extract_items, remove_items};
pub use reset::Reset;
pub use scale::{ScaleManager, scale_conflicts};
pub use set::Set;
pub use to_set::to_field_set;
pub use validate::{TypeErrors, validate};
pub use versions::{OneVersion, Versions};
