//! The kinds of this program.

pub mod cache;
pub mod crew;
pub mod sea_creatures;
pub mod ship;
