//! Version v1beta2.

pub mod kraken;
