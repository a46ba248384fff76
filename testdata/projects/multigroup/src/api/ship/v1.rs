//! Version v1.

pub mod harbor;
