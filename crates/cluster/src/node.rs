//! Nodes: pods run on them as on real ones, and what runs in their containers is up to a [`runtime::Runtime`].

mod addresses;
mod behaviour;
mod conditions;
mod engine;
mod fleet;
pub(crate) mod handle;
pub(crate) mod kubelet;
mod logs;
mod machine;
mod memory;
mod news;
mod recorders;
mod run;
pub mod runtime;
pub(crate) mod script;
mod shell;
mod signal;
mod spec;
mod state;
mod status;
mod step;
mod writes;

#[cfg(test)]
mod tests;

pub use behaviour::{Behaviour, Probes};
pub use handle::{Nodes, NodesError, NodesOptions, PodEvents, PodHandle};
pub use kubelet::eviction::Pressure;
pub use logs::Logs;
pub use spec::NodeSpec;

pub(crate) use engine::Engine;
pub(crate) use memory::Memory;
