//! Group ship.

pub mod v1beta1;
