//! The parts of a control plane over its API server, each of which can be left out or run by another process.

use std::collections::BTreeSet;

use kubewright_runtime::manager::Task;
use kubewright_runtime::{Controller, Error, Manager, Request};
use kubewright_server::User;
use tokio_util::sync::CancellationToken;

use super::node_lifecycle::NodeLifecycle;
use super::{
    Credentials, Facts, autoscaler, certificates, cronjob, daemonset, deployment, disruption,
    endpoints, ephemeral_volume, expiry, garbage_collector, job, load_balancer, namespace, pod_gc,
    policy_status, replicaset, replication, resource_quota, service_account, statefulset,
    storage_migration, volumes,
};
use crate::identity::{self, controller as account};
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
    /// Gives load balancers addresses, where there is a [range](crate::Builder::load_balancers) for them.
    LoadBalancers,
    /// Approves, signs and deletes CertificateSigningRequests.
    Certificates,
    /// Checks the types in expressions of ValidatingAdmissionPolicies and reports what does not fit.
    PolicyStatus,
    /// Writes all objects of a resource anew, where a StorageVersionMigration asks for it.
    StorageMigration,
}

/// Adds a part to a manager.
type Add = fn(Manager, &Facts) -> Manager;

/// The service accounts that controllers act as, in `kube-system`.
const ACCOUNTS: [&str; 29] = [
    "certificate-controller",
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoint-controller",
    "endpointslice-controller",
    "endpointslicemirroring-controller",
    "ephemeral-volume-controller",
    "expand-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "namespace-controller",
    "node-controller",
    "persistent-volume-binder",
    "pod-garbage-collector",
    "pv-protection-controller",
    "pvc-protection-controller",
    "replicaset-controller",
    "replication-controller",
    "resourcequota-controller",
    "root-ca-cert-publisher",
    "service-account-controller",
    "service-controller",
    "statefulset-controller",
    "storage-version-migrator-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
];

/// All parts, in the order in which they are started.
#[rustfmt::skip]
const PARTS: [(BuiltIn, Add); 25] = [
    (BuiltIn::Nodes, nodes),
    (BuiltIn::Scheduler, scheduler),
    (BuiltIn::NodeLifecycle, node_lifecycle),
    (BuiltIn::StorageClass, storage_class),
    (BuiltIn::GarbageCollector, |manager, facts| {
        let client = facts.client(&manager, account("generic-garbage-collector"));
        manager.runnable(garbage_collector::GarbageCollector::new(client, facts.environment.clone()))
    }),
    (BuiltIn::PodGc, |manager, facts| {
        let client = facts.client(&manager, account("pod-garbage-collector"));
        manager.runnable(pod_gc::PodGc::new(client, facts.environment.clone()))
    }),
    (BuiltIn::Namespace, |manager, facts| {
        add(manager, facts, "namespace-controller", namespace::controller())
    }),
    (BuiltIn::ServiceAccount, |manager, facts| {
        let authority = || facts.certificate_authority.clone();
        let accounts = match facts.credentials {
            Credentials::Own => &ACCOUNTS[..],
            Credentials::OfManager => &[],
        };
        let accounts = service_account::controller(accounts);
        let manager = add(manager, facts, "service-account-controller", accounts);
        let publisher = service_account::root_ca_controller(authority());
        let manager = add(manager, facts, "root-ca-cert-publisher", publisher);
        // As in Kubernetes: it acts as the manager, because other controllers have no tokens before it runs.
        manager.controller(service_account::token_controller(authority()))
    }),
    (BuiltIn::Expiry, |manager, facts| {
        let manager = add(manager, facts, "ttl-after-finished-controller", expiry::job_controller());
        // In Kubernetes nobody does this: etcd forgets events.
        add(manager, facts, "generic-garbage-collector", expiry::event_controller())
    }),
    (BuiltIn::ResourceQuota, |manager, facts| {
        add(manager, facts, "resourcequota-controller", resource_quota::controller())
    }),
    (BuiltIn::Disruption, |manager, facts| {
        let manager = add(manager, facts, "disruption-controller", disruption::controller());
        add(manager, facts, "disruption-controller", disruption::stale_controller())
    }),
    (BuiltIn::ReplicaSet, |manager, facts| {
        add(manager, facts, "replicaset-controller", replicaset::controller())
    }),
    (BuiltIn::Replication, |manager, facts| {
        add(manager, facts, "replication-controller", replication::controller())
    }),
    (BuiltIn::Deployment, |manager, facts| {
        add(manager, facts, "deployment-controller", deployment::controller())
    }),
    (BuiltIn::StatefulSet, |manager, facts| {
        add(manager, facts, "statefulset-controller", statefulset::controller())
    }),
    (BuiltIn::DaemonSet, |manager, facts| {
        add(manager, facts, "daemon-set-controller", daemonset::controller(&facts.remembered))
    }),
    (BuiltIn::Volumes, add_volumes),
    (BuiltIn::Job, |manager, facts| {
        let manager = add(manager, facts, "job-controller", job::controller());
        add(manager, facts, "job-controller", job::orphan_controller())
    }),
    (BuiltIn::CronJob, |manager, facts| {
        add(manager, facts, "cronjob-controller", cronjob::controller())
    }),
    (BuiltIn::Endpoints, |manager, facts| {
        let manager = add(manager, facts, "endpointslice-controller", endpoints::controller());
        let manager = add(manager, facts, "endpoint-controller", endpoints::legacy::controller());
        add(manager, facts, "endpointslicemirroring-controller", endpoints::mirror::controller())
    }),
    (BuiltIn::Autoscaler, |manager, facts| {
        let scaler = autoscaler::controller(facts.metrics.clone(), &facts.remembered);
        add(manager, facts, "horizontal-pod-autoscaler", scaler)
    }),
    (BuiltIn::LoadBalancers, |manager, facts| match facts.load_balancers {
        Some(range) => add(manager, facts, "service-controller", load_balancer::controller(range)),
        None => manager,
    }),
    (BuiltIn::Certificates, |manager, facts| {
        let account = "certificate-controller";
        let manager = add(manager, facts, account, certificates::approver());
        let manager = add(manager, facts, account, certificates::signer(facts.signer.clone()));
        add(manager, facts, account, certificates::cleaner())
    }),
    (BuiltIn::PolicyStatus, |manager, facts| {
        let account = "validatingadmissionpolicy-status-controller";
        add(manager, facts, account, policy_status::controller())
    }),
    (BuiltIn::StorageMigration, |manager, facts| {
        let account = "storage-version-migrator-controller";
        add(manager, facts, account, storage_migration::controller())
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

/// Adds a controller that acts as a service account of its own.
fn add<R: Request>(
    manager: Manager,
    facts: &Facts,
    name: &str,
    controller: Controller<R>,
) -> Manager {
    let client = facts.client(&manager, account(name));
    manager.controller(controller.with_kube(client.kube().clone()))
}

fn add_volumes(manager: Manager, facts: &Facts) -> Manager {
    let (binder, claims) = ("persistent-volume-binder", "pvc-protection-controller");
    let protection = volumes::protection::claim_controller();
    let manager = add(
        manager,
        facts,
        "ephemeral-volume-controller",
        ephemeral_volume::controller(),
    );
    let manager = add(manager, facts, binder, volumes::binder());
    let manager = add(manager, facts, binder, volumes::reclaimer());
    let manager = add(
        manager,
        facts,
        "expand-controller",
        volumes::expansion::controller(),
    );
    let manager = add(manager, facts, claims, protection);
    let protection = volumes::protection::volume_controller();
    add(manager, facts, "pv-protection-controller", protection)
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
    let client = facts.client(&manager, identity::scheduler());
    let environment = facts.environment.clone();
    let run =
        async move |stop: CancellationToken| Scheduler::new().run(client, environment, stop).await;
    manager.runnable(Task::new("the scheduler", move |stop| async move {
        run(stop).await.map_err(Error::from)
    }))
}

fn node_lifecycle(manager: Manager, facts: &Facts) -> Manager {
    let client = facts.client(&manager, account("node-controller"));
    let environment = facts.environment.clone();
    let lifecycle = NodeLifecycle::new().grace(facts.node_grace);
    let run = async move |stop: CancellationToken| lifecycle.run(client, environment, stop).await;
    let task = Task::new("the node lifecycle controller", move |stop| async move {
        run(stop).await.map_err(Error::from)
    });
    manager.runnable(task)
}

fn storage_class(manager: Manager, facts: &Facts) -> Manager {
    // Whoever installs a cluster makes it, and is its administrator.
    let client = facts.client(&manager, User::admin());
    let task = Task::new("the standard storage class", |_| {
        volumes::standard_class(client)
    });
    manager.runnable(task.once())
}
