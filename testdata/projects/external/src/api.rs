//! The kinds of this program.

pub mod v1;
