//! A cluster in the process: API server, built-in controllers, simulated nodes.

mod announce;
pub mod controllers;
pub mod node;
pub mod scheduler;
