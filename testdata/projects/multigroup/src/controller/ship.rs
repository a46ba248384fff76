//! Group ship.

pub mod frigate;
