//! The controllers of this program.

pub mod cache;
pub mod crew;
pub mod ship;
