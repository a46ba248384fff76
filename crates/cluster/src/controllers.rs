//! The built-in controllers, one file each: a pure part with the rules, and a thin shell on the public SDK.

mod autoscaler;
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

use kubewright_runtime::manager::Task;
use kubewright_runtime::{Environment, Error, Manager};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::node::Nodes;
use crate::scheduler::Scheduler;
use node_lifecycle::NodeLifecycle;
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

/// Adds all built-in controllers to a manager: one line each.
#[rustfmt::skip]
pub(crate) fn register(manager: Manager, facts: &Facts) -> Manager {
    let (client, environment) = (manager.client(), facts.environment.clone());
    let manager = machines(manager, facts);
    let first = client.clone();
    manager
        .runnable(Task::new("the standard storage class", |_| volumes::standard_class(first)).once())
        .runnable(garbage_collector::GarbageCollector::new(client.clone(), environment.clone()))
        .runnable(pod_gc::PodGc::new(client, environment))
        .controller(namespace::controller())
        .controller(service_account::controller())
        .controller(service_account::root_ca_controller(facts.certificate_authority.clone()))
        .controller(service_account::token_controller(facts.certificate_authority.clone()))
        .controller(expiry::job_controller())
        .controller(expiry::event_controller())
        .controller(resource_quota::controller())
        .controller(disruption::controller())
        .controller(replicaset::controller())
        .controller(replication::controller())
        .controller(deployment::controller())
        .controller(statefulset::controller())
        .controller(daemonset::controller())
        .controller(ephemeral_volume::controller())
        .controller(volumes::binder())
        .controller(volumes::reclaimer())
        .controller(volumes::expansion::controller())
        .controller(volumes::protection::claim_controller())
        .controller(volumes::protection::volume_controller())
        .controller(job::controller())
        .controller(job::orphan_controller())
        .controller(cronjob::controller())
        .controller(endpoints::controller())
        .controller(endpoints::legacy::controller())
        .controller(endpoints::mirror::controller())
        .controller(autoscaler::controller(facts.metrics.clone()))
}

/// Adds what makes pods run: nodes, what puts pods on them, and what watches over them.
fn machines(manager: Manager, facts: &Facts) -> Manager {
    let client = manager.client();
    let (nodes, environment) = (facts.nodes.clone(), facts.environment.clone());
    let simulated = {
        let (client, environment) = (client.clone(), environment.clone());
        async move |stop: CancellationToken| nodes.run(client, environment, stop).await
    };
    let scheduled = {
        let (client, environment) = (client.clone(), environment.clone());
        async move |stop: CancellationToken| Scheduler::new().run(client, environment, stop).await
    };
    let lifecycle = NodeLifecycle::new().grace(facts.node_grace);
    let watched =
        async move |stop: CancellationToken| lifecycle.run(client, environment, stop).await;
    manager
        .runnable(Task::new("the nodes", move |stop| async move {
            simulated(stop).await.map_err(Error::from)
        }))
        .runnable(Task::new("the scheduler", move |stop| async move {
            scheduled(stop).await.map_err(Error::from)
        }))
        .runnable(Task::new(
            "the node lifecycle controller",
            move |stop| async move { watched(stop).await.map_err(Error::from) },
        ))
}
