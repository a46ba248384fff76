//! Writes files of a project: planned first, then all of them or none.

pub(crate) mod header;
pub(crate) mod merge;
pub(crate) mod modules;
pub(crate) mod moves;
pub(crate) mod plan;
pub(crate) mod site;
pub(crate) mod templates;
pub(crate) mod transaction;
pub(crate) mod writing;
