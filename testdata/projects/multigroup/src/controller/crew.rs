//! Group crew.

pub mod captain;
pub mod captain_backup;
