//! The controllers of this program.

pub mod crew;
pub mod ship;
