//! Operators: manager, controllers, a cached client that never reads the past, events, leases, finalizers.

pub mod environment;
pub mod metrics;
pub mod predicate;
pub mod selector;

pub use environment::Environment;
pub use metrics::Metrics;
pub use predicate::Predicate;
pub use selector::Selector;
