//! The controllers of this program.

pub mod certificate;
pub mod deployment;
