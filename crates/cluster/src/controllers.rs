//! The built-in controllers, one file each: a pure part with the rules, and a thin shell on the public SDK.

mod autoscaler;
mod built_in;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
pub(crate) mod ephemeral_volume;
mod expiry;
mod garbage_collector;
mod job;
#[cfg(test)]
mod live;
mod namespace;
pub(crate) mod node_lifecycle;
mod pod_control;
mod pod_gc;
mod replicaset;
mod replication;
mod resource_quota;
mod revisions;
mod service_account;
mod statefulset;
pub(crate) mod volumes;

use std::time::Duration;

use kubewright_runtime::Environment;

use crate::metrics::Metrics;
use crate::node::Nodes;
pub use built_in::BuiltIn;
pub(crate) use built_in::register;
use pod_control::{create_pod, delete_pod};

/// How many objects of a kind are reconciled at once.
const WORKERS: usize = 5;

/// A count as statuses carry it: zero is left out.
pub(crate) fn nonzero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// What controllers know besides what the server tells them.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) environment: Environment,
    pub(crate) nodes: Nodes,
    /// How long a node may be silent.
    pub(crate) node_grace: Duration,
    pub(crate) metrics: Metrics,
    /// The certificate of the authority that the server is known by, PEM.
    pub(crate) certificate_authority: String,
}
