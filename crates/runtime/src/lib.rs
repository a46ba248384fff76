//! Operators: manager, controllers, a cached client that never reads the past, events, leases, finalizers.

pub mod cause;
pub mod client;
mod context;
pub mod controller;
pub mod environment;
pub mod events;
pub mod manager;
pub mod metrics;
mod outcome;
pub mod predicate;
mod reconciler;
mod requests;
pub mod seam;
pub mod watch;

pub use client::{Change, Client, ClientError, Delete, IgnoreNotFound, Query};
pub use context::Context;
pub use controller::Controller;
pub use environment::Environment;
pub use kubewright_cache::{Cached, Event, Index, Key, Scope};
pub use manager::Manager;
pub use metrics::Metrics;
pub use outcome::{Error, Outcome};
pub use predicate::Predicate;
pub use reconciler::{Reconciler, from_fn};
pub use requests::Requests;
pub use watch::Watch;
