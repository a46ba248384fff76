//! Simulated nodes: pods run on them as they would on real ones, only that nothing runs.

mod addresses;
mod behaviour;
mod conditions;
mod fleet;
mod handle;
mod logs;
mod machine;
mod news;
mod run;
pub(crate) mod script;
mod shell;
mod spec;
mod status;
mod step;
mod writes;

#[cfg(test)]
mod tests;

pub use behaviour::{Behaviour, Probes};
pub use handle::{Nodes, NodesError, NodesOptions, PodEvents};
pub use logs::Logs;
pub use spec::NodeSpec;
