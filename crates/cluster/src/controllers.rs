//! The controllers that every cluster has.

pub mod node_lifecycle;
