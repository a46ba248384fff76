//! The built-in controllers, one file each: a pure part with the rules, and a thin shell on the public SDK.

mod autoscaler;
mod built_in;
mod certificates;
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
mod load_balancer;
mod namespace;
pub(crate) mod node_lifecycle;
mod pod_control;
mod pod_gc;
mod policy_status;
mod remembered;
mod replicaset;
mod replication;
mod resource_quota;
mod revisions;
mod service_account;
mod statefulset;
mod storage_migration;
pub(crate) mod volumes;

use std::time::Duration;

use kubewright_proxy::Ipv4Range;
use kubewright_runtime::{Client, Environment, Manager};
use kubewright_server::{CertificateSigner, User};

use crate::identity::acting_as;
use crate::metrics::Metrics;
use crate::node::Nodes;
pub use built_in::BuiltIn;
pub(crate) use built_in::register;
use pod_control::{create_pod, delete_pod};
pub(crate) use remembered::Remembered;

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
    pub(crate) credentials: Credentials,
    pub(crate) remembered: Remembered,
    /// Addresses of load balancers, if they get any.
    pub(crate) load_balancers: Option<Ipv4Range>,
    /// Signs certificates, as the authority that the server trusts.
    pub(crate) signer: CertificateSigner,
}

/// Whom controllers act as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credentials {
    /// Each as a user of its own, over a connection for components.
    Own,
    /// All as the user of the manager that runs them.
    OfManager,
}

impl Facts {
    /// The client of a component that acts as this user, and whose cache is the manager's.
    fn client(&self, manager: &Manager, user: User) -> Client {
        let client = manager.client();
        match self.credentials {
            Credentials::Own => client.with_kube(acting_as(client.kube(), user)),
            Credentials::OfManager => client,
        }
    }
}
