//! The controllers that every cluster has.

pub(crate) mod node_lifecycle;
