//! Version v1alpha1.

pub mod memcached;
