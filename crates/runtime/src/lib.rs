//! Operators: manager, controllers, a cached client that never reads the past, events, leases, finalizers.

pub mod conditions;
pub mod environment;
pub mod events;
pub mod finalizer;
pub mod lease;
pub mod metrics;
pub mod owners;
pub mod predicate;
pub mod selector;
pub mod serving;

pub use environment::Environment;
pub use events::Recorder;
pub use finalizer::{Cleanup, Finalized, finalize};
pub use lease::{Election, LeaseOptions};
pub use metrics::Metrics;
pub use owners::{set_controller_reference, set_owner_reference};
pub use predicate::Predicate;
pub use selector::Selector;
pub use serving::{MetricsServer, Probes};
