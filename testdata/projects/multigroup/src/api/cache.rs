//! Group cache.

pub mod v1alpha1;
