//! Version v1beta1.

pub mod frigate;
