//! Version v1.

pub mod certificate;
