//! Version v1.

pub mod captain;
