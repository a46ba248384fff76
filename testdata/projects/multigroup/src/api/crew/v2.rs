//! Version v2.

pub mod captain;
