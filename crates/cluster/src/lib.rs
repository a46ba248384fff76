//! A cluster in the process: API server, built-in controllers, simulated nodes.

mod announce;
mod controllers;
pub mod node;
pub mod scheduler;

pub use controllers::node_lifecycle::{NodeLifecycle, NodeLifecycleError};
pub use node::{NodeSpec, Nodes, NodesOptions};
pub use scheduler::Scheduler;
