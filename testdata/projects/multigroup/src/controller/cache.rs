//! Group cache.

pub mod memcached;
