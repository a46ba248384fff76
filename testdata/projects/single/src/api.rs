//! The kinds of this program.

pub mod v1;
pub mod v2;
