//! Operators: manager, controllers, a cached client that never reads the past, events, leases, finalizers.

pub mod environment;
pub mod metrics;

pub use environment::Environment;
pub use metrics::Metrics;
