//! Operators: manager, controllers, a cached client that never reads the past, events, leases, finalizers.

pub mod cache;
pub mod cause;
pub mod client;
pub mod conditions;
mod context;
pub mod controller;
mod described;
pub mod environment;
pub mod events;
pub mod finalizer;
pub mod gate;
mod identity;
pub mod lease;
pub mod manager;
pub mod metrics;
mod outcome;
pub mod owners;
mod panics;
pub mod predicate;
mod reconciler;
mod requests;
mod result_ext;
pub mod serving;
pub mod sharding;
mod stripes;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
pub mod watch;

pub use cache::{CacheOptions, CachePolicy};
pub use client::{Change, Client, ClientError, Delete, IgnoreNotFound, Query, Written};
pub use context::Context;
pub use controller::Controller;
pub use described::Described;
pub use environment::Environment;
pub use events::{EventKind, Recorder};
pub use finalizer::{Cleanup, Finalized, finalize};
pub use kubewright_cache::{
    AsObject, AsObjectRef, Cached, Event, Index, Key, Scope, Selector, SelectorError,
};
pub use kubewright_webhook as webhook;
pub use kubewright_webhook::States;
pub use kubewright_workqueue::{Add, Priority, PriorityPolicy};
pub use lease::{Election, LeaseOptions};
pub use manager::Manager;
pub use metrics::Metrics;
pub use outcome::{Error, Outcome};
pub use owners::{is_controlled_by, set_controller_reference, set_owner_reference};
pub use predicate::Predicate;
pub use reconciler::{Reconciler, RequestReconciler, from_fn};
pub use requests::{ObjectEvent, Request, Requests};
pub use result_ext::ResultExt;
pub use serving::{MetricsServer, Probes};
pub use sharding::ShardingOptions;
/// What ends a manager that runs [until](Manager::run_until) it is cancelled, and what a reconcile is
/// [cancelled](Context::cancellation) by.
pub use tokio_util::sync::CancellationToken;
pub use watch::Watch;
