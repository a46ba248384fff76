//! Group sea-creatures.

pub mod v1beta2;
