//! Group ship.

pub mod frigate;
pub mod harbor;
