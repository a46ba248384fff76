//! Simulated nodes: pods run on them as they would on real ones, only that nothing runs.

mod addresses;
mod fleet;
mod handle;
mod logs;
mod machine;
mod run;
mod script;
mod shell;
mod spec;
mod status;
mod writes;

#[cfg(test)]
mod tests;

pub use handle::{Nodes, NodesError, NodesOptions, PodEvents};
pub use logs::Logs;
pub use script::{Behaviour, Probes};
pub use spec::NodeSpec;
