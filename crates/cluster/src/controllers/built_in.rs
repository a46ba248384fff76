//! The parts of a control plane over its API server, each of which can be left out or run by another process.

use std::collections::BTreeSet;

use kubewright_runtime::manager::Task;
use kubewright_runtime::{Error, Manager};
use tokio_util::sync::CancellationToken;

use super::node_lifecycle::NodeLifecycle;
use super::{
    Facts, autoscaler, cronjob, daemonset, deployment, disruption, endpoints, ephemeral_volume,
    expiry, garbage_collector, job, namespace, pod_gc, replicaset, replication, resource_quota,
    service_account, statefulset, volumes,
};
use crate::scheduler::Scheduler;

/// A part of the control plane over the API server.
///
/// A cluster has all of them unless [`Builder::controllers`](crate::Builder::controllers) names those that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum BuiltIn {
    /// The simulated nodes, which run pods.
    Nodes,
    /// The scheduler, which assigns pods to nodes.
    Scheduler,
    /// Taints nodes that are silent and evicts their pods.
    NodeLifecycle,
    /// Creates the storage class `standard` at the start.
    StorageClass,
    /// Deletes objects whose owners are gone.
    GarbageCollector,
    /// Deletes pods that nobody will run any more.
    PodGc,
    /// Empties namespaces that are being deleted.
    Namespace,
    /// Creates the service account, the root certificate and the tokens that namespaces have.
    ServiceAccount,
    /// Deletes finished Jobs and old events after their time.
    Expiry,
    /// Counts what quotas limit.
    ResourceQuota,
    /// Keeps the status of PodDisruptionBudgets.
    Disruption,
    /// Keeps the number of pods of ReplicaSets.
    ReplicaSet,
    /// Keeps the number of pods of ReplicationControllers.
    Replication,
    /// Rolls out the ReplicaSets of Deployments.
    Deployment,
    /// Keeps the pods of StatefulSets in order.
    StatefulSet,
    /// Runs a pod of each DaemonSet on each node.
    DaemonSet,
    /// Binds, provisions, grows, protects and reclaims volumes.
    Volumes,
    /// Runs Jobs to completion.
    Job,
    /// Creates Jobs on a schedule.
    CronJob,
    /// Keeps EndpointSlices and Endpoints.
    Endpoints,
    /// Scales workloads by what their pods use.
    Autoscaler,
}

/// Adds a part to a manager.
type Add = fn(Manager, &Facts) -> Manager;

/// All parts, in the order in which they are started.
#[rustfmt::skip]
const PARTS: [(BuiltIn, Add); 21] = [
    (BuiltIn::Nodes, nodes),
    (BuiltIn::Scheduler, scheduler),
    (BuiltIn::NodeLifecycle, node_lifecycle),
    (BuiltIn::StorageClass, storage_class),
    (BuiltIn::GarbageCollector, |manager, facts| {
        let client = manager.client();
        manager.runnable(garbage_collector::GarbageCollector::new(client, facts.environment.clone()))
    }),
    (BuiltIn::PodGc, |manager, facts| {
        let client = manager.client();
        manager.runnable(pod_gc::PodGc::new(client, facts.environment.clone()))
    }),
    (BuiltIn::Namespace, |manager, _| manager.controller(namespace::controller())),
    (BuiltIn::ServiceAccount, |manager, facts| {
        let authority = || facts.certificate_authority.clone();
        manager
            .controller(service_account::controller())
            .controller(service_account::root_ca_controller(authority()))
            .controller(service_account::token_controller(authority()))
    }),
    (BuiltIn::Expiry, |manager, _| {
        manager.controller(expiry::job_controller()).controller(expiry::event_controller())
    }),
    (BuiltIn::ResourceQuota, |manager, _| manager.controller(resource_quota::controller())),
    (BuiltIn::Disruption, |manager, _| manager.controller(disruption::controller())),
    (BuiltIn::ReplicaSet, |manager, _| manager.controller(replicaset::controller())),
    (BuiltIn::Replication, |manager, _| manager.controller(replication::controller())),
    (BuiltIn::Deployment, |manager, _| manager.controller(deployment::controller())),
    (BuiltIn::StatefulSet, |manager, _| manager.controller(statefulset::controller())),
    (BuiltIn::DaemonSet, |manager, _| manager.controller(daemonset::controller())),
    (BuiltIn::Volumes, |manager, _| {
        manager
            .controller(ephemeral_volume::controller())
            .controller(volumes::binder())
            .controller(volumes::reclaimer())
            .controller(volumes::expansion::controller())
            .controller(volumes::protection::claim_controller())
            .controller(volumes::protection::volume_controller())
    }),
    (BuiltIn::Job, |manager, _| {
        manager.controller(job::controller()).controller(job::orphan_controller())
    }),
    (BuiltIn::CronJob, |manager, _| manager.controller(cronjob::controller())),
    (BuiltIn::Endpoints, |manager, _| {
        manager
            .controller(endpoints::controller())
            .controller(endpoints::legacy::controller())
            .controller(endpoints::mirror::controller())
    }),
    (BuiltIn::Autoscaler, |manager, facts| {
        manager.controller(autoscaler::controller(facts.metrics.clone()))
    }),
];

impl BuiltIn {
    /// Returns all parts, in the order in which they are started.
    pub fn all() -> impl Iterator<Item = Self> {
        PARTS.into_iter().map(|(part, _)| part)
    }
}

/// Adds these parts to a manager.
pub(crate) fn register(manager: Manager, facts: &Facts, parts: &BTreeSet<BuiltIn>) -> Manager {
    let wanted = PARTS.into_iter().filter(|(part, _)| parts.contains(part));
    wanted.fold(manager, |manager, (_, add)| add(manager, facts))
}

fn nodes(manager: Manager, facts: &Facts) -> Manager {
    let (client, environment) = (manager.client(), facts.environment.clone());
    let nodes = facts.nodes.clone();
    let run = async move |stop: CancellationToken| nodes.run(client, environment, stop).await;
    manager.runnable(Task::new("the nodes", move |stop| async move {
        run(stop).await.map_err(Error::from)
    }))
}

fn scheduler(manager: Manager, facts: &Facts) -> Manager {
    let (client, environment) = (manager.client(), facts.environment.clone());
    let run =
        async move |stop: CancellationToken| Scheduler::new().run(client, environment, stop).await;
    manager.runnable(Task::new("the scheduler", move |stop| async move {
        run(stop).await.map_err(Error::from)
    }))
}

fn node_lifecycle(manager: Manager, facts: &Facts) -> Manager {
    let (client, environment) = (manager.client(), facts.environment.clone());
    let lifecycle = NodeLifecycle::new().grace(facts.node_grace);
    let run = async move |stop: CancellationToken| lifecycle.run(client, environment, stop).await;
    let task = Task::new("the node lifecycle controller", move |stop| async move {
        run(stop).await.map_err(Error::from)
    });
    manager.runnable(task)
}

fn storage_class(manager: Manager, _: &Facts) -> Manager {
    let client = manager.client();
    let task = Task::new("the standard storage class", |_| {
        volumes::standard_class(client)
    });
    manager.runnable(task.once())
}
